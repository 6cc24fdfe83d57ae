"""One attempt: call the body, and turn whatever happens into a settlement."""

from __future__ import annotations

import traceback
from typing import Any

from ..codec import decode, encode
from ..errors import NotJson, RetryLater, Stopped
from ..kernel import settling
from ..kernel.settling import Failure, Verdict
from ..model import Settle
from .context import Context, ReadOutputs
from .work import Held

MAX_TRACEBACK = 16_000


class Attempt:
    """An attempt at work: what the body is called with, and what its end means."""

    __slots__ = ("context", "held")

    def __init__(self, held: Held, read: ReadOutputs) -> None:
        self.held = held
        self.context = Context(held, read)

    def call(self) -> Any:
        """Call the body: its result, or a coroutine when it is `async def`. Whatever it raises comes through."""
        held = self.held
        facts, spec = held.facts, held.spec
        outputs: dict[str, Any] = {}
        if spec.needs:
            order = facts.graph.order
            outputs = dict.fromkeys(spec.needs)
            for index, output in held.inputs:
                outputs[order[index]] = decode(output)
        return facts.bodies.find(spec).invoke(facts.input, self.context, outputs)

    def returned(self, result: object) -> Settle:
        """The body returned: completed, unless the result cannot be kept."""
        try:
            output = encode(result)
            outcome = encode(self.context.outcome) if self.context.outcome else None
        except NotJson as error:
            return self.raised(
                NotJson(
                    f"node {self.held.spec.name!r} returned what cannot be stored: {error}. Return JSON-able data or nothing"
                )
            )
        verdict = settling.COMPLETED
        return Settle(self.held.attempt, verdict.status, verdict.node, output, None, outcome)

    def raised(self, error: BaseException) -> Settle:
        """The body raised."""
        if isinstance(error, Stopped) and self.held.stop:
            return settle(self.held, settling.CANCELLED)
        failure = Failure(
            [f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__],
            retry_after=error.seconds if isinstance(error, RetryLater) else None,
        )
        return self.failed(failure, type(error).__name__, str(error), _traceback(error))

    def timed_out(self) -> Settle:
        names = [f"{base.__module__}.{base.__qualname__}" for base in TimeoutError.__mro__]
        message = f"the body did not end within {self.held.spec.timeout:g} s"
        return self.failed(Failure(names, timed_out=True), "TimeoutError", message)

    def failed(self, failure: Failure, kind: str, message: str, trace: str | None = None) -> Settle:
        held = self.held
        verdict = settling.after_failure(held.spec, failure, failures=held.failures, seed=held.facts.seed)
        record = {"type": kind, "message": _clean(message)}
        if trace:
            record["traceback"] = _clean(trace)
        return settle(held, verdict, error=encode(record), outcome=self._outcome())

    def _outcome(self) -> bytes | None:
        try:
            return encode(self.context.outcome) if self.context.outcome else None
        except NotJson:
            return None


def settle(held: Held, verdict: Verdict, *, error: bytes | None = None, outcome: bytes | None = None) -> Settle:
    return Settle(held.attempt, verdict.status, verdict.node, None, error, outcome, verdict.delay)


def _clean(text: str) -> str:
    """Text that UTF-8 can carry and a person can read."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:MAX_TRACEBACK]


def _traceback(error: BaseException) -> str:
    """From the frame of the body on; the engine's own frames say nothing to the reader."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith("stepwell."):
        frames = frames.tb_next
    if frames is None:
        return ""
    text = "".join(traceback.format_exception(type(error), error, frames))
    return text if len(text) <= MAX_TRACEBACK else "... " + text[-MAX_TRACEBACK + 4 :]
