"""One attempt: call the body, and turn whatever happens into a settlement."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, NamedTuple

from ...clock import MAX_SECONDS
from ...codec import MAX_BYTES, clean, decode, encode
from ...define import Bodies, Delta
from ...errors import (
    DefinitionError,
    MissingJob,
    NotJson,
    PermanentError,
    RetryLater,
    StateError,
    Stopped,
    TransientError,
)
from ...ids import RunId
from ...importable import exception_name
from ...kernel import settling
from ...kernel.settling import Failure, Later, Verdict
from ...masking import mask
from ...model import Settle
from ...model.outputs import output_of
from ...replay.effects.current import enter
from ...words import class_names, message_of, short_name
from .capture import speak
from .context import Context, no_state
from .held import Held
from .log_lines import AttemptOutput, Lines
from .recording import AttemptSink, Ledger
from .visible_state import ReadOutputs

MAX_TRACEBACK = 16_000
MAX_OUTPUT = MAX_BYTES
MAX_OUTCOME = 16 * 1024 * 1024
"""Bytes of `ctx.outcome`, which is for people."""


_DATA = frozenset({type(None), bool, int, float, str, list, dict})
"""What bodies mostly return: asking whether it is a coroutine takes longer than some bodies."""

FrozenAt = Callable[[RunId], float | None]
"""Finds out when the graph of a run was frozen, in seconds since 1970. Asked only when somebody must be told."""


def _unknown(run_id: RunId) -> None:
    return None


class Attempt:
    """An attempt at work: what the body is called with, and what its end means."""

    __slots__ = ("_frozen_at", "_ledger", "_lines", "context", "guarded", "held")
    guarded_everywhere = False
    """Whether it is guarded also in threads that do not have its context, and in what it leaves behind."""

    def __init__(
        self,
        held: Held,
        read: ReadOutputs,
        lines: Lines,
        frozen_at: FrozenAt = _unknown,
        ledger: Ledger | None = None,
        *,
        guarded: bool = False,
        context: Context | None = None,
    ) -> None:
        self.held = held
        self.context = Context(held, read, lines, ledger) if context is None else context
        self.guarded = guarded
        """Whether its body may ask the clock, chance or the network only through `ctx`."""
        self._lines = lines
        self._ledger = ledger
        self._frozen_at = frozen_at

    def output(self) -> AttemptOutput | None:
        """Where its body says what it logs and prints; None when that is not recorded any more."""
        return self._lines.of(self.held)

    def sink(self) -> AttemptSink:
        """Where the effects of its body go when they are recorded in a process of its own."""
        return AttemptSink(self.held, self._lines, self._ledger)

    def perform(self) -> Settle | Coroutine[Any, Any, Any]:
        """Call the body and settle the attempt as it ended; a coroutine comes back, to be awaited on a loop."""
        speak(self)
        enter(self.context)
        try:
            result = self.call()
            if type(result) not in _DATA and isinstance(result, Coroutine):
                return result
            return self.returned(result)
        except BaseException as error:
            return self.raised(error)

    def call(self) -> Any:
        """Call the body: its result, or a coroutine when it is `async def`. Whatever it raises comes through."""
        facts, spec = self.held.facts, self.held.spec
        outputs = self.needed_outputs() if spec.needs else {}
        body = facts.bodies.find(spec)
        if not self.guarded:
            return body.invoke(facts.input, self.context, outputs)
        from ...replay.guarding.guard import (
            guarded_call,  # it looks at sockets and subprocesses, which few programs load
        )

        invoke = partial(body.invoke, facts.input, self.context, outputs)
        return guarded_call(invoke, spec.name, everywhere=self.guarded_everywhere)

    def needed_outputs(self) -> dict[str, Any]:
        """The outputs of the ancestors that the node needs; None of one that was skipped."""
        specs = self.held.facts.specs
        outputs: dict[str, Any] = dict.fromkeys(self.held.spec.needs)
        for index, output in self.held.inputs:
            outputs[specs[index].id] = decode(output_of(output))
        return outputs

    def returned(self, result: object) -> Settle:
        """The body returned: completed, unless the result cannot be kept."""
        try:
            held, context = self.held, self.context
            context.leave()
            name = held.spec.name
            if held.facts.seen is not None:
                context.check_state()
            output = kept_output(result, name, held.facts.bodies, held.facts.workflow)
            return self.completed(output, kept_outcome(context.outcome, name))
        except (NotJson, StateError, DefinitionError) as error:
            return self.raised(error)

    def completed(self, output: bytes, outcome: bytes | None) -> Settle:
        verdict = settling.COMPLETED
        return Settle(self.held.attempt, verdict.status, verdict.node, output, None, outcome)

    def raised(self, error: BaseException) -> Settle:
        """The body raised."""
        self.context.leave()
        return self.told(Raised.of(error), self._outcome())

    def told(self, raised: Raised, outcome: bytes | None) -> Settle:
        """The body raised, here or in a process of its own."""
        if raised.stopped and self.held.stop:
            return settle(self.held, settling.stopped(self.held.spec))
        if raised.missing is not None:  # trying again would find nothing either
            message = str(self._missing_job(raised.missing))
            return self._ended(settling.FAILED, raised.type, message, raised.traceback, outcome)
        failure = Failure(raised.names, later=raised.later, permanent=raised.permanent, retry_after=raised.retry_after)
        return self.failed(failure, raised.type, raised.message, raised.traceback, outcome)

    def timed_out(self) -> Settle:
        self.context.leave()
        message = f"the body did not end within {self.held.spec.timeout:g} s"
        failure = Failure(class_names(TimeoutError), timed_out=True)
        return self.failed(failure, "TimeoutError", message, outcome=self._outcome())

    def failed(
        self, failure: Failure, kind: str, message: str, trace: str = "", outcome: bytes | None = None
    ) -> Settle:
        held = self.held
        verdict = settling.after_failure(
            held.spec, failure, failures=held.failures, postponed=held.postponed, seed=held.facts.seed
        )
        if failure.later is not None and not verdict.postponed:
            message = f"{message}\n  it has asked for this {held.postponed:,} times, which is its limit"
            return self._ended(verdict, kind, message, trace, outcome, {"postponed": held.postponed})
        return self._ended(verdict, kind, message, trace, outcome)

    def _ended(
        self,
        verdict: Verdict,
        kind: str,
        message: str,
        trace: str,
        outcome: bytes | None,
        more: dict[str, object] | None = None,
    ) -> Settle:
        record: dict[str, object] = {"type": kind, "message": message, **(more or {})}
        if trace:
            record["traceback"] = trace
        return settle(self.held, verdict, error=encode(record), outcome=outcome)

    def _missing_job(self, reason: str) -> MissingJob:
        """The same error, of this run: who looked for the job does not know the run."""
        spec, run_id = self.held.spec, self.held.facts.run_id
        return MissingJob(
            reason, node=spec.name, node_id=spec.id, job=spec.job, run_id=run_id, frozen_at=self._frozen_at(run_id)
        )

    def _outcome(self) -> bytes | None:
        try:
            return kept_outcome(self.context.outcome, self.held.spec.name)
        except BaseException:  # the attempt has failed already, and that is what people must see
            return None


class Raised(NamedTuple):
    """An exception as plain data: what is recorded of it, and what decides on a retry."""

    names: list[str]
    type: str
    message: str
    traceback: str
    later: Later | None
    stopped: bool
    missing: str | None = None
    """Why the job of the node cannot be found, if that is what happened."""
    permanent: bool = False
    retry_after: float | None = None

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Never raises: an exception is code of the user, and what it cannot tell is left out."""
        kind, message = type(error), message_of(error)
        later = None
        if issubclass(kind, RetryLater):
            later = _later(error)
            if later is None:
                message += _NO_SECONDS
        missing = _missing_reason(error) if issubclass(kind, MissingJob) else None
        return cls(
            _names(kind),
            clean(short_name(kind)),
            clean(mask(message))[:MAX_TRACEBACK],
            clean(_traceback(error))[:MAX_TRACEBACK],
            later,
            issubclass(kind, Stopped),
            missing,
            issubclass(kind, PermanentError),
            _retry_after(error) if issubclass(kind, TransientError) else None,
        )


def settle(held: Held, verdict: Verdict, *, error: bytes | None = None, outcome: bytes | None = None) -> Settle:
    return Settle(held.attempt, verdict.status, verdict.node, None, error, outcome, verdict.delay, verdict.postponed)


def kept_output(result: object, node: str, bodies: Bodies, workflow: str) -> bytes:
    """The bytes of what a body returned; NotJson or StateError says which node it was and what to do."""
    if isinstance(result, Generator | AsyncGenerator):
        kind = "a generator" if isinstance(result, Generator) else "an async generator"
        raise NotJson(
            f"node {node!r} returned {kind}, of which nothing has run: does its body say `yield`? Return what it gives, "
            "as a list, or nothing"
        )
    delta = result if isinstance(result, Delta) else None
    try:
        output = encode(result if delta is None else delta.output)
    except NotJson as error:
        advice = "return JSON-able data or nothing"
        raise NotJson(
            f"node {node!r} returned what cannot be stored: {error.message}; {advice}", path=error.path
        ) from None
    if delta is not None:
        if bodies.state is None:
            raise no_state(workflow)
        output = bodies.state.encoded(delta, output, node)
    if len(output) > MAX_OUTPUT:
        advice = f"at most {MAX_OUTPUT} can be stored: keep it elsewhere and return where it is"
        raise NotJson(f"node {node!r} returned {len(output)} bytes; {advice}")
    return output


def kept_outcome(outcome: dict[str, Any], node: str) -> bytes | None:
    """The bytes of what a body put into ctx.outcome, if it did."""
    if not outcome:
        return None
    try:
        kept = encode(outcome)
    except NotJson as error:
        raise NotJson(f"the ctx.outcome of node {node!r} cannot be stored: {error.message}", path=error.path) from None
    if len(kept) > MAX_OUTCOME:
        advice = f"at most {MAX_OUTCOME} can be stored: return it as output, or keep it elsewhere"
        raise NotJson(f"the ctx.outcome of node {node!r} has {len(kept)} bytes; {advice}")
    return kept


def _names(kind: type[BaseException]) -> list[str]:
    """The class and its bases as `retry_on` names them. Their metaclasses are code of users, and may raise."""
    found = class_names(kind)
    for place, base in enumerate(type.__getattribute__(kind, "__mro__")):
        with contextlib.suppress(BaseException):
            found[place] = exception_name(base)
    return found


_NO_SECONDS = (
    "\n  a RetryLater without a number of `seconds` from 0 is an error like any other: "
    "does it call super().__init__(seconds)?"
)


def _later(error: BaseException) -> Later | None:
    """What a RetryLater asks for; None if it does not say. A subclass may not have called `super().__init__`."""
    try:
        seconds = float(error.seconds)  # type: ignore[attr-defined]
    except OverflowError:
        seconds = MAX_SECONDS
    except BaseException:
        return None
    try:
        limit = int(error.limit)  # type: ignore[attr-defined]
    except BaseException:
        limit = RetryLater.LIMIT
    return Later(seconds, limit) if seconds >= 0 else None


def _retry_after(error: BaseException) -> float | None:
    """How long a TransientError says that trying again would be in vain; None if it does not say."""
    try:
        seconds = float(error.retry_after)  # type: ignore[attr-defined]
    except BaseException:
        return None
    return seconds if seconds >= 0 else None


def _missing_reason(error: BaseException) -> str | None:
    try:
        return mask(error.reason) if error.run_id is None else None  # type: ignore[attr-defined]
    except BaseException:  # a subclass of somebody else
        return None


def _traceback(error: BaseException) -> str:
    """From the frame of the body on; the engine's own frames say nothing to the reader."""
    try:
        frames = error.__traceback__
        while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).startswith("stepwell."):
            frames = frames.tb_next
    except BaseException:  # it hides where it comes from
        return ""
    if frames is None:
        return ""
    try:
        lines = traceback.format_exception(type(error), error, frames)
    except BaseException:  # whatever it is made of, the frames can be shown
        lines = [*traceback.format_tb(frames), f"{short_name(type(error))}: {message_of(error)}\n"]
    text = mask("".join(lines))
    return text if len(text) <= MAX_TRACEBACK else "... " + text[-MAX_TRACEBACK + 4 :]
