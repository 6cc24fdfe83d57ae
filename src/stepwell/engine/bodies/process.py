"""`isolation="process"`: bodies in child processes, which can be killed when their time is up.

Each slot has one child process (`child.py`), started on first use and used again. Parent and child exchange plain data over
a pipe: the child reports that it is ready, and the parent sends what to run. The child may ask for outputs, sends what its
body logs and prints, and finally sends the result or the error.

A child leads a process group: whatever a body has started is killed with it. A child dies with its parent, however that ends.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.process
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from ...base.codec import decode, encode
from ...base.masking import hidden
from ...core.graph.document import node_document
from ...core.kernel import settling
from ...core.kernel.settling import Failure
from ...core.model import Settle
from ...core.model.outputs import output_of
from ...define.code.handled import HandledBody, rendered_for_process
from ...define.code.registry import is_own
from ...errors import DefinitionError, NotStored, StateError, Stopped, StoreError
from .attempt import Attempt, settle
from .child import BodyRequest, serve
from .executor import Executor, WorkerPort
from .held import Held
from .recording import AttemptSink

_SPAWN = multiprocessing.get_context("spawn")
_STARTING = threading.Lock()
"""Only one child is started at a time, because `_children_allowed` changes a record of the whole process."""


class ProcessBodies(Executor):
    """Slots for bodies, each with a child process."""

    kind = "process"

    def __init__(self, worker: WorkerPort, limit: int) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Held] = []
        self._idle: list[_Slot] = []
        self._slots = [_Slot(worker, self._next) for _ in range(limit)]
        self._idle.extend(reversed(self._slots))

    def begin(self, bodies: list[Held], *, keep: bool = False) -> None:
        with self._lock:
            for held in bodies:
                if self._idle:
                    self._idle.pop().give(held)
                else:
                    self._waiting.append(held)

    def close(self) -> None:
        for slot in self._slots:
            slot.close()

    def _next(self, slot: _Slot) -> None:
        """A slot is free. The one used last is used next, so that no process is started without need."""
        with self._lock:
            if self._waiting:
                slot.give(self._waiting.pop(0))
            else:
                self._idle.append(slot)


class _Slot:
    """One child process at a time, and the thread that talks to it."""

    def __init__(self, worker: WorkerPort, free: Callable[[_Slot], None]) -> None:
        self._worker = worker
        self._free = free
        self._work: queue.SimpleQueue[Held | None] = queue.SimpleQueue()
        self._child: _Child | None = None
        self._closed = False
        threading.Thread(target=self._serve, name="stepwell-process", daemon=True).start()

    def give(self, held: Held) -> None:
        self._work.put(held)

    def close(self) -> None:
        self._closed = True
        self._work.put(None)
        if (child := self._child) is not None:
            child.kill()

    def _serve(self) -> None:
        while (held := self._work.get()) is not None:
            attempt = self._worker.attempt(held)
            try:
                settlement = self._converse(attempt)
            except BaseException as error:  # this thread has other bodies to serve
                settlement = attempt.raised(error)
            self._free(self)  # first, so that the next body to be claimed gets this process instead of a new one
            if settlement is not None:
                self._worker.settled(held, settlement)
        self._drop()

    def _converse(self, attempt: Attempt) -> Settle | None:
        """Have the child run the body. None if it was not allowed to begin."""
        held, child = attempt.held, self._living_child()
        try:
            if not child.ready:
                child.receive()
                child.ready = True
            child.busy_with(held)
            held.interrupt = partial(child.kill, held)
            if not self._worker.begins(attempt):
                return None
            child.send(_request(attempt))
            while True:
                kind, value = child.receive()
                if kind == "ended":
                    raised, returned, outcome = value
                    return attempt.ended(raised, returned, _with_what_was_noted(attempt, outcome))
                if kind in _ASKED:
                    child.send(_answer(attempt, kind, value))
                elif kind in _RECORDED:
                    _RECORDED[kind](attempt.host.sink(), value)
                elif (output := attempt.host.output()) is not None:
                    output.relay(kind, value)
        except (EOFError, OSError):
            how = child.how_it_died()
            self._drop()
            if held.stop:
                return settle(held, settling.stopped(held.spec) if held.begun else settling.CANCELLED)
            return attempt.failed(Failure(["stepwell.ProcessDied", "builtins.Exception"]), "ProcessDied", how)
        except BaseException:
            self._drop()  # the child waits for an answer that will not come
            raise
        finally:
            held.interrupt = None
            child.busy_with(None)

    def _living_child(self) -> _Child:
        child = self._child
        if child is None or not child.is_alive():
            self._drop()
            child = self._child = _Child()
        if self._closed:
            child.kill()
        return child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.join()


@contextmanager
def _children_allowed() -> Iterator[None]:
    """Let this process start children. multiprocessing forbids it to a daemonic process, as Celery's are, lest its children
    outlive it; ours never do. And Celery's record of the process cannot be sent to a child, so another one replaces it."""
    home: Any = multiprocessing.process
    with _STARTING:
        record = home._current_process
        if not isinstance(record, home.BaseProcess):
            home._current_process = _ProcessRecord(os.urandom(32))
        try:
            yield
        finally:
            home._current_process = record


class _ProcessRecord(multiprocessing.process.BaseProcess):
    """multiprocessing's record of this process, as if it were a main process."""

    def __init__(self, key: bytes) -> None:
        self._identity: tuple[int, ...] = ()
        self._name = "MainProcess"
        self._parent_pid = self._popen = None
        self._closed = False
        kept: Any = multiprocessing.process
        self._config = {"authkey": kept.AuthenticationString(key), "semprefix": "/mp"}


class _Child:
    """A child process and the pipe to it."""

    def __init__(self) -> None:
        self.ready = False
        self._lock = threading.Lock()
        self._held: Held | None = None
        self._pipe, theirs = _SPAWN.Pipe()
        with _children_allowed():
            self._process = _SPAWN.Process(target=serve, args=(theirs,), name="stepwell-body", daemon=True)
            self._process.start()
        theirs.close()

    def is_alive(self) -> bool:
        with self._lock:
            return self._process.is_alive()

    def busy_with(self, held: Held | None) -> None:
        with self._lock:
            self._held = held

    def send(self, message: Any) -> None:
        self._pipe.send(message)

    def receive(self) -> Any:
        """The next message. Raises EOFError if the child has died, even if something that it started keeps the pipe open."""
        while not self._pipe.poll(1.0):
            if not self.is_alive() and not self._pipe.poll():
                raise EOFError
        return self._pipe.recv()

    def kill(self, held: Held | None = None) -> None:
        """Kill it with everything that it started. With `held`, only if it runs that attempt."""
        with self._lock:
            if (held is None or held is self._held) and self._process.is_alive():
                with contextlib.suppress(OSError, AttributeError):  # it has no group yet, or there are none (Windows)
                    os.killpg(self._process.pid or 0, signal.SIGKILL)
                self._process.kill()

    def join(self) -> None:
        self._process.join()
        self._pipe.close()

    def how_it_died(self) -> str:
        self._process.join(5)
        exitcode = self._process.exitcode
        if not self.ready:
            return (
                f"the process for the body ended with exit code {exitcode} before it was ready; its output on stderr "
                'says why. Is the code that the main module runs below `if __name__ == "__main__":`?'
            )
        if exitcode is not None and exitcode < 0:
            return f"the process of the body was killed by signal {-exitcode}"
        return f"the process of the body ended with exit code {exitcode} before the body returned"


def _request(attempt: Attempt) -> BodyRequest:
    held, host = attempt.held, attempt.host
    spec = held.spec
    if host.bodies.restricted or spec.templated:  # the child would import whatever it is told to
        host.bodies.find(spec)
        body = host.bodies.unconditional(spec)
        if isinstance(body, HandledBody) and spec.when is not None:
            raise DefinitionError(
                f"node {spec.name!r}: a node of a document that has a condition cannot have a process"
            )
        if isinstance(body, HandledBody):
            input, outputs = host.arguments()
            spec = rendered_for_process(spec, body, input, attempt.context, outputs)
    facts = held.facts
    needs: dict[str, bytes] = {facts.specs[index].id: output_of(output) for index, output in held.inputs}
    node = encode(node_document(spec))
    info = host.info._replace(input=dict(facts.input))
    own = host.bodies.own_jobs() if host.bodies.own_jobs is not None and is_own(spec.job or "") else None
    return BodyRequest(facts.target, facts.graph.state, node, info, needs, hidden(), attempt.guarded, own)


def _with_what_was_noted(attempt: Attempt, outcome: bytes | None) -> bytes | None:
    """The child's outcome, merged over what `ctx.outcome` held before the body was sent."""
    noted = attempt.context.outcome
    if not noted:
        return outcome
    return encode(noted if outcome is None else {**noted, **decode(outcome)})


def _answer(attempt: Attempt, kind: str, value: Any) -> Any:
    """Answer a question of the child. An error is returned, and raised in the child."""
    try:
        return _ASKED[kind](attempt, value)
    except (KeyError, StateError, NotStored, Stopped) as error:
        return error
    except StoreError as error:
        return StoreError(str(error))


_ASKED: Mapping[str, Callable[[Attempt, Any], Any]] = {
    "output": lambda attempt, name: encode(attempt.context.outputs[name]),
    # As pairs, because an encoded object has its keys sorted.
    "outputs": lambda attempt, _: encode(list(attempt.context.outputs.all().items())),
    "parents": lambda attempt, _: encode(list(attempt.context.outputs.parents().items())),
    "state": lambda attempt, _: encode(dict(attempt.host.state())),
    "append": lambda attempt, lines: attempt.host.sink().append(lines),
    "earlier": lambda attempt, _: [tuple(row) for row in attempt.host.sink().earlier()],
}
_RECORDED: Mapping[str, Callable[[AttemptSink, Any], None]] = {
    "keep": AttemptSink.keep,
    "read_clock": AttemptSink.read_clock,
}
