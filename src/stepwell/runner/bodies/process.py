"""`isolation="process"`: bodies in processes of their own, which can be killed when their time is up.

Each place has one child process, started when it is first needed and used again. Parent and child speak through a pipe:
the child says that it is ready, the parent sends what to run, the child may ask for outputs, says what its body logs and
prints as it does, and answers with a result or an error, all of it plain data.

A child leads a process group: what a body has started is killed with it. It dies with its parent, however that dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from ...codec import decode, encode
from ...define import Bodies, bodies_for, check_unchanged
from ...define.code.handled import HandledBody, rendered_for_process
from ...errors import NotStored, StateError, StepwellError, Stopped, StoreError
from ...graph import NodeSpec
from ...graph.document import node_document, node_from_document
from ...kernel import settling
from ...kernel.settling import Failure
from ...masking import hidden, hide
from ...model import Settle
from ...model.outputs import output_of
from ...replay.effects.current import enter
from ...replay.effects.record import Line
from ...replay.effects.recorder import Recorder, Sink
from ...replay.effects.repeatable import Outside, Repeatable
from .attempt import Attempt, Raised, kept_outcome, kept_output, settle
from .capture import speak, start_capture
from .context import RunInfo, check_effects_allowed, checked_key, no_state
from .held import Held
from .pipe import Pipe, PipeOutput, PipeSink

_SPAWN = multiprocessing.get_context("spawn")


class ProcessBodies:
    """A number of places for bodies, each with a child process.

    `begins` says whether a body may begin: it may have been stopped or given back while its process started.
    """

    def __init__(self, places: int, begins: Callable[[Attempt], bool], settled: Callable[[Held, Settle], None]) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Attempt] = []
        self._idle: list[_Place] = []
        self._places = [_Place(begins, settled, self._next) for _ in range(places)]
        self._idle.extend(reversed(self._places))

    def put(self, attempt: Attempt) -> None:
        with self._lock:
            if self._idle:
                self._idle.pop().give(attempt)
            else:
                self._waiting.append(attempt)

    def close(self) -> None:
        for place in self._places:
            place.close()

    def _next(self, place: _Place) -> None:
        """A place is free. The one that was used last is used next, so that no process starts without need."""
        with self._lock:
            if self._waiting:
                place.give(self._waiting.pop(0))
            else:
                self._idle.append(place)


class _Place:
    """One child at a time, and the thread that talks to it."""

    def __init__(
        self,
        begins: Callable[[Attempt], bool],
        settled: Callable[[Held, Settle], None],
        free: Callable[[_Place], None],
    ) -> None:
        self._begins = begins
        self._settled = settled
        self._free = free
        self._work: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._child: _Child | None = None
        self._closed = False
        threading.Thread(target=self._serve, name="stepwell-process", daemon=True).start()

    def give(self, attempt: Attempt) -> None:
        self._work.put(attempt)

    def close(self) -> None:
        self._closed = True
        self._work.put(None)
        if (child := self._child) is not None:
            child.kill()

    def _serve(self) -> None:
        while (attempt := self._work.get()) is not None:
            try:
                settlement = self._converse(attempt)
            except BaseException as error:  # whatever it is, this thread has other bodies to serve
                settlement = attempt.raised(error)
            self._free(self)  # before the next body is claimed: it gets this process, and no other is started for it
            if settlement is not None:
                self._settled(attempt.held, settlement)
        self._drop()

    def _converse(self, attempt: Attempt) -> Settle | None:
        """Have the body run; None when it was not to begin any more."""
        held, child = attempt.held, self._living_child()
        try:
            if not child.ready:
                child.receive()
                child.ready = True
            child.busy_with(held)
            held.interrupt = partial(child.kill, held)
            if not self._begins(attempt):
                return None
            child.send(_request(attempt))
            while True:
                kind, value = child.receive()
                if kind == "outputs":
                    child.send(_outputs(attempt, value))
                elif kind == "state":
                    child.send(_state(attempt))
                elif kind in ("line", "mark", "dropped"):
                    if (output := attempt.output()) is not None:
                        output.relay(kind, value)
                elif kind in _RECORDS:
                    _RECORDS[kind](child, attempt.sink(), value)
                else:
                    return _settlement(attempt, kind, value)
        except (EOFError, OSError):
            how = child.how_it_died()
            self._drop()
            if held.stop:
                return settle(held, settling.stopped(held.spec) if held.begun else settling.CANCELLED)
            return attempt.failed(Failure(["stepwell.ProcessDied", "builtins.Exception"]), "ProcessDied", how)
        except BaseException:
            self._drop()  # it waits for an answer that will not come
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


class _Child:
    """A child process and the pipe to it."""

    def __init__(self) -> None:
        self.ready = False
        self._lock = threading.Lock()
        self._held: Held | None = None
        self._pipe, theirs = _SPAWN.Pipe()
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
        """The next message; EOFError when the child is gone, also when something it started keeps the pipe open."""
        while not self._pipe.poll(1.0):
            if not self.is_alive() and not self._pipe.poll():
                raise EOFError
        return self._pipe.recv()

    def kill(self, held: Held | None = None) -> None:
        """End it with all that it started; with `held` only if that is what it works on."""
        with self._lock:
            if (held is None or held is self._held) and self._process.is_alive():
                with contextlib.suppress(OSError, AttributeError):  # it leads no group yet, or there are none (Windows)
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
                f"the process for the body ended with exit code {exitcode} before it was ready; what it wrote to stderr "
                'says why. Is what the main module does when it is run below `if __name__ == "__main__":`?'
            )
        if exitcode is not None and exitcode < 0:
            return f"the process of the body was killed by signal {-exitcode}"
        return f"the process of the body ended with exit code {exitcode} before the body returned"


def _request(attempt: Attempt) -> dict[str, Any]:
    held, ctx = attempt.held, attempt.context
    spec = held.spec
    if held.facts.bodies.restricted or spec.templated:  # the child imports whatever it is told to
        body = held.facts.bodies.find(spec)
        if isinstance(body, HandledBody):
            spec = rendered_for_process(spec, body, held.facts.input, ctx, attempt.needed_outputs())
    order = held.facts.graph.order
    return {
        "target": held.facts.target,
        "state": held.facts.graph.state,
        "node": encode(node_document(spec)),
        "input": encode(dict(held.facts.input)),
        "needs": {order[index]: output_of(output) for index, output in held.inputs},
        "secrets": hidden(),
        "context": {
            "run_id": ctx.run_id,
            "workflow": ctx.workflow,
            "node_id": ctx.node_id,
            "node_name": ctx.node_name,
            "attempt": ctx.attempt,
            "idempotency_key": ctx.idempotency_key,
            "generation": held.generation,
            "seed": ctx.seed,
            "order_key": ctx.order_key,
            "identity": held.facts.graph.identity(held.index),
        },
        "guarded": attempt.guarded,
    }


def _outputs(attempt: Attempt, name: str | None) -> tuple[str, Any]:
    try:
        outputs = attempt.context.outputs
        return "value", encode(outputs[name] if name is not None else outputs.all())
    except KeyError as error:
        return "missing", str(error.args[0])


def _state(attempt: Attempt) -> tuple[str, Any]:
    try:
        return "value", encode(dict(attempt.context.state_values()))
    except StateError as error:
        return "broken", (str(error), error.field, error.node)


def _keep(child: _Child, sink: Sink, lines: list[Line]) -> None:
    sink.keep(lines)


def _read_clock(child: _Child, sink: Sink, at: int) -> None:
    sink.read_clock(at)


def _append(child: _Child, sink: Sink, lines: list[Line]) -> None:
    try:
        sink.append(lines)
    except NotStored as error:
        child.send(NotStored(str(error)))
    except StepwellError as error:
        child.send(Stopped(str(error)))
    else:
        child.send(None)


def _earlier(child: _Child, sink: Sink, nothing: None) -> None:
    try:
        child.send(([tuple(row) for row in sink.earlier()], None))
    except StoreError as error:
        child.send(([], StoreError(str(error))))


_RECORDS: Mapping[str, Callable[[_Child, Sink, Any], None]] = {
    "effect": _keep,
    "clock": _read_clock,
    "durable": _append,
    "earlier": _earlier,
}
"""What a child tells or asks about the effects of its body."""


def _settlement(attempt: Attempt, kind: str, value: Any) -> Settle:
    if kind == "returned":
        output, outcome = value
        return attempt.completed(output, _whole_outcome(attempt, outcome))
    raised, outcome = value
    return attempt.told(raised, _whole_outcome(attempt, outcome))


def _whole_outcome(attempt: Attempt, told: bytes | None) -> bytes | None:
    """What the child told, and what was noted before the body was sent to it."""
    noted = attempt.context.outcome
    return told if not noted else encode(noted if told is None else {**noted, **decode(told)})


# What follows runs in the child.


class ChildContext(Repeatable):
    """`ctx` in a process of its own: the same names, with outputs asked from the parent."""

    def __init__(
        self, pipe: Pipe, output: PipeOutput, input: Mapping[str, Any], facts: Mapping[str, Any], spec: NodeSpec
    ) -> None:
        super().__init__()
        self._pipe = pipe
        self._facts = facts
        self._spec = spec
        self._state: Any = None
        self.bodies: Bodies | None = None
        """Where the state of the workflow is declared, once that is found."""
        self.run_id: str = facts["run_id"]
        self.workflow: str = facts["workflow"]
        self.node_id: str = facts["node_id"]
        self.node_name: str = facts["node_name"]
        self.parents = spec.depends_on
        self.attempt: int = facts["attempt"]
        self.idempotency_key: str = facts["idempotency_key"]
        self.input = dict(input)
        self.run = RunInfo(self.run_id, self.workflow, self.input)
        self.outcome: dict[str, Any] = {}
        self.outputs = _ChildOutputs(pipe)
        self.progress = output.progress
        self.stopping = False
        """A process is killed when it should stop, so it never sees this change."""

    @property
    def state(self) -> Any:
        if self._state is None:
            declared = None if self.bodies is None else self.bodies.state
            if declared is None:
                raise no_state(self.workflow)
            kind, value = self._pipe.ask(("state", None))
            if kind == "broken":
                message, field, node = value
                raise StateError(message, field=field, node=node)
            self._state = declared.view(decode(value))
        return self._state

    def check_state(self) -> None:
        if self._state is not None:
            check_unchanged(self._state, self.node_name)

    def check(self) -> None:
        return None

    def use_key(self, key: str) -> None:
        """The node has a key of its own."""
        generation = self._facts["generation"]
        own = checked_key(key, self.node_name)
        self.idempotency_key = f"{own}:{generation}" if generation else own

    @property
    def seed(self) -> int:
        return int(self._facts["seed"])

    @property
    def order_key(self) -> int:
        return int(self._facts["order_key"])

    @property
    def _identity(self) -> str:
        return str(self._facts["identity"])

    def _open_outside(self) -> Outside:
        return Recorder(self.node_name, self.attempt, PipeSink(self._pipe))

    def _check_effects_allowed(self, name: str) -> None:
        check_effects_allowed(self._spec, name)


class _ChildOutputs(Mapping[str, Any]):
    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def __getitem__(self, name: str) -> Any:
        kind, value = self._pipe.ask(("outputs", name))
        if kind == "missing":
            raise KeyError(value)
        return decode(value)

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self[name] for name in names}

    def all(self) -> dict[str, Any]:
        found: dict[str, Any] = decode(self._pipe.ask(("outputs", None))[1])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())


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
            connection.send(_answer(Pipe(connection), connection.recv()))
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


def _answer(pipe: Pipe, request: dict[str, Any]) -> tuple[str, tuple[Any, bytes | None]]:
    hide(request["secrets"])
    input = decode(request["input"])
    output = PipeOutput(pipe)
    spec = node_from_document(decode(request["node"]))
    context = ChildContext(pipe, output, input, request["context"], spec)
    name = context.node_name
    speak(output)
    enter(context)
    try:
        context.bodies = bodies = bodies_for(request["target"], request["state"])
        body = bodies.find(spec)
        outputs = {name: decode(output) for name, output in request["needs"].items()}
        invoke = partial(body.invoke, input, context, outputs)
        result = _guarded(invoke, name) if request["guarded"] else invoke()
        if isinstance(result, Coroutine):
            result = asyncio.run(result)
        context.leave()
        context.check_state()
        kept = kept_output(result, name, bodies, context.workflow)
        return "returned", (kept, kept_outcome(context.outcome, name))
    except BaseException as error:
        context.leave()
        return "raised", (Raised.of(error), _outcome(context))
    finally:
        speak(None)
        enter(None)
        output.finish()
        pipe.close()


def _guarded(invoke: Callable[[], Any], name: str) -> Any:
    from ...replay.guarding.guard import guarded_call

    return guarded_call(invoke, name)


def _outcome(context: ChildContext) -> bytes | None:
    try:
        return kept_outcome(context.outcome, context.node_name)
    except BaseException:
        return None
