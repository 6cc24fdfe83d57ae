"""`isolation="process"`: bodies in processes of their own, which can be killed when their time is up.

Each place has one child process, started when it is first needed and used again. Parent and child speak through a pipe:
the parent sends what to run, the child may ask for outputs, and answers with a result or an error, all of it plain data.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any

from ..codec import decode, encode
from ..define import bodies_for
from ..errors import RetryLater, Stopped
from ..graph.document import node_document, node_from_document
from ..kernel import settling
from ..kernel.settling import Failure
from ..model import Settle
from .attempt import Attempt, settle
from .work import Held

_SPAWN = multiprocessing.get_context("spawn")


class ProcessBodies:
    """A number of places for bodies, each with a child process."""

    def __init__(self, places: int, settled: Callable[[Held, Settle], None]) -> None:
        self._settled = settled
        self._queue: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._places = [_Place(self._queue, settled) for _ in range(places)]

    def put(self, attempt: Attempt) -> None:
        self._queue.put(attempt)

    def close(self) -> None:
        for _ in self._places:
            self._queue.put(None)
        for place in self._places:
            place.end()


class _Place:
    """One child at a time, and the thread that talks to it."""

    def __init__(self, work: queue.SimpleQueue[Attempt | None], settled: Callable[[Held, Settle], None]) -> None:
        self._work = work
        self._settled = settled
        self._child: Any = None
        self._pipe: Connection | None = None
        threading.Thread(target=self._serve, name="stepwell-process", daemon=True).start()

    def end(self) -> None:
        child = self._child
        if child is not None and child.is_alive():
            child.kill()

    def _serve(self) -> None:
        while (attempt := self._work.get()) is not None:
            held = attempt.held
            if held.over or held.stop:
                self._settled(held, settle(held, settling.CANCELLED))
                continue
            held.begun = True
            try:
                self._settled(held, self._converse(attempt))
            except Exception as error:
                self._settled(held, attempt.raised(error))
        self.end()

    def _converse(self, attempt: Attempt) -> Settle:
        held = attempt.held
        if self._child is None or not self._child.is_alive():
            self._start()
        child, pipe = self._child, self._pipe
        assert pipe is not None
        held.interrupt = child.kill
        try:
            pipe.send(_request(attempt))
            while True:
                kind, value = pipe.recv()
                if kind != "outputs":
                    return _settlement(attempt, kind, value)
                pipe.send(_outputs(attempt, value))
        except (EOFError, OSError):
            child.join()
            self._child = None
            if held.stop:
                return settle(held, settling.CANCELLED)
            failure = Failure(["stepwell.ProcessDied", "builtins.Exception"])
            return attempt.failed(failure, "ProcessDied", _how_it_died(child.exitcode))
        finally:
            held.interrupt = None

    def _start(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._child = _SPAWN.Process(target=serve, args=(theirs,), name="stepwell-body", daemon=True)
        self._child.start()
        theirs.close()


def _how_it_died(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return f"the process of the body was killed by signal {-exitcode}"
    return f"the process of the body ended with exit code {exitcode} before the body returned"


def _request(attempt: Attempt) -> dict[str, Any]:
    held, ctx = attempt.held, attempt.context
    order = held.facts.graph.order
    return {
        "target": held.facts.target,
        "node": encode(node_document(held.spec)),
        "input": encode(dict(held.facts.input)),
        "needs": {order[index]: output for index, output in held.inputs},
        "context": {
            "run_id": ctx.run_id,
            "workflow": ctx.workflow,
            "node_id": ctx.node_id,
            "node_name": ctx.node_name,
            "attempt": ctx.attempt,
            "idempotency_key": ctx.idempotency_key,
        },
    }


def _outputs(attempt: Attempt, name: str | None) -> tuple[str, Any]:
    try:
        outputs = attempt.context.outputs
        return "value", encode(outputs[name] if name is not None else outputs.all())
    except KeyError as error:
        return "missing", str(error.args[0])


def _settlement(attempt: Attempt, kind: str, value: Any) -> Settle:
    outcome = value.get("outcome")
    attempt.context.outcome = decode(outcome) if outcome else {}
    if kind == "returned":
        return attempt.returned(decode(value["output"]))
    if value["stopped"] and attempt.held.stop:
        return settle(attempt.held, settling.CANCELLED)
    failure = Failure(value["names"], retry_after=value["retry_after"])
    return attempt.failed(failure, value["type"], value["message"], value["traceback"])


# What follows runs in the child.


class ChildContext:
    """`ctx` in a process of its own: the same names, with outputs asked from the parent."""

    def __init__(self, pipe: Connection, input: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        self.run_id: str = facts["run_id"]
        self.workflow: str = facts["workflow"]
        self.node_id: str = facts["node_id"]
        self.node_name: str = facts["node_name"]
        self.attempt: int = facts["attempt"]
        self.idempotency_key: str = facts["idempotency_key"]
        self.input = dict(input)
        self.outcome: dict[str, Any] = {}
        self.outputs = _ChildOutputs(pipe)
        self.stopping = False
        """A process is killed when it should stop, so it never sees this change."""

    def check(self) -> None:
        return None


class _ChildOutputs(Mapping[str, Any]):
    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __getitem__(self, name: str) -> Any:
        self._pipe.send(("outputs", name))
        kind, value = self._pipe.recv()
        if kind == "missing":
            raise KeyError(value)
        return decode(value)

    def all(self) -> dict[str, Any]:
        self._pipe.send(("outputs", None))
        found: dict[str, Any] = decode(self._pipe.recv()[1])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())


def serve(pipe: Connection) -> None:
    """Run bodies until the parent goes away."""
    while True:
        try:
            request = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(_answer(pipe, request))


def _answer(pipe: Connection, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    input = decode(request["input"])
    context = ChildContext(pipe, input, request["context"])
    try:
        body = bodies_for(request["target"]).find(node_from_document(decode(request["node"])))
        outputs = {name: decode(output) for name, output in request["needs"].items()}
        result = body.invoke(input, context, outputs)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
        return "returned", {"output": encode(result), "outcome": _outcome(context)}
    except BaseException as error:
        return "raised", {
            "names": [f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__],
            "type": type(error).__name__,
            "message": str(error),
            "traceback": traceback.format_exc(),
            "retry_after": error.seconds if isinstance(error, RetryLater) else None,
            "stopped": isinstance(error, Stopped),
            "outcome": _outcome(context),
        }


def _outcome(context: ChildContext) -> bytes | None:
    try:
        return encode(context.outcome) if context.outcome else None
    except Exception:
        return None
