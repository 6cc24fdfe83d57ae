"""Real HTTP servers on loopback that do what they are told, byte by byte."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Asked(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def json(self) -> Any:
        return json.loads(self.body)


Respond = Callable[[Asked], "bytes | Iterator[bytes] | None"]
"""What is sent: whole, piece by piece, or None to reset the connection."""


def answer(status: int = 200, body: Any = b"", content_type: str | None = None, **headers: str) -> bytes:
    """A whole answer; data that is no bytes is sent as JSON."""
    if not isinstance(body, bytes):
        body, content_type = json.dumps(body).encode(), content_type or "application/json"
    lines = [f"HTTP/1.1 {status} Told", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """Answers every request by `respond` and remembers what it was asked."""

    def __init__(self, respond: Respond, host: str = "127.0.0.1", port: int = 0, tls: Any = None) -> None:
        self._respond = respond
        self._tls = tls
        self._socket = socket.create_server((host, port))
        self.host, self.port = self._socket.getsockname()[:2]
        self.asked: list[Asked] = []
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(10)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                self._exchange(connection)

    def _exchange(self, connection: socket.socket) -> None:
        asked = _read(connection)
        if asked is None:
            return
        self.asked.append(asked)
        told = self._respond(asked)
        if told is None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        for piece in (told,) if isinstance(told, bytes) else told:
            connection.sendall(piece)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)


def _read(connection: socket.socket) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    method, target, _ = first.split(" ")
    return Asked(method, target, headers, body)
