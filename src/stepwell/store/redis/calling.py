"""Calls to the server, over connections that are kept between them: as many as threads call at once.

The client's own way of sending a command takes three times as long, mostly because it asks the system each time whether the
line still stands. Here a line that was cut is noticed when it is used, and what was asked is asked again over a new one: every
batch may be sent again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from hiredis import pack_command
from redis.exceptions import ConnectionError, ResponseError, TimeoutError

from .fields import Arg

PAUSES = (0.01, 0.02, 0.04)
"""Seconds before it is tried again."""


class Calls:
    def __init__(self, client: Any, most: int | None = None) -> None:
        """`most`: how many connections are used at once; whoever needs another waits for one."""
        self._pool = client.connection_pool
        self._free: list[Any] = []
        self._permits = nullcontext() if most is None else threading.BoundedSemaphore(most)

    def call(self, *commands: Sequence[Arg]) -> list[Any]:
        """The answers to these commands, sent together. The first error that the server answers is raised."""
        packed = [pack_command(tuple(command)) for command in commands]  # type: ignore[arg-type]
        with self._permits:
            answers = self._ask(packed)
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise answer
        return answers

    def close(self) -> None:
        while self._free:
            self._pool.release(self._free.pop())

    def _ask(self, packed: Sequence[bytes]) -> list[Any]:
        for pause in (*PAUSES, None):
            try:
                connection = self._free.pop()
            except IndexError:
                connection = self._pool.get_connection()
            try:
                connection.send_packed_command(packed, check_health=False)
                answers = [_answer(connection) for _ in packed]
            except BaseException as error:
                # Another one is asked for, and with it who the server is by now: sentinels may name another.
                connection.disconnect()
                self._pool.release(connection)
                if pause is None or not isinstance(error, ConnectionError | TimeoutError):
                    raise
                time.sleep(pause)
            else:
                self._free.append(connection)
                return answers
        raise AssertionError


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error
