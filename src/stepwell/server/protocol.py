"""HTTP as uvicorn reads it, with a limit on what comes before a body: httptools would keep headers of any size."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 * 1024
"""Bytes of a request line and its headers, apart from the first read."""
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = False
        self._began_now = False
        """The request began in the data being read, some of which may belong to the request before."""
        self._head = 0

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._began_now, self._head = True, True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        self._began_now = False
        super().data_received(data)
        if self._in_head and not self._began_now:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.transport.write(TOO_LARGE)
                self.transport.close()
