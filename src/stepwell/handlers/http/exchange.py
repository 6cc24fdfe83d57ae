"""One exchange: a request with its secrets filled in, its redirects, and the answer as data.

It runs inside an effect, so secrets are read here, where they are used, and what is recorded is the request with the names of
the secrets and the answer without them. A replay is given the answer and needs neither network nor secrets.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpcore
import httpx

from ...base.masking import hide, mask_any_case
from ...base.secret_refs import SecretRef, references
from ...base.secrets import resolved
from ...base.services import Text
from ...base.version import __version__
from ...errors import MissingSecret, PermanentError, TransientError
from ..access import Access
from .config import Parse
from .connecting import CheckedTransport
from .outgoing import CREDENTIALS, Outgoing
from .reading import parsed, read_body, retry_after, shown_headers

CONNECT_SECONDS = 10.0
MAX_SECONDS = 3_600.0
"""Of one exchange; a node mostly has less time."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD = frozenset({307, 308})
_IDEMPOTENCY_KEY = "Idempotency-Key"


async def exchange(access: Access, outgoing: Outgoing) -> dict[str, Any]:
    """The answer, whatever its status: `status_code`, `headers`, `url`, `result`, `encoding`, perhaps `retry_after`."""
    place = outgoing.method
    try:
        place += f" {_shown(httpx.URL(outgoing.url))}"
        async with asyncio.timeout(MAX_SECONDS):
            return await _Exchange(access, outgoing).perform()
    except MissingSecret:
        raise
    except PermanentError as error:
        raise PermanentError(f"{place}: {mask_any_case(str(error))}") from None
    except TransientError as error:
        raise TransientError(f"{place}: {mask_any_case(str(error))}", retry_after=error.retry_after) from None
    except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
        raise PermanentError(f"{place}: the request cannot be sent: {mask_any_case(str(error))}") from None
    except (httpcore.TimeoutException, TimeoutError) as error:
        raise TransientError(f"{place}: no answer in time ({type(error).__name__})") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError) as error:
        raise _network_error(place, error) from None


def _network_error(place: str, error: BaseException) -> TransientError | PermanentError:
    cause: BaseException | None = error
    reason = ""
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
            reason = os.strerror(cause.errno)  # the last of them is what happened
        if isinstance(cause, ssl.SSLCertVerificationError):
            return PermanentError(f"{place}: the certificate is refused: {mask_any_case(cause.verify_message)}")
        cause = cause.__cause__ or cause.__context__
    said = mask_any_case(reason or str(error)) or "the connection was lost"
    return TransientError(f"{place}: {said} ({type(error).__name__})")


class _Exchange:
    def __init__(self, access: Access, outgoing: Outgoing) -> None:
        self._access = access
        self._asked = outgoing
        self._secret_headers: set[str] = set()

    async def perform(self) -> dict[str, Any]:
        asked = self._asked
        first = self._url()
        own = (first.raw_host.decode("ascii"), _port(first)) if asked.private else None
        method, url, headers, content = asked.method, first, self._headers(), self._content()
        has_secrets = any(references([asked.json, asked.form, asked.body]))
        async with CheckedTransport(self._access, own) as transport:
            for hop in range(asked.redirects + 1):
                async with _answer(transport, method, url, headers, content) as response:
                    target = response.headers.get("location")
                    if response.status_code not in _REDIRECTS or not target or not asked.redirects:
                        return await self._taken(response, url, method)
                    if hop == asked.redirects:
                        raise PermanentError(f"redirected more than {asked.redirects} times")
                    following = self._following(url, target, first)
                    if response.status_code not in _KEEP_METHOD and method not in ("GET", "HEAD"):
                        method, content = "GET", None
                        headers = {k: v for k, v in headers.items() if k.lower() != "content-type"}
                    if _origin(following) != _origin(url):
                        if content is not None and has_secrets:
                            raise PermanentError(f"redirected to {_shown(following)} with a body that holds secrets")
                        secret = CREDENTIALS | self._secret_headers
                        headers = {name: value for name, value in headers.items() if name.lower() not in secret}
                    url = following
        raise AssertionError("the last answer was returned or refused")

    def _following(self, url: httpx.URL, target: str, first: httpx.URL) -> httpx.URL:
        """Where a redirect leads. The address is checked when it is connected to, as for every request."""
        following = url.join(target)
        if following.scheme not in ("http", "https") or not following.host:
            raise PermanentError(f"redirected to {_shown(following)}: only http and https are followed")
        if following.userinfo:
            following = following.copy_with(userinfo=b"")
        if self._asked.service is not None and _origin(following) != _origin(first):
            raise PermanentError(f"redirected to {_shown(following)}, which is not service {self._asked.service!r}")
        return following

    async def _taken(self, response: httpx.Response, url: httpx.URL, method: str) -> dict[str, Any]:
        content = await read_body(response, self._asked.max_bytes, is_head=method == "HEAD")
        failed = response.status_code >= 400
        parse: Parse = "text" if failed and self._asked.parse == "json" else self._asked.parse
        try:
            result, encoding = parsed(content, response.headers.get("content-type", ""), parse)
        except PermanentError:
            if not failed:  # the body of an error need not have the type it claims
                raise
            result, encoding = parsed(content, "", "text")
        answer: dict[str, Any] = {
            "result": result,
            "status_code": response.status_code,
            "headers": shown_headers(response),
            "url": _shown(url),
            "encoding": encoding,
        }
        wait = retry_after(response.headers, time.time())
        return answer if wait is None else {**answer, "retry_after": wait}

    # The request, with its secrets

    def _value(self, value: Text) -> str:
        return self._access.secrets.value(value, self._asked.service) if isinstance(value, SecretRef) else value

    def _url(self) -> httpx.URL:
        url = httpx.URL(self._asked.url)
        if not self._asked.query:
            return url
        return url.copy_merge_params([(name, self._value(value)) for name, value in self._asked.query])

    def _headers(self) -> dict[str, str]:
        asked = self._asked
        headers = {"User-Agent": f"stepwell/{__version__}", "Accept": "*/*", "Accept-Encoding": "gzip"}
        if asked.method not in SAFE:
            headers[_IDEMPOTENCY_KEY] = quote(asked.idempotency_key, safe=":-_.~/@+=")
        if asked.json is not None:
            headers["Content-Type"] = "application/json"
        elif asked.form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif asked.body is not None:
            headers["Content-Type"] = "text/plain; charset=utf-8"
        if asked.bearer is not None:
            headers["Authorization"] = f"Bearer {self._value(asked.bearer)}"
        if asked.basic is not None:
            pair = base64.b64encode(":".join(map(self._value, asked.basic)).encode()).decode()
            hide([pair])
            headers["Authorization"] = f"Basic {pair}"
        for name, value in asked.headers.items():
            for other in [each for each in headers if each.lower() == name.lower()]:
                del headers[other]
            headers[name] = self._value(value)
            if isinstance(value, SecretRef):
                self._secret_headers.add(name.lower())
        for name, text in headers.items():
            if not text.isascii() or not text.isprintable():
                raise PermanentError(f"the header {name} cannot be sent: only one line of printable ASCII can be")
        return headers

    def _content(self) -> bytes | None:
        asked = self._asked
        if asked.json is not None:
            full = resolved(asked.json, self._access.secrets, asked.service)
            return json.dumps(full, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        if asked.form is not None:
            pairs = {name: self._value(value) for name, value in asked.form.items()}
            return str(httpx.QueryParams(pairs)).encode()
        return None if asked.body is None else self._value(asked.body).encode()


@asynccontextmanager
async def _answer(
    transport: CheckedTransport, method: str, url: httpx.URL, headers: Mapping[str, str], content: bytes | None
) -> AsyncIterator[httpx.Response]:
    """The answer to a request, open to be read. No client of httpx: that would log the URL, and keep cookies."""
    limits = {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}
    request = httpx.Request(method, url, headers=headers, content=content, extensions={"timeout": limits})
    response = await transport.handle_async_request(request)
    try:
        yield response
    finally:
        await response.aclose()


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, _port(url)


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _shown(url: httpx.URL) -> str:
    """Without the query, which may hold anything, and without user and password."""
    return mask_any_case(str(url.copy_with(query=None, fragment=None, userinfo=b"")))
