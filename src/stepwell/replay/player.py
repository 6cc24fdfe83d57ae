"""Answers a body from the record of its attempt: in a replay it stands where the recorder stood."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..codec import decode, encode_checked, sha256
from ..errors import ReplayMismatch
from .difference import differences
from .record import CLOCK, Asked, Effect, EffectError
from .recorder import Asking, Call

CANCELLED_WITHIN = 30.0
"""Seconds that an effect which was cancelled waits for it longer than it did."""
_PLAIN = frozenset({str, int, bool, type(None)})


class Subject(NamedTuple):
    """Which attempt is replayed."""

    run_id: str
    node: str
    attempt: int

    def differs(self, what: str, *, effect: int | None = None, diff: Sequence[str] = ()) -> ReplayMismatch:
        return ReplayMismatch(what, run_id=self.run_id, node=self.node, attempt=self.attempt, effect=effect, diff=diff)


class Player(Asking):
    """Serves the effects of one attempt. Nothing is called; what was not recorded is a mismatch."""

    def __init__(self, subject: Subject, effects: Iterable[Effect]) -> None:
        super().__init__(subject.node)
        self._lock = threading.Lock()
        self._subject = subject
        self._waiting: dict[tuple[str, str, int], Effect] = {}
        self._readings: deque[int] = deque()
        self.served = 0
        self.mismatch: ReplayMismatch | None = None
        """The first one. A body may catch what is raised in it, so whoever called the body looks here."""
        for each in effects:
            if each.name == CLOCK:
                self._check(each)
                self._readings.extend(each.response)
            else:
                self._waiting[each.match] = each
        self._recorded_readings = len(self._readings)

    def now(self) -> int:
        with self._lock:
            if not self._readings:
                times = self._recorded_readings
                raise self._differs(f"it is asked once more than the {times} times that were recorded", effect=-1)
            return self._readings.popleft()

    def checkpoint(self, label: str) -> None:
        """A replay names nothing."""

    def effect(self, call: Call) -> Any:
        asked = self._begin(call)
        if inspect.iscoroutinefunction(call.function):
            return self._later(asked)  # also a mismatch is raised when it is awaited, or others would never be
        found = self._found(asked)
        return self._awaited(found) if found.awaited else _answer(found)

    def _found(self, asked: Asked) -> Effect:
        with self._lock:
            found = self._waiting.pop((asked.name, asked.key, asked.occurrence), None)
        if found is None:
            raise self._unknown(asked)
        self._check(found)
        with self._lock:
            self.served += 1
        return found

    async def _later(self, asked: Asked) -> Any:
        return await self._awaited(self._found(asked))

    def finish(self) -> None:
        """The body has ended: raise the first mismatch, or what it was to ask for and did not."""
        if self.mismatch is None and self._waiting:
            left = min(self._waiting.values(), key=lambda each: each.index)
            self._differs(
                f"{left.name!r} was recorded and is not asked for any more",
                effect=left.index,
                diff=(f"request: {_shown(left.request)}", *self._more(len(self._waiting) - 1)),
            )
        if self.mismatch is None and self._readings:
            asked = self._recorded_readings - len(self._readings)
            self._differs(f"it was asked {self._recorded_readings} times, now {asked} times", effect=-1)
        if self.mismatch is not None:
            raise self.mismatch

    async def _awaited(self, effect: Effect) -> Any:
        if effect.error is not None and effect.error.type == _CANCELLED:
            # The body did that: its time was up, or another effect was faster. So it does it again.
            await asyncio.sleep(effect.seconds + CANCELLED_WITHIN)
            raise self._differs(f"{effect.name!r} was cancelled by its body, and now it is not", effect=effect.index)
        return _answer(effect)

    def _check(self, effect: Effect) -> None:
        """A record that was changed afterwards must not pass for what was recorded."""
        answer: Any = effect.response if effect.error is None else effect.error.data()
        for part, value, expected in (
            ("request", effect.request, effect.request_hash),
            ("response", answer, effect.response_hash),
        ):
            found = sha256(encode_checked(value))
            if found != expected:
                raise self._differs(
                    f"the recorded {part} of {effect.name!r} was changed after it was recorded",
                    effect=effect.index,
                    diff=(
                        f"SHA-256 when it was recorded {expected}",
                        f"SHA-256 now {found}",
                        f"{part}: {_shown(value)}",
                    ),
                )

    def _unknown(self, asked: Asked) -> ReplayMismatch:
        """Asked for and not recorded: mostly the request differs from the one that was recorded in its place."""
        with self._lock:
            alike = [each for each in self._waiting.values() if each.name == asked.name]
        request = decode(asked.request)
        if not alike:
            return self._differs(
                f"{asked.name!r} is asked for and was not recorded",
                effect=asked.index,
                diff=(f"request: {_shown(request)}",),
            )
        nearest = min(alike, key=lambda each: (abs(each.index - asked.index), each.index))
        if nearest.request_hash == asked.key:
            what = f"{asked.name!r} is asked for once more than was recorded"
            return self._differs(what, effect=asked.index, diff=(f"request: {_shown(request)}",))
        what = f"{asked.name!r} is asked with another request"
        return self._differs(what, effect=asked.index, diff=differences(nearest.request, request))

    def _differs(self, what: str, *, effect: int, diff: Sequence[str] = ()) -> ReplayMismatch:
        error = self._subject.differs(what, effect=effect, diff=diff)
        self.mismatch = self.mismatch or error
        return error

    def _more(self, count: int) -> tuple[str, ...]:
        return (f"and {count} more",) if count else ()


_CANCELLED = "asyncio.exceptions.CancelledError"


def _answer(effect: Effect) -> Any:
    if effect.error is not None:
        raise exception_of(effect.error)
    response = effect.response
    # A copy: what the body does to it must not change the record.
    return response if type(response) in _PLAIN else decode(encode_checked(response))


def exception_of(error: EffectError) -> BaseException:
    """The exception that an effect raised, or one of its bases where its class is not there any more. Imports nothing."""
    for name in (error.type, *error.bases):
        made = _made(name, error)
        if made is not None:
            return made
    return Exception(error.message)


def _made(name: str, error: EffectError) -> BaseException | None:
    module, _, _ = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, _ = module.rpartition(".")
    found: Any = sys.modules.get(module)
    for part in name[len(module) + 1 :].split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return None
    args = (error.message,) if error.args is None else tuple(error.args)
    made: BaseException
    try:
        made = found(*args)
    except Exception:  # it is made from other arguments than it keeps
        try:
            made = found.__new__(found, *args)
        except Exception:
            return None
    return made if _text(made) == error.message else _speaking(found, made, error.message)


def _speaking(kind: type[BaseException], made: BaseException, message: str) -> BaseException:
    """The same, saying what the original said."""
    try:
        made.__class__ = type(kind.__name__, (kind,), {"__str__": lambda self: message, "__module__": kind.__module__})
    except TypeError:  # its layout is fixed
        made.args = (message,)
    return made


def _text(error: BaseException) -> str | None:
    try:
        return str(error)
    except Exception:
        return None


def _shown(value: Any) -> str:
    text = encode_checked(value).decode()
    return text if len(text) <= 200 else text[:200] + " …"
