"""A process for bodies: what runs in the child, until its parent goes away.

It runs one body after the other, each as an attempt that asks the parent for what only the parent knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from functools import cached_property
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from ...codec import decode
from ...define import Bodies, bodies_for
from ...graph.document import node_from_document
from ...masking import hide
from ...replay.effects.current import enter
from ...replay.effects.recorder import Recorder
from ...replay.effects.repeatable import Outside
from .attempt import Course
from .capture import speak, start_capture
from .host import Told
from .outputs import Outputs
from .pipe import Pipe, PipeOutput, PipeSink
from .raised import Raised

Answer = tuple[Raised | None, bytes | None, bytes | None]
"""What came of a body: the error, or else the output; and the outcome."""


class Request(NamedTuple):
    """What a child is sent to run a body, as plain data."""

    target: str | None
    state: str | None
    node: bytes
    """The node as a document."""
    told: Told
    needs: Mapping[str, bytes]
    """The outputs that the body takes, by node."""
    secrets: Any
    guarded: bool


class ParentHost:
    """Answers `ctx` in a child: from what was sent, and else by asking the parent."""

    replays = False

    def __init__(self, pipe: Pipe, request: Request) -> None:
        self._pipe = pipe
        self._request = request
        self._output = PipeOutput(pipe)
        self.told = request.told
        self.spec = node_from_document(decode(request.node))

    @cached_property
    def bodies(self) -> Bodies:
        return bodies_for(self._request.target, self._request.state)

    def arguments(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        given = {name: decode(output) for name, output in self._request.needs.items()}
        return self.told.input, dict.fromkeys(self.spec.needs) | given

    def outputs(self) -> Outputs:
        return PipeOutputs(self._pipe)

    def state(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = decode(self._pipe.ask("state"))
        return found

    def outside(self) -> Outside:
        return Recorder(self.told.node_name, self.told.attempt, PipeSink(self._pipe))

    def output(self) -> PipeOutput:
        return self._output

    def stopping(self) -> bool:
        """A process is killed when it should stop, so it never sees this change."""
        return False


class PipeOutputs(Outputs):
    """Asked from the parent, which reads each once."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def __getitem__(self, name: str) -> Any:
        return decode(self._pipe.ask("output", name))

    def all(self) -> dict[str, Any]:
        found: dict[str, Any] = decode(self._pipe.ask("outputs"))
        return found


class ChildAttempt(Course[Answer]):
    """What came of it is sent to the parent, which settles it."""

    def _completed(self, output: bytes, outcome: bytes | None) -> Answer:
        return None, output, outcome

    def _failed(self, raised: Raised, outcome: bytes | None) -> Answer:
        return raised, None, outcome


def serve(connection: Connection) -> None:
    """Run bodies until the parent goes away."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpgid(0, 0)  # Ctrl-C is for the parent to decide on, and what a body starts is killed with it
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    multiprocessing.current_process().daemon = False  # or bodies could not use multiprocessing themselves
    start_capture()
    try:
        connection.send(("ready", None))
        while True:
            connection.send(("ended", _run(connection, connection.recv())))
    except (EOFError, BrokenPipeError):
        return


def _die_with_the_parent() -> None:
    """Nobody would take the result, and somebody else may be running the node again."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _run(connection: Connection, request: Request) -> Answer:
    hide(request.secrets)
    pipe = Pipe(connection)
    host = ParentHost(pipe, request)
    try:
        return ChildAttempt(host, guarded=request.guarded).perform_all(asyncio.run)
    finally:
        speak(None)
        enter(None)
        host.output().finish()
        pipe.close()
