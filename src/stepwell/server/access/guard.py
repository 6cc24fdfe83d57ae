"""The guard: every request passes it, whatever its route.

It checks, in this order: the host name (against DNS rebinding), the origin (against cross-site requests), the size of the body
(of one, and of all together), and the caller. The web UI is served before the caller is looked at.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...answers.scopes import SCOPES
from ...answers.scopes import Scope as Right
from ...history.audit_log import FROM, REASON, Actor, acting_as
from ..problems import HttpProblem, problem_of, problem_response
from ..threads import closing
from ..web_ui import WebUi
from .callers import Caller, Callers
from .tokens import Token

if TYPE_CHECKING:
    from ...answers.audit_log import Via

PRINCIPAL = "stepwell.principal"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
FORWARDING = re.compile(
    r"forwarded|-ip$|(real|client|remote|user|connecting)-?ip|^via$|^(x-)?remote-|^(cf|cdn|fly|tailscale|ngrok)-"
    r"|^x-(original|envoy|arr|azure|vercel|appengine|goog-(iap|authenticated)|auth-request|webauth|scheme|amz-cf)-?"
)
"""Headers that a proxy adds, which clients do not send by themselves: the peer address is then the proxy's, and does not
identify the caller."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_BODY = 33 * 1024 * 1024
"""Bytes of a request: a document may have 32 MiB."""
MAX_BODIES = 4 * MAX_BODY
"""Bytes of all requests that are being read or served, beyond the first `SMALL_BODY` of each."""
SMALL_BODY = 64 * 1024
"""Bytes that every request may send, so that large requests of others keep nobody from starting a run."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer has, unless its route says something else."""


class Principal(NamedTuple):
    """Who asks, and what that may do."""

    name: str
    scopes: tuple[Right, ...]
    token: Token | None = None
    session: str | None = None
    """The text of the cookie by which it is known."""


LOCAL = Principal("loopback", (SCOPES[-1],))
"""A caller on this machine, as long as no token was ever made."""


class Guard:
    """`open_paths` need no token: health checks, and webhooks, which check their callers themselves. `root`: the path that a
    proxy serves it below, which may or may not still be in front of what it passes on."""

    def __init__(
        self,
        app: ASGIApp,
        callers: Callers,
        hosts: Collection[str],
        open_paths: Collection[str],
        *,
        web_ui: WebUi,
        root: str = "",
    ) -> None:
        self.app = app
        self._callers = callers
        self._web_ui = web_ui
        self._root = root
        self._hosts = {name.lower().rstrip(".") for name in hosts} | LOOPBACK_NAMES
        self._open = frozenset(path for path in open_paths if not path.endswith("/"))
        self._open_below = tuple(path for path in open_paths if path.endswith("/"))
        self._bodies = _RequestBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no websockets
            await send({"type": "websocket.close", "code": 1008})
            return
        if self._root and (scope["path"] + "/").startswith(self._root + "/"):
            scope = {**scope, "path": scope["path"][len(self._root) :] or "/"}
        body = _LimitedBody(receive, self._bodies)
        answer = _ResponseHeaders(send)
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            _check_origin(scope["method"], headers)
            body.check_length(headers)
            page = self._web_ui.answer(scope)
            if page is not None:
                await page(scope, receive, answer.send)
                return
            if scope["path"] not in self._open and not scope["path"].startswith(self._open_below):
                scope[PRINCIPAL] = principal = await self._who(scope, headers)
                with acting_as(_actor(principal, headers), _reason(headers)):
                    await self.app(scope, body.receive, answer.send)
            else:
                await self.app(scope, body.receive, answer.send)
        except (Exception, asyncio.CancelledError) as error:
            # A request is cancelled when the server ends and has waited long enough.
            told = closing() if isinstance(error, asyncio.CancelledError) else problem_of(error)
            if not answer.begun:
                await problem_response(told, scope["path"])(scope, receive, answer.send)
        finally:
            body.close()

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        name = host_name(given[0]) if len(given) == 1 else None
        if name is None or not (name in self._hosts or (_is_address(name) and name not in ("0.0.0.0", "::"))):
            unknown = f"this server does not answer to the name {given[0][:100]!r}" if given else ""
            advice = "start it with --allow-host to have it do so"
            raise HttpProblem(421, f"{unknown}; {advice}" if unknown else "the request has no Host header")

    async def _who(self, scope: Scope, headers: Headers) -> Principal:
        """The caller; an HttpProblem if it has no valid token."""
        given = headers.getlist("authorization")
        if len(given) > 1:
            raise _unknown("more than one Authorization header")
        if given:
            kind, _, text = given[0].partition(" ")
            if kind.lower() != "bearer" or not text.strip():
                raise _unknown("expected Authorization: Bearer TOKEN")
            return _valid(await self._callers.by_token(text.strip()))
        cookie = session_cookie(headers, await self._callers.cookie()) if "cookie" in headers else None
        caller = None if cookie is None else await self._callers.by_session(cookie)
        if caller is not None:
            if scope["method"] not in SAFE and "origin" not in headers and "sec-fetch-site" not in headers:
                raise HttpProblem(
                    403, "a request with a cookie that changes something needs an Origin header; use a token"
                )
            return _valid(caller, cookie)
        client = scope.get("client")
        forwarded = any(FORWARDING.search(name.replace("_", "-")) for name in headers)
        is_local = client is not None and is_loopback(str(client[0])) and not forwarded
        if not is_local:
            raise _unknown("expected a token, Authorization: Bearer TOKEN; `stepwell token create` makes one")
        if await self._callers.any_token():
            needed = "expected a token, also on this machine, since tokens were made: Authorization: Bearer TOKEN"
            raise _unknown(f"{needed}; `stepwell token create` makes one")
        return LOCAL


def _actor(principal: Principal, headers: Headers) -> Actor:
    """Who asks, for the audit log. What a request is made with is what it says itself."""
    via = headers.get(FROM)
    token = None if principal.token is None else principal.token.id
    return Actor(principal.name, cast("Via", via) if via in ("cli", "python", "ui") else "http", token)


def _reason(headers: Headers) -> str | None:
    """Why it asks: UTF-8, which a header of a browser must write as percent-encoding."""
    text = headers.get(REASON)
    return None if text is None else unquote(text.encode("latin-1").decode("utf-8", "replace"))


def _valid(caller: Caller | None, session: str | None = None) -> Principal:
    if caller is None:
        raise _unknown("this token is not known")
    token = caller.token
    if caller.status != "valid":
        raise _unknown(f"the token {token.id} is {caller.status}; `stepwell token create` makes another")
    return Principal(token.name or token.id, token.scopes, token, session)


def _unknown(detail: str) -> HttpProblem:
    return HttpProblem(401, detail, headers={"WWW-Authenticate": "Bearer"})


def host_name(text: str) -> str | None:
    """The name in a Host header, without its port.

    >>> host_name("Example.com:8080"), host_name("[::1]:80"), host_name("a/b")
    ('example.com', '::1', None)
    """
    try:
        parts = urlsplit(f"//{text}")
        name = parts.hostname
        _ = parts.port
    except ValueError:
        return None
    if name is None or "@" in text or parts.netloc != text:
        return None
    return name.rstrip(".") or None if all(each.isalnum() or each in ".-_:" for each in name) else None


def _is_address(name: str) -> bool:
    """An address is safe as a host: DNS rebinding needs a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def own_names() -> set[str]:
    """The names of this machine."""
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def _check_origin(method: str, headers: Headers) -> None:
    origins = headers.getlist("origin")
    if len(origins) > 1 or (origins and _netloc(origins[0]) != headers.get("host", "").lower()):
        raise HttpProblem(403, f"a page of {origins[0][:200]!r} may not use this server: only its own pages may")
    navigates = method in SAFE and headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not navigates:
        raise HttpProblem(403, "pages of other sites may not use this server")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # as of `http://[`
        return None


def is_loopback(address: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("::ffff:127.0.0.1"), is_loopback("10.0.0.1"), is_loopback("localhost")
    (True, True, False, True)
    """
    if address == "localhost":
        return True
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (inner or found).is_loopback


def session_cookie(headers: Headers, cookie: str | None) -> str | None:
    """The cookie of the session, by its name: the first, if a browser sends several of this name."""
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            name, _, value = part.strip().partition("=")
            if name == cookie and value:
                return value
    return None


class _RequestBodies:
    """Counts what all requests hold of their bodies."""

    def __init__(self) -> None:
        self.size = 0

    def check_room(self, more: int) -> None:
        if self.size + more > MAX_BODIES:
            detail = f"other requests that are being served have nearly {MAX_BODIES:,} bytes together; try again soon"
            raise HttpProblem(503, detail, headers={"Retry-After": "2"})


class _LimitedBody:
    """Refuses a body that is too large by itself, or together with those of other requests, until it is closed."""

    def __init__(self, receive: Receive, bodies: _RequestBodies) -> None:
        self._receive = receive
        self._bodies = bodies
        self._size = 0

    def check_length(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise HttpProblem(400, "Content-Length must be a number")
        if len(length) > 18 or int(length) > MAX_BODY:
            raise _too_large()
        self._bodies.check_room(_counted(int(length)))

    async def receive(self) -> Message:
        message = await self._receive()
        size = self._size + len(message.get("body", b""))
        if size > MAX_BODY:
            raise _too_large()
        more = _counted(size) - _counted(self._size)
        if more:
            self._bodies.check_room(more)
        self._size = size
        self._bodies.size += more
        return message

    def close(self) -> None:
        self._bodies.size -= _counted(self._size)
        self._size = 0


def _counted(size: int) -> int:
    """The bytes of a body that count against the limit of all bodies."""
    return max(0, size - SMALL_BODY)


def _too_large() -> HttpProblem:
    return HttpProblem(413, f"a request has at most {MAX_BODY:,} bytes")


class _ResponseHeaders:
    """Adds the headers that every answer has, and remembers whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)
