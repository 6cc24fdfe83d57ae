"""Connects to checked addresses only: a name is resolved once, its addresses are checked, and one of them is used.

The name stays in the request, so `Host` and TLS use that of the URL. It is not resolved again, so it cannot change after the
check.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import httpcore
import httpx

from ...base.networks import Address
from ...errors import PermanentError, TransientError
from ..access import Access
from .addresses import is_odd_number, literal, refusal

MAX_ADDRESSES = 20
MAX_RESOLVERS = 32


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that may be reached. `own` is a host and port that may be private: that of a service."""

    def __init__(self, access: Access, own: tuple[str, int] | None = None) -> None:
        self._access = access
        self._own = own
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._addresses(host, port, timeout)
        for place, address in enumerate(addresses, start=1):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if place == len(addresses):
                    raise
        raise AssertionError("there is at least one address")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise PermanentError("sockets of this host cannot be reached by documents")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int, timeout: float | None) -> list[Address]:
        if is_odd_number(host):
            raise PermanentError(f"{host} may not be reached: write an address in four decimal numbers")
        written = literal(host)
        addresses = [written] if written is not None else await self._resolved(host, port, timeout)
        if self._own == (host, port):
            return addresses
        for address in addresses:
            reason = refusal(address, port, self._access.private)
            if reason is not None:
                raise PermanentError(_refused(host, address, port, reason))
        return addresses

    async def _resolved(self, host: str, port: int, timeout: float | None) -> list[Address]:
        resolve = self._access.resolve or _by_system
        try:
            async with asyncio.timeout(timeout):
                texts = await resolve(host, port)
        except TimeoutError:
            raise TransientError(f"the name {host} was not resolved within {timeout:g} s") from None
        except OSError as error:
            raise TransientError(f"the name {host} cannot be resolved: {error.strerror or error}") from None
        try:
            addresses = [ipaddress.ip_address(text) for text in dict.fromkeys(texts)][:MAX_ADDRESSES]
        except ValueError:
            raise TransientError(f"the name {host} was resolved to something that is no address") from None
        if not addresses:
            raise TransientError(f"the name {host} has no address")
        return addresses


async def _by_system(host: str, port: int) -> list[str]:
    # Threads of their own: a name that hangs must not keep others on this loop from theirs.
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    infos = await asyncio.get_running_loop().run_in_executor(_resolvers(), ask)
    return [str(info[4][0]) for info in infos]


def _refused(host: str, address: Address, port: int, reason: str) -> str:
    named = f"{host} is at {address}, which" if host != str(address) else host
    example = f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
    return (
        f"{named} may not be reached: it is {reason}. If documents should reach it, add it to the settings: "
        f'private_networks = ["{example}"], or name it as a service'
    )


class CheckedTransport(httpx.AsyncBaseTransport):
    """The transport of httpx over connections that were checked; for one exchange, its redirects included."""

    def __init__(self, access: Access, own: tuple[str, int] | None = None) -> None:
        self._backend = CheckedBackend(access, own)
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}
        """By scheme: what TLS needs takes long to read, and not every exchange needs it."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        pool = await self._pool(url.scheme)
        answer = await pool.handle_async_request(asked)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Stream(answer), extensions=answer.extensions
        )

    async def _pool(self, scheme: str) -> httpcore.AsyncConnectionPool:
        if scheme not in self._pools:
            context = await asyncio.to_thread(_ssl_context) if scheme == "https" else None
            self._pools[scheme] = httpcore.AsyncConnectionPool(
                ssl_context=context, network_backend=self._backend, max_connections=1, retries=0
            )
        return self._pools[scheme]

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> Any:
        async for chunk in self._answer.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@cache
def _resolvers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_RESOLVERS, "stepwell-names")


@cache
def _ssl_context() -> ssl.SSLContext:
    """Made once: reading all authorities takes longer than most requests."""
    return httpx.create_ssl_context()
