"""Answers a body from the record of its attempt: the counterpart of the recorder in a replay."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from ...base.codec import decode, encode_checked, sha256
from ...base.masking import mask
from ...errors import ReplayMismatch
from ..differences import differences
from ..effects.exceptions import exception_of
from ..effects.record import CLOCK, Effect, EffectRequest
from ..effects.recorder import Call, EffectNumbering, inside

CANCELLED_WITHIN = 30.0
"""Seconds that a cancelled effect waits longer than when it was recorded."""
_PLAIN = frozenset({str, int, bool, type(None)})


class Subject(NamedTuple):
    """Which attempt is replayed."""

    run_id: str
    node: str
    attempt: int

    def differs(self, what: str, *, effect: int | None = None, diff: Sequence[str] = ()) -> ReplayMismatch:
        return ReplayMismatch(what, run_id=self.run_id, node=self.node, attempt=self.attempt, effect=effect, diff=diff)


class Player(EffectNumbering):
    """Serves the recorded effects of one attempt. Calls nothing; what was not recorded is a mismatch."""

    def __init__(self, subject: Subject, effects: Iterable[Effect]) -> None:
        super().__init__(subject.node)
        self._lock = threading.Lock()
        self._subject = subject
        self._waiting: dict[tuple[str, str, int], Effect] = {}
        self._readings: deque[int] = deque()
        self.served = 0
        self.mismatch: ReplayMismatch | None = None
        """The first one. The body may catch the exception, so the caller of the body looks here."""
        self._over = threading.Event()
        for effect in effects:
            if effect.name == CLOCK:
                self._check(effect)
                self._readings.extend(effect.response)
            else:
                self._waiting[effect.match] = effect
        self._recorded_readings = len(self._readings)

    def now(self) -> int:
        with self._lock:
            if not self._readings:
                times = self._recorded_readings
                raise self._mismatch(f"it is asked once more than the {times} times that were recorded", effect=-1)
            return self._readings.popleft()

    def checkpoint(self, label: str) -> None:
        """A replay names nothing."""

    def leave(self) -> None:
        """Stop waiting for effects that were never answered. `finish` reports differences."""
        self._over.set()

    def effect(self, call: Call) -> Any:
        request = self._begin(call)
        if inspect.iscoroutinefunction(call.function):
            return self._later(request)  # a mismatch is raised only when it is awaited: others beside it must be, too
        recorded = self._take(request)
        if recorded.open and not recorded.awaited:
            return self._block(recorded)
        return self._awaited(recorded) if recorded.awaited else _answer(recorded)

    def _take(self, request: EffectRequest) -> Effect:
        with self._lock:
            recorded = self._waiting.pop((request.name, request.key, request.occurrence), None)
        if recorded is None:
            raise self._unmatched(request)
        self._check(recorded)
        with self._lock:
            self.served += 1
        return recorded

    async def _later(self, request: EffectRequest) -> Any:
        return await self._awaited(self._take(request))

    def finish(self) -> None:
        """The body has ended: raise the first mismatch, also for what was recorded and not asked for."""
        self.leave()
        with self._lock:
            # Open effects were asked for by threads or tasks that nobody waits for, so they may come later.
            left = sorted(
                (effect for effect in self._waiting.values() if not effect.open), key=lambda effect: effect.index
            )
        if self.mismatch is None and left:
            self._mismatch(
                f"{left[0].name!r} was recorded and is not asked for any more",
                effect=left[0].index,
                diff=(f"request: {_brief(left[0].request)}", *([f"and {len(left) - 1} more"] if left[1:] else [])),
            )
        if self.mismatch is None and self._readings:
            times = self._recorded_readings - len(self._readings)
            self._mismatch(f"it was asked {self._recorded_readings} times, now {times} times", effect=-1)
        if self.mismatch is not None:
            raise self.mismatch

    async def _awaited(self, effect: Effect) -> Any:
        if effect.error is not None and effect.error.type == _CANCELLED:
            # The body cancelled it, for a timeout or because another effect was faster, and will do so again.
            await asyncio.sleep(effect.seconds + CANCELLED_WITHIN)
            raise self._mismatch(f"{effect.name!r} was cancelled by its body, and now it is not", effect=effect.index)
        if effect.open:
            await asyncio.sleep(effect.seconds + CANCELLED_WITHIN)
            raise self._never_answered(effect)
        return _answer(effect)

    def _block(self, effect: Effect) -> NoReturn:
        """Block a thread that the body did not wait for."""
        if self._over.wait(effect.seconds + CANCELLED_WITHIN):
            raise SystemExit  # ends the thread without a word
        raise self._never_answered(effect)

    def _never_answered(self, effect: Effect) -> ReplayMismatch:
        return self._mismatch(
            f"{effect.name!r} was not answered before its body ended, and now the body waits for it",
            effect=effect.index,
        )

    def _check(self, effect: Effect) -> None:
        """Refuse a record that was changed afterwards."""
        for part, value, expected in effect.parts:
            digest = sha256(encode_checked(value))
            if digest != expected:
                what = "request" if part == "request" else "response"
                hashes = (f"SHA-256 when it was recorded {expected}", f"SHA-256 now {digest}")
                changed = f"the recorded {what} of {effect.name!r} was changed after it was recorded"
                raise self._mismatch(changed, effect=effect.index, diff=(*hashes, f"{part}: {_brief(value)}"))

    def _unmatched(self, effect_request: EffectRequest) -> ReplayMismatch:
        """The mismatch for what was not recorded: mostly its request differs from the recorded one."""
        with self._lock:
            alike = [effect for effect in self._waiting.values() if effect.name == effect_request.name]
        request = decode(effect_request.request)
        diff: Sequence[str] = (f"request: {_brief(request)}",)
        nearest = min(alike, key=lambda effect: (abs(effect.index - effect_request.index), effect.index), default=None)
        if nearest is None:
            what = "is asked for and was not recorded"
        elif nearest.request_hash == effect_request.key:
            what = "is asked for once more than was recorded"
        else:
            what, diff = "is asked with another request", differences(nearest.request, request)
        return self._mismatch(f"{effect_request.name!r} {what}", effect=effect_request.index, diff=diff)

    def _mismatch(self, what: str, *, effect: int, diff: Sequence[str] = ()) -> ReplayMismatch:
        error = self._subject.differs(what, effect=effect, diff=diff)
        self.mismatch = self.mismatch or error
        return error


_CANCELLED = "asyncio.exceptions.CancelledError"


def _answer(effect: Effect) -> Any:
    if effect.error is not None:
        token = inside.set(True)  # the guard must not watch the constructor of the exception
        try:
            error = exception_of(effect.error)
        finally:
            inside.reset(token)
        raise error
    response = effect.response
    # A copy: what the body does to it must not change the record.
    return response if type(response) in _PLAIN else decode(encode_checked(response))


def _brief(value: Any) -> str:
    text = mask(encode_checked(value).decode())
    return text if len(text) <= 200 else text[:200] + " …"
