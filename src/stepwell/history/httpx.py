"""A transport for httpx that records the requests of bodies.

    from stepwell.history.httpx import RecordingTransport

    client = httpx.Client(transport=RecordingTransport())
    client = httpx.AsyncClient(transport=RecordingTransport())

Inside a body every request is an effect named `http`; outside of bodies, and inside another effect, nothing is recorded.
Needs the extra `stepwell[http]`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any

import httpx

from ..base.masking import mask, mask_any_case
from ..base.words import shown
from ..errors import InputError
from .effects.recorder import Call
from .effects.repeatable import current

EFFECT_NAME = "http"
_COOKIES = ("cookie", "set-cookie")
_TOKENS = ("authorization", "proxy-authorization", "x-api-key", "api-key", "x-auth-token", "x-csrf-token")
SECRET_HEADERS = frozenset((*_COOKIES, *_TOKENS))
"""Never stored, neither of requests nor of responses."""
# They describe the transfer of the body; the body itself is recorded.
_CARRIAGE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?')


class RecordingTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests with `transport` (by default that of httpx) and records them.

    A request is identified by its method, URL and body, and by the `headers` that are named here. Responses are read to their
    end before the body gets them, so there is no streaming.
    """

    def __init__(
        self,
        transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
        *,
        headers: Iterable[str] = ("accept", "content-type"),
        durable: bool = False,
        **options: Any,
    ) -> None:
        self._headers = _header_names(headers)
        if secret := SECRET_HEADERS.intersection(self._headers):
            raise InputError(f"headers={sorted(secret)}: these hold secrets, which are never recorded; name others")
        if transport is not None and options:
            raise InputError(f"{', '.join(options)}: give them to the transport you pass, or pass none")
        self._durable = durable
        self._options = options
        self._transport = transport
        self._sync: httpx.BaseTransport | None = transport if isinstance(transport, httpx.BaseTransport) else None
        self._async: httpx.AsyncBaseTransport | None = (
            transport if isinstance(transport, httpx.AsyncBaseTransport) else None
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        transport = self._sync_transport()
        ctx = current()
        if ctx is None:
            return transport.handle_request(request)

        def send() -> dict[str, Any]:
            response = transport.handle_request(request)
            try:
                response.read()
            finally:
                response.close()
            return _to_data(response)

        request.read()
        return _to_response(ctx.perform(self._call(send, request)))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        transport = self._async_transport()
        ctx = current()
        if ctx is None:
            return await transport.handle_async_request(request)

        async def send() -> dict[str, Any]:
            response = await transport.handle_async_request(request)
            try:
                await response.aread()
            finally:
                await response.aclose()
            return _to_data(response)

        await request.aread()
        return _to_response(await ctx.perform(self._call(send, request)))

    def close(self) -> None:
        if self._sync is not None:
            self._sync.close()

    async def aclose(self) -> None:
        if self._async is not None:
            await self._async.aclose()

    def _call(self, send: Any, request: httpx.Request) -> Call:
        return Call(
            EFFECT_NAME, send, (), {}, self._request_identity(request), self._durable, _storable, _without_secrets
        )

    def _request_identity(self, request: httpx.Request) -> dict[str, Any]:
        """What identifies a request. The boundary between parts is random, so it does not count."""
        content, headers = request.content, {}
        boundary = _BOUNDARY.search(request.headers.get("content-type", ""))
        for name in self._headers:
            if name in request.headers:
                value = request.headers[name]
                headers[name] = value if boundary is None else value.replace(boundary[1], "boundary")
        if boundary is not None:
            content = content.replace(boundary[1].encode(), b"boundary")
        body = _without_secrets(_body(content))
        url = request.url.copy_with(userinfo=b"") if request.url.userinfo else request.url
        identity: dict[str, Any] = {"method": request.method, "url": str(url), **body}
        return {**identity, "headers": headers} if headers else identity

    def _sync_transport(self) -> httpx.BaseTransport:
        if self._sync is None:
            if self._transport is not None:
                raise InputError("this RecordingTransport was given a transport for httpx.AsyncClient only")
            self._sync = httpx.HTTPTransport(**self._options)
        return self._sync

    def _async_transport(self) -> httpx.AsyncBaseTransport:
        if self._async is None:
            if self._transport is not None:
                raise InputError("this RecordingTransport was given a transport for httpx.Client only")
            self._async = httpx.AsyncHTTPTransport(**self._options)
        return self._async


def _to_data(response: httpx.Response) -> dict[str, Any]:
    """A response as data."""
    headers = [[name, value] for name, value in response.headers.multi_items() if name.lower() not in _CARRIAGE]
    return {"status": response.status_code, "headers": headers, **_body(response.content)}


def _to_response(data: dict[str, Any]) -> httpx.Response:
    content = base64.b64decode(data["base64"]) if "base64" in data else data["body"].encode()
    return httpx.Response(data["status"], headers=[(name, value) for name, value in data["headers"]], content=content)


def _storable(data: dict[str, Any]) -> dict[str, Any]:
    """What may be stored of a response."""
    headers = [[mask_any_case(name), value] for name, value in data["headers"] if name.lower() not in SECRET_HEADERS]
    return {**data, "headers": headers}


def _without_secrets(data: dict[str, Any]) -> dict[str, Any]:
    """Mask bytes here: in base64 a secret would not be recognised."""
    if "base64" not in data:
        return data
    content = mask(base64.b64decode(data["base64"]).decode("latin-1")).encode("latin-1")
    return {**data, "base64": base64.b64encode(content).decode()}


def _body(content: bytes) -> dict[str, str]:
    try:
        return {"body": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _header_names(headers: Any) -> tuple[str, ...]:
    if isinstance(headers, Iterable) and not isinstance(headers, str | bytes):
        names = list(headers)
        if all(isinstance(name, str) for name in names):
            return tuple(sorted({name.lower() for name in names}))
    raise InputError(f'headers={shown(headers)}: expected a list of names, as in ["accept"]')
