"""A process for bodies: what runs in the child.

It runs one body after the other until its parent goes away, and asks the parent for what only the parent knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

from ...base.codec import decode
from ...base.masking import hide
from ...core.graph import NodeSpec
from ...core.graph.document import node_from_document
from ...core.model import LineRow
from ...define import Bodies, bodies_for
from ...define.code.registry import OwnJobs
from ...errors import Stopped
from ...history.effects.record import Line
from ...history.effects.recorder import Recorder
from ...history.effects.repeatable import Outside
from ..delayed_calls import DelayedCalls
from .attempt import Course, leave_body
from .capture import refresh_capture, start_capture
from .host import AttemptInfo, Host, cannot_hand_over
from .log_lines import BodyOutput
from .outputs import Outputs
from .raised import Raised

PROGRESS_SECONDS = 0.4
"""How long progress of a body waits before it is sent to the parent."""
Answer = tuple[Raised | None, bytes | None, bytes | None]
"""The result of a body: the error or else the output, and the outcome. Neither: it was not called, because of its condition."""


class BodyRequest(NamedTuple):
    """What the parent sends a child to run a body, as plain data."""

    target: str | None
    state: str | None
    node: bytes
    """The node as a document."""
    info: AttemptInfo
    needs: Mapping[str, bytes]
    """The outputs that the body takes, by node."""
    secrets: Any
    guarded: bool
    own_jobs: OwnJobs | None = None
    """What a job of Stepwell itself gets of its parent."""


class Pipe:
    """The child's end of the pipe, for one body. Several threads of the body may write to it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._closed = False

    def send(self, message: Any) -> None:
        with self._lock:
            if self._closed:
                raise Stopped("the body has ended: whatever its threads still do is not recorded")
            self._connection.send(message)

    def ask(self, kind: str, value: Any = None) -> Any:
        """Send a question and wait for its answer. Several threads may ask; they take turns."""
        with self._asking:
            self.send((kind, value))
            answer = self._connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Send nothing more: it would be taken for messages of the next body. Questions under way are answered first."""
        with self._asking, self._lock:
            self._closed = True


class PipeSink:
    """Sends the records of a body's effects at once; the parent keeps or stores them."""

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
    """Sends each line at once: if the body crashes its process, the last lines are those that matter."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe
        self._calls = DelayedCalls("stepwell-progress")
        self._progress_soon = self._calls.add(self._send_soon, PROGRESS_SECONDS)

    def finish(self) -> None:
        """Send what is left. Nothing may follow: it would be taken for output of the next body."""
        self._calls.close()
        with self._lock:
            self._finish()
            self._send_progress()
            self._tell_dropped()

    def _send_soon(self) -> None:
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
        self._progress_soon.wake()

    def _drop(self, at: int, lines: int) -> None:
        before = self.dropped
        super()._drop(at, lines)
        # Sent whenever the number doubles, so that a body that is killed leaves about the right one.
        if before.bit_length() != self.dropped.bit_length():
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self.dropped:
            self._pipe.send(("dropped", (self.dropped, self._at)))


class ParentHost(Host):
    """Answers `ctx` in a child, from the request or by asking the parent."""

    def __init__(self, pipe: Pipe, request: BodyRequest) -> None:
        self._pipe = pipe
        self._request = request
        self._output = PipeOutput(pipe)

    @property
    def info(self) -> AttemptInfo:
        return self._request.info

    @cached_property
    def spec(self) -> NodeSpec:
        return node_from_document(decode(self._request.node))

    @cached_property
    def bodies(self) -> Bodies:
        own = self._request.own_jobs
        return bodies_for(self._request.target, self._request.state, own_jobs=None if own is None else lambda: own)

    def arguments(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        return self.info.input, {name: decode(output) for name, output in self._request.needs.items()}

    def outputs(self) -> Outputs:
        return PipeOutputs(self._pipe)

    def state(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = decode(self._pipe.ask("state"))
        return found

    def outside(self) -> Outside:
        return Recorder(self.info.node_name, self.info.attempt, PipeSink(self._pipe))

    def output(self) -> PipeOutput:
        return self._output

    def stopping(self) -> bool:
        """Always False: a process that should stop is killed."""
        return False


class PipeOutputs(Outputs):
    """Outputs that the parent reads, each once."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def __getitem__(self, name: str) -> Any:
        return decode(self._pipe.ask("output", name))

    def all(self) -> dict[str, Any]:
        return dict(decode(self._pipe.ask("outputs")))

    def parents(self) -> dict[str, Any]:
        return dict(decode(self._pipe.ask("parents")))


class ChildAttempt(Course[Answer]):
    """The result is sent to the parent, which settles it."""

    def _completed(self, output: bytes, outcome: bytes | None) -> Answer:
        return None, output, outcome

    def _skipped(self) -> Answer:
        return None, None, None

    def _handed_over(self, workflow: object) -> NoReturn:
        why = "it ran in a process of its own; leave out isolation='process' for it, its child run may have it"
        raise cannot_hand_over(self.host.spec.name, why)

    def _failed(self, raised: Raised, outcome: bytes | None) -> Answer:
        return raised, None, outcome


def serve(connection: Connection) -> None:
    """Run bodies until the parent goes away."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpgid(0, 0)  # Ctrl-C is the parent's to handle, and what a body starts is killed with the group
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    multiprocessing.current_process().daemon = False  # so that bodies can use multiprocessing
    start_capture()
    try:
        connection.send(("ready", None))
        while True:
            connection.send(("ended", _run(connection, connection.recv())))
    except (EOFError, BrokenPipeError):
        return


def _die_with_the_parent() -> None:
    """Without a parent, nobody would take the result, and another worker may be running the node again."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _run(connection: Connection, request: BodyRequest) -> Answer:
    hide(request.secrets)
    refresh_capture()
    pipe = Pipe(connection)
    host = ParentHost(pipe, request)
    try:
        return ChildAttempt(host, guarded=request.guarded).perform_all(asyncio.run)
    finally:
        leave_body()
        host.output().finish()
        pipe.close()
