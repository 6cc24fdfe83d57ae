"""One attempt: call the body, and turn whatever happens into a settlement.

`Course` calls a body, wherever it runs. Its subclasses decide what to do with the result: `Attempt` settles it, a child
process sends it to its parent, a replay compares it with the record.
"""

from __future__ import annotations

import os
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

from ...base.codec import MAX_BYTES, encode
from ...base.forms.problems import Misfit
from ...base.ids import RunId
from ...base.types.codecs import encoded_by_type
from ...base.types.shapes import Shape
from ...base.words import class_names
from ...core.kernel import settling
from ...core.kernel.healing import UNFIT_DATA
from ...core.kernel.settling import Failure, Verdict
from ...core.model import CONDITION, Settle
from ...define import Delta, Performer
from ...define.code.conditions import SKIP
from ...errors import DefinitionError, InputError, MissingJob, NotJson, StateError
from ...history.effects.record import masked
from ...history.effects.repeatable import enter
from .capture import capture_for
from .context import Context, no_state
from .held import Held
from .host import EngineHost, Host, Services
from .log_lines import BodyOutput
from .raised import Raised

MAX_OUTPUT = MAX_BYTES
MAX_OUTCOME = 16 * 1024 * 1024
"""The most bytes of `ctx.outcome`, which is shown to people."""


_DATA = frozenset({type(None), bool, int, float, str, list, dict})
"""What most bodies return. Testing for a coroutine takes longer than some bodies do."""

_NOTHING = encode(None)

_DATA_ALONE = frozenset({type(None), bool, int, str})
"""Types that contain nothing to convert."""

FrozenAt = Callable[[RunId], float | None]
"""When the graph of a run was frozen, in seconds since 1970. Called only for an error message."""
Pause = Callable[[RunId, str], None]
"""Pauses a run soon, for the given reason."""
AnyCoroutine = Coroutine[Any, Any, Any]
End = TypeVar("End")


class Course(ABC, Generic[End]):
    """Calls the body of one attempt, guarded if wanted, and keeps what it returns or raises."""

    __slots__ = ("_process", "context", "guarded", "host", "returns")
    guarded_everywhere = False
    """Whether the guard also covers threads without the body's context, and whatever the body leaves running."""

    def __init__(self, host: Host, *, guarded: bool) -> None:
        self.host = host
        self.context = Context(host)
        self.guarded = guarded
        """Whether the body may use the clock, randomness and the network only through `ctx`."""
        self._process = os.getpid()
        self.returns: Shape | None = None
        """The return annotation of the body."""

    def output(self) -> BodyOutput | None:
        """Where the body's logs and prints go; None once they are no longer recorded."""
        return self.host.output()

    def enter(self) -> None:
        """Assign this context to the body: what is printed and asked here is the body's."""
        capture_for(self)
        enter(self.context)

    def perform(self) -> End | AnyCoroutine:
        """Call the body and keep its result. A coroutine is returned instead, to be awaited on a loop."""
        self.enter()
        try:
            result = self._call()
            if type(result) not in _DATA and isinstance(result, Coroutine):
                return result
            return self.returned(result)
        except BaseException as error:
            return self.raised(error)

    def perform_all(self, wait: Callable[[AnyCoroutine], Any]) -> End:
        """The same, to the end of the body: `wait` runs a coroutine."""
        ended = self.perform()
        if not isinstance(ended, Coroutine):
            return ended
        try:
            return self.returned(wait(ended))
        except BaseException as error:
            return self.raised(error)

    def _call(self) -> Any:
        """The result of the body, or a coroutine if it is `async def`. Raises whatever the body raises."""
        host = self.host
        input, outputs = host.arguments()
        spec = host.spec
        body = host.bodies.find(spec)
        self.returns = body.returns
        if not self.guarded:
            return body.invoke(input, self.context, outputs)
        # Imported here because it loads sockets and subprocesses, which few programs need.
        from ...history.guarding.guard import guarded_call

        invoke = partial(body.invoke, input, self.context, outputs)
        return guarded_call(invoke, spec.name, everywhere=self.guarded_everywhere)

    def returned(self, result: object) -> End:
        """The body returned: it has completed, unless the result cannot be stored. SKIP: it was not called."""
        if os.getpid() != self._process:
            _end_fork(None)
        host, context = self.host, self.context
        if result is SKIP:
            context._leave()
            return self._skipped()
        name = host.spec.name
        try:
            context._leave()
            context._check_state()
            if type(result) not in _DATA and isinstance(result, Performer):
                return self._handed_over(result)
            output = kept_output(result, name, host, self.returns)
            outcome = kept_outcome(context.outcome, name) if context.outcome else None
        except (NotJson, StateError, DefinitionError, InputError) as error:
            return self.not_kept(error)
        return self._completed(output, outcome)

    def not_kept(self, error: BaseException) -> End:
        """The body returned a result that cannot be stored."""
        return self.raised(error)

    def raised(self, error: BaseException) -> End:
        """The body raised."""
        if os.getpid() != self._process:
            _end_fork(error)
        self.context._leave()
        raised = Raised.of(error)
        retry = self.host.spec.retry
        if retry is not None and retry.predicates:
            raised = self._asked(raised, error, retry.predicates)
        return self._failed(raised, self._outcome())

    def _asked(self, raised: Raised, error: BaseException, predicates: tuple[str, ...]) -> Raised:
        """Ask the functions in `retry_on` whether to try again, and add the name of the first that says yes."""
        for name in predicates:
            try:
                if self.host.bodies.predicate(self.host.spec, name)(error):
                    return raised._replace(names=[*raised.names, name])
            except BaseException as own:  # of the user's function; people must see what the body raised
                why = f"\n  retry_on={name} could not say whether to try again: {Raised.of(own).summary}"
                raised = raised._replace(message=raised.message + why)
        return raised

    def _outcome(self) -> bytes | None:
        try:
            return kept_outcome(self.context.outcome, self.host.spec.name)
        except BaseException:  # people must see why the attempt failed, which it has already
            return None

    @abstractmethod
    def _completed(self, output: bytes, outcome: bytes | None) -> End: ...

    @abstractmethod
    def _skipped(self) -> End:
        """The condition of the node did not hold."""

    @abstractmethod
    def _handed_over(self, workflow: Performer) -> End:
        """The body has returned a workflow, to have its node performed by a run of it."""

    @abstractmethod
    def _failed(self, raised: Raised, outcome: bytes | None) -> End: ...


def _end_fork(error: BaseException | None) -> NoReturn:
    """End a process that a body has forked, where it comes back from the body. It has none of the threads of its parent, which
    alone may settle the attempt.
    """
    if error is not None and not isinstance(error, SystemExit):
        os.write(2, "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace"))
    code = 1 if error is not None else 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    os._exit(code & 0xFF)


def leave_body() -> None:
    """Assign this context to no body."""
    capture_for(None)
    enter(None)


def _unknown(run_id: RunId) -> None:
    return None


class Attempt(Course[Settle]):
    """An attempt that this worker holds: turns the end of its body into a settlement."""

    __slots__ = ("_frozen_at", "_pause", "held")
    host: EngineHost
    host_type: type[EngineHost] = EngineHost

    def __init__(
        self,
        held: Held,
        services: Services,
        frozen_at: FrozenAt = _unknown,
        *,
        pause: Pause | None = None,
        guarded: bool = False,
    ) -> None:
        super().__init__(self.host_type(held, services), guarded=guarded)
        self.held = held
        self._frozen_at = frozen_at
        self._pause = pause

    def _completed(self, output: bytes, outcome: bytes | None) -> Settle:
        return completed(self.held, output, outcome)

    def _failed(self, raised: Raised, outcome: bytes | None) -> Settle:
        if raised.stopped and self.held.stop:
            return settle(self.held, settling.stopped(self.held.spec))
        if raised.missing is not None:  # it would be missing again
            message = str(self._missing_job(raised.missing))
            return self._ended(settling.FAILED, raised.type, message, raised.traceback, outcome)
        if raised.unfit and self._pause is not None:
            self._pause(self.held.facts.run_id, f"{UNFIT_DATA}node {self.held.spec.name!r}: {raised.message}")
            return self._ended(settling.unfit(), raised.type, raised.message, raised.traceback, outcome)
        failure = Failure(raised.names, later=raised.later, permanent=raised.permanent, retry_after=raised.retry_after)
        return self.failed(failure, raised.type, raised.message, raised.traceback, outcome)

    def _handed_over(self, workflow: Performer) -> Settle:
        return self.host.hand_over(workflow)

    def _skipped(self) -> Settle:
        return settle(self.held, settling.skipped(CONDITION))

    def ended(self, raised: Raised | None, output: bytes | None, outcome: bytes | None) -> Settle:
        """The settlement of a body that ran in a child process, or was skipped there."""
        if raised is not None:
            return self._failed(raised, outcome)
        return self._skipped() if output is None else self._completed(output, outcome)

    def timed_out(self) -> Settle:
        self.context._leave()
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
            message = f"{message}\n  it has asked to be tried later {held.postponed:,} times, which is its limit"
            return self._ended(verdict, kind, message, trace, outcome, {"postponed": held.postponed})
        later: dict[str, object] = {} if failure.later is None else {"later": failure.later.seconds}
        return self._ended(verdict, kind, message, trace, outcome, later)

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
        """The same error, with this run: the code that looked for the job does not know the run."""
        spec, run_id = self.held.spec, self.held.facts.run_id
        return MissingJob(
            reason, node=spec.name, node_id=spec.id, job=spec.job, run_id=run_id, frozen_at=self._frozen_at(run_id)
        )


def completed(held: Held, output: bytes | None, outcome: bytes | None = None) -> Settle:
    verdict = settling.COMPLETED
    return Settle(held.attempt, verdict.status, verdict.node, output, None, outcome, wakes=held.wakes)


def settle(held: Held, verdict: Verdict, *, error: bytes | None = None, outcome: bytes | None = None) -> Settle:
    return Settle(
        held.attempt,
        verdict.status,
        verdict.node,
        None,
        error,
        outcome,
        verdict.delay,
        verdict.postponed,
        verdict.reason,
        held.wakes,
    )


def kept_output(result: object, node: str, host: Host, returns: Shape | None = None) -> bytes:
    """The stored form of what a body returned. Raises NotJson or StateError, with the node and the reason."""
    if result is None and (returns is None or (returns.codec is None and returns.fits(None))):
        return _NOTHING
    plain = type(result) in _DATA
    if not plain and isinstance(result, Generator | AsyncGenerator):
        kind = "a generator" if isinstance(result, Generator) else "an async generator"
        raise NotJson(
            f"node {node!r} returned {kind}, of which nothing has run: does its body use `yield`? Return the values "
            "as a list, or return nothing"
        )
    delta = result if not plain and isinstance(result, Delta) else None
    output = _encoded(result if delta is None else delta.output, node, returns)
    if delta is not None:
        if host.bodies.state is None:
            raise no_state(host.info.workflow)
        output = host.bodies.state.encoded(delta, output, node)
    if len(output) > MAX_OUTPUT:
        advice = f"at most {MAX_OUTPUT} can be stored: keep it elsewhere and return where it is"
        raise NotJson(f"node {node!r} returned {len(output)} bytes; {advice}")
    return output


def _encoded(result: Any, node: str, returns: Shape | None) -> bytes:
    try:
        if returns is not None:
            if returns.codec is not None:
                return encode(returns.codec.encode(result))
            if not returns.fits(result):
                raise Misfit(returns.misfits(result))
        # A shortcut for most outputs: `encoded_by_type` gives the same, a call later.
        return encode(result) if type(result) in _DATA_ALONE else encoded_by_type(result)
    except Misfit as misfit:
        first, *others = misfit.problems
        more = f", and {len(others)} more: {'; '.join(each.below('$') for each in others[:10])}" if others else ""
        needed = "" if returns is None else f" {returns.text}"
        raise NotJson(
            f"node {node!r} returned what does not fit its annotation{needed}: {first.message}{more}",
            path=first.path,
        ) from None
    except NotJson as error:
        advice = "return JSON-able data or nothing"
        if "is not a string" in error.message:
            advice = "say in the annotation what its keys are, as in `-> dict[int, str]`, or return JSON-able data"
        raise NotJson(
            f"node {node!r} returned what cannot be stored: {error.message}; {advice}", path=error.path
        ) from None


def kept_outcome(outcome: dict[str, Any], node: str) -> bytes | None:
    """The stored form of `ctx.outcome`; None if it is empty."""
    if not outcome:
        return None
    try:
        kept = masked(encode(outcome))
    except NotJson as error:
        raise NotJson(f"the ctx.outcome of node {node!r} cannot be stored: {error.message}", path=error.path) from None
    if len(kept) > MAX_OUTCOME:
        advice = f"at most {MAX_OUTCOME} can be stored: return it as output, or keep it elsewhere"
        raise NotJson(f"the ctx.outcome of node {node!r} has {len(kept)} bytes; {advice}")
    return kept
