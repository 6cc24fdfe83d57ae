"""HTTP with limits on what anybody may send: connections, the size of a head, and the time that a request takes to come."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 * 1024
"""Bytes of a request line and its headers, apart from the first read."""
HEAD_SECONDS = 30.0
"""In which a request line and its headers must come, from when a connection is made or they begin."""
BODY_SECONDS = 600.0
"""In which a body must come: 33 MB at half a megabit a second."""
RESERVED_FILES = 128
"""Files that connections leave to the store and to bodies, of those that a process may open."""
ACCEPTED_AT_ONCE = 32
"""Connections that are accepted before the first of them is counted."""
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 2\r\n\r\n"


def max_connections() -> int:
    """How many connections there may be at once. Without a limit the process would run out of files, and asyncio would report
    that two thousand times a second."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**20 if files == resource.RLIM_INFINITY else max(files - RESERVED_FILES, files // 2)


class BoundedProtocol(HttpToolsProtocol):
    """httptools would keep headers of any size, and uvicorn waits for ever for the rest of a request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = self._in_body = False
        self._began_now = False
        """The request began in the data being read, some of which may belong to the request before."""
        self._head = 0
        self._requests = 0
        self._awaited: tuple[int, float] | None = None
        """The request of which a part is awaited, and for how long."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > max_connections():
            transport.write(TOO_MANY)
            transport.close()
        else:
            self._wait_for(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_for(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._requests += 1
        self._in_head, self._began_now, self._head = True, True, 0

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        self._began_now = False
        super().data_received(data)
        if self._in_head and not self._began_now:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.transport.write(TOO_LARGE)
                self.transport.close()
        self._wait_for(HEAD_SECONDS if self._in_head else BODY_SECONDS if self._in_body else None)

    def _wait_for(self, seconds: float | None) -> None:
        """End the connection unless what is awaited of a request has come by then. What comes at once needs no timer."""
        awaited = None if seconds is None or self.transport.is_closing() else (self._requests, seconds)
        if awaited != self._awaited:
            if self._timer is not None:
                self._timer.cancel()
            self._awaited = awaited
            self._timer = None if awaited is None else self.loop.call_later(awaited[1], self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            if self._in_head:
                self.transport.write(TOO_SLOW)
            self.transport.close()
