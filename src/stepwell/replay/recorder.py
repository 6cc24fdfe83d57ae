"""Records what one attempt asks of the outside world, while it asks.

An effect gets its index and its occurrence when it begins, and is recorded when it has ended, so effects that overlap, in
threads or in tasks, are told apart by what they ask and not by when they are answered.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

from ..codec import encode, read_back, text
from ..errors import InputError, NotJson
from ..model import LineRow
from ..model.lines import CHECKPOINT
from .current import inside
from .record import Asked, Effect, Line, effects_of, masked, masked_text, raised_text

_PLAIN = frozenset({str, int, bool, type(None)})
_DATA = _PLAIN | {float, list, dict}
"""What effects mostly return: it is not asked whether it can be awaited."""


class Sink(Protocol):
    """Where the records of an attempt go."""

    def keep(self, lines: list[Line]) -> None:
        """To be stored together with the settlement of the attempt."""
        ...

    def append(self, lines: list[Line]) -> None:
        """Store it now; returns when it is durable, and raises Stopped when the attempt may not write any more."""
        ...

    def read_clock(self, at: int) -> None:
        """`ctx.now()` gave this, in microseconds. Also stored with the settlement."""
        ...

    def earlier(self) -> Iterable[LineRow]:
        """The effects and payloads of earlier attempts at this node that still count."""
        ...


class Call(NamedTuple):
    """An effect as a body asks for it."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    request: Any
    """What is recorded as asked."""
    durable: bool = False
    stored: Callable[[Any], Any] | None = None
    """Makes of a response what may be stored of it."""

    def perform(self) -> Any:
        token = inside.set(True)
        try:
            return self.function(*self.args, **self.kwargs)
        finally:
            inside.reset(token)


_lock = threading.Lock()
"""Several threads of one body may ask at once. For all bodies together: it is held for next to no time."""


class Asking:
    """Gives every effect that a body asks for its index and its occurrence."""

    __slots__ = ("_begun", "_next", "_node")

    def __init__(self, node: str) -> None:
        self._node = node
        self._next = 0
        self._begun: dict[tuple[str, str], int] = {}

    def _begin(self, call: Call) -> Asked:
        name = call.name
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"an effect needs a name, not {name!r}: ctx.effect('charge card', charge, amount)")
        try:
            if not name.isascii():
                text(name)
            request = masked_text(text(call.request))
        except NotJson as error:
            raise NotJson(
                f"what effect {name!r} of node {self._node!r} asks cannot be recorded: {error.message}; give the "
                f"function JSON-able arguments, or say with request=... what identifies this request",
                path=error.path,
            ) from None
        with _lock:
            index, self._next = self._next, self._next + 1
            occurrence = self._begun.get((name, request), 0)
            self._begun[name, request] = occurrence + 1
        return Asked(name, request, index, occurrence, time.time_ns() // 1_000, perf_counter_ns())


class Recorder(Asking):
    """The effects of one attempt: called, recorded, and for durable ones of later attempts served instead of called."""

    __slots__ = ("_attempt", "_earlier", "_last", "_sink")

    def __init__(self, node: str, attempt: int, sink: Sink) -> None:
        super().__init__(node)
        self._attempt = attempt
        self._sink = sink
        self._last = 0
        self._earlier: Earlier | None = None

    def now(self) -> int:
        """The wall clock in microseconds. It never goes back within an attempt."""
        with _lock:
            self._last = max(self._last, time.time_ns() // 1_000)
            self._sink.read_clock(self._last)
            return self._last

    def checkpoint(self, label: str) -> None:
        self._sink.keep([(CHECKPOINT, masked(encode(label)))])

    def effect(self, call: Call) -> Any:
        """The response; a coroutine that gives it when the function is one, or returns something to be awaited."""
        if inside.get():
            return call.function(*call.args, **call.kwargs)
        asked = self._begin(call)
        if inspect.iscoroutinefunction(call.function):
            return self._asynchronous(call, asked)
        served = self._served(asked) if call.durable else None
        if served is not None:
            self._serve(asked, served)
            return _given(served.response) if served.awaited else served.response
        try:
            result = call.perform()
        except Exception as error:
            self._raised(asked, error)
            raise
        if type(result) not in _DATA and inspect.isawaitable(result):
            return self._awaiting(call, asked, result)
        lines, response = self._returned(call, asked, result)
        (self._sink.append if call.durable else self._sink.keep)(lines)
        return response

    async def _asynchronous(self, call: Call, asked: Asked) -> Any:
        if call.durable:
            served = await asyncio.to_thread(self._served, asked)
            if served is not None:
                self._serve(asked, served, awaited=True)
                return served.response
        return await self._awaiting(call, asked, call.perform())

    async def _awaiting(self, call: Call, asked: Asked, result: Awaitable[Any]) -> Any:
        token = inside.set(True)
        try:
            value = await result
        except (Exception, asyncio.CancelledError) as error:
            # Nothing is awaited here: a cancelled body has no time for it, and a failed effect is not served again.
            self._raised(asked, error, awaited=True)
            raise
        finally:
            inside.reset(token)
        lines, response = self._returned(call, asked, value, awaited=True)
        if call.durable:
            await asyncio.to_thread(self._sink.append, lines)
        else:
            self._sink.keep(lines)
        return response

    def _returned(self, call: Call, asked: Asked, result: Any, *, awaited: bool = False) -> tuple[list[Line], Any]:
        """The record, and what the body gets: what a replay would give it, which JSON has gone through."""
        try:
            written = text(result)
            stored = masked_text(written if call.stored is None else text(call.stored(result)))
        except NotJson as error:
            trouble = NotJson(
                f"effect {call.name!r} of node {self._node!r} was done, and what it returned cannot be recorded: "
                f"{error.message}; have its function return JSON-able data",
                path=error.path,
            )
            self._raised(asked, trouble, awaited=awaited)
            raise trouble from None
        lines = asked.answered(stored, perf_counter_ns(), awaited=awaited, durable=call.durable)
        return lines, result if type(result) in _PLAIN else read_back(written)

    def _raised(self, asked: Asked, error: BaseException, *, awaited: bool = False) -> None:
        self._sink.keep(asked.answered(raised_text(error), perf_counter_ns(), raised=True, awaited=awaited))

    def _serve(self, asked: Asked, served: Effect, *, awaited: bool = False) -> None:
        """Recorded here too, so that what this attempt was told can be read from its own record."""
        answer, awaited = text(served.response), awaited or served.awaited
        self._sink.keep(asked.answered(answer, perf_counter_ns(), awaited=awaited, from_attempt=served.attempt))

    def _served(self, asked: Asked) -> Effect | None:
        """The durable effect of an earlier attempt that answers this one: each is used once, the oldest first."""
        if self._attempt == 1:
            return None
        with _lock:
            if self._earlier is None:
                self._earlier = Earlier(self._sink)
        return self._earlier.take(asked.name, asked.key)


class Earlier:
    """The durable effects of earlier attempts. One that raised is not among them: it is tried again."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._loading = threading.Lock()
        self._waiting: dict[tuple[str, str], list[Effect]] | None = None

    def take(self, name: str, key: str) -> Effect | None:
        with self._loading:
            if self._waiting is None:
                self._waiting = self._load()
            waiting = self._waiting.get((name, key))
            return waiting.pop(0) if waiting else None

    def _load(self) -> dict[tuple[str, str], list[Effect]]:
        rows = tuple(self._sink.earlier())
        found: dict[tuple[str, str], list[Effect]] = {}
        effects = effects_of(rows, {row.node: "" for row in rows})
        for each in sorted(effects, key=lambda effect: (effect.attempt, effect.index)):
            if each.durable and each.error is None:
                found.setdefault((each.name, each.request_hash), []).append(each)
        return found


async def _given(value: Any) -> Any:
    return value
