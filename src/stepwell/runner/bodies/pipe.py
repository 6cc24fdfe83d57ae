"""How a process for bodies says to its parent what its body says."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any

from ...errors import Stopped
from ...model import LineRow
from ...replay.effects.record import Line
from ..worker.debounce import Debounce
from .log_lines import BodyOutput


class Pipe:
    """The child's end of the pipe, for one body, several threads of which may write to it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._closed = False

    def send(self, message: Any) -> None:
        with self._lock:
            if self._closed:
                raise Stopped("the body has ended: nothing of what its threads still do is recorded")
            self._connection.send(message)

    def ask(self, kind: str, value: Any = None) -> Any:
        """Send a question and wait for its answer; several threads may ask, one after the other."""
        with self._asking:
            self.send((kind, value))
            answer = self._connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Nothing may follow: it would be taken for what the next body says. Who has asked is answered first."""
        with self._asking, self._lock:
            self._closed = True


class PipeSink:
    """Records of a body's effects are sent at once, too; the parent keeps or stores them."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def keep(self, lines: list[Line]) -> None:
        self._pipe.send(("keep", lines))

    def read_clock(self, at: int) -> None:
        self._pipe.send(("read_clock", at))

    def append(self, lines: list[Line]) -> None:
        self._pipe.ask("append", lines)

    def earlier(self) -> Iterable[LineRow]:
        return [LineRow(*row) for row in self._pipe.ask("earlier")]


class PipeOutput(BodyOutput):
    """Sends each line at once: the last words of a body that crashes its process are the ones that matter."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe
        self._store_soon = Debounce(self._beat, "stepwell-progress")

    def finish(self) -> None:
        """Say what is left. Nothing may follow: it would be taken for words of the next body."""
        self._store_soon.close()
        with self._lock:
            self._finish()
            self._send_progress()
            self._tell_dropped()

    def _beat(self) -> None:
        with self._lock:
            if not self._closed:
                self._send_progress()

    def _send_progress(self) -> None:
        if (mark := self._mark()) is not None:
            self._pipe.send(("mark", mark))

    def _keep(self, data: bytes) -> bool:
        self._pipe.send(("line", data))
        return True

    def _marked(self) -> None:
        self._store_soon.wake()

    def _drop(self, at: int, lines: int) -> None:
        before = self.dropped
        super()._drop(at, lines)
        # AttemptOutput each time it has doubled, so that a body which is killed leaves about the right number.
        if before.bit_length() != self.dropped.bit_length():
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self.dropped:
            self._pipe.send(("dropped", (self.dropped, self._at)))
