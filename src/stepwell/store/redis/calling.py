"""Calls to the server, over connections that are kept between them: as many as threads call at once.

The client opens them (name, password, TLS, sentinels); what is sent and read over one goes past it. Its own way of sending a
command takes three times as long, mostly because it asks the system each time whether the line still stands. Here a line that
was cut is noticed when it is used, and what was asked is asked again over a new one: every batch may be sent again.

The socket of a connection is no public name of redis-py. Should a version of it call that otherwise, its public methods are
used instead, which take somewhat longer and do the same.
"""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from hiredis import Reader, pack_command
from redis.exceptions import ConnectionError, InvalidResponse, ResponseError, TimeoutError

from .fields import Arg

PAUSES = (0.01, 0.02, 0.04)
"""Seconds before it is tried again."""
_READ_BYTES = 64 * 1024
_INCOMPLETE = object()


class Calls:
    def __init__(self, client: Any, most: int | None = None) -> None:
        """`most`: how many connections are used at once; whoever needs another waits for one."""
        self._pool = client.connection_pool
        self._free: list[Line | ClientLine] = []
        self._permits = nullcontext() if most is None else threading.BoundedSemaphore(most)

    def call(self, *commands: Sequence[Arg]) -> list[Any]:
        """The answers to these commands, sent together. The first error that the server answers is raised."""
        return self.send(b"".join([pack_command(tuple(command)) for command in commands]), len(commands))  # type: ignore[arg-type]

    def send(self, packed: bytes, count: int = 1) -> list[Any]:
        """The same for commands that are packed already."""
        with self._permits:
            answers = self._ask(packed, count)
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise answer
        return answers

    def close(self) -> None:
        while self._free:
            self._pool.release(self._free.pop().connection)

    def _ask(self, packed: bytes, count: int) -> list[Any]:
        for pause in (*PAUSES, None):
            try:
                line = self._free.pop()
            except IndexError:
                line = open_line(self._pool.get_connection())
            try:
                answers = line.ask(packed, count)
            except BaseException as error:
                # Another one is asked for, and with it who the server is by now: sentinels may name another.
                line.connection.disconnect()
                self._pool.release(line.connection)
                if pause is None or not isinstance(error, ConnectionError | TimeoutError):
                    raise
                time.sleep(pause)
            else:
                self._free.append(line)
                return answers
        raise AssertionError


def open_line(connection: Any) -> Line | ClientLine:
    """A line over a connection that the client has opened."""
    socket = getattr(connection, "_sock", None)
    to_error = getattr(getattr(connection, "_parser", None), "parse_error", None)
    if callable(getattr(socket, "recv_into", None)) and callable(to_error):
        return Line(connection, socket, to_error)
    return ClientLine(connection)


class ClientLine:
    """A connection whose socket is not known by name: everything goes through its public methods."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def ask(self, packed: bytes, count: int) -> list[Any]:
        self.connection.send_packed_command([packed], check_health=False)
        return [self._answer() for _ in range(count)]

    def _answer(self) -> Any:
        try:
            return self.connection.read_response()
        except ResponseError as error:
            return error


class Line:
    """A connection and its socket, and what has come over it so far."""

    def __init__(self, connection: Any, socket: Any, to_error: Callable[[str], Exception]) -> None:
        self.connection = connection
        self._host = f"{connection.host}:{connection.port}"
        self._socket = socket
        self._reader = Reader(InvalidResponse, to_error, notEnoughData=_INCOMPLETE)
        self._buffer = bytearray(_READ_BYTES)

    def ask(self, packed: bytes, count: int) -> list[Any]:
        try:
            self._socket.sendall(packed)
            return [self._answer() for _ in range(count)]
        except builtins.TimeoutError as error:
            raise TimeoutError(f"no answer from {self._host} for {self._socket.gettimeout():g} seconds") from error
        except OSError as error:
            raise ConnectionError(f"the line to {self._host} was cut: {error}") from error

    def _answer(self) -> Any:
        reader = self._reader
        answer = reader.gets()
        while answer is _INCOMPLETE:
            size = self._socket.recv_into(self._buffer)
            if size == 0:
                raise ConnectionError(f"{self._host} closed the line")
            reader.feed(self._buffer, 0, size)  # type: ignore[arg-type]
            answer = reader.gets()
        if isinstance(answer, ConnectionError):  # the server is starting, or takes no more connections
            raise answer
        return answer
