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
from typing import Any, NamedTuple, Protocol

from ..codec import decode, encode, sha256
from ..errors import InputError, NotJson
from ..model import LineRow
from ..model.lines import CHECKPOINT
from .current import inside
from .record import Effect, Line, Record, effects_of, masked, raised_data

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


class Begun(NamedTuple):
    """An effect that was asked for, not answered yet."""

    call: Call
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    key: str
    occurrence: int
    request: bytes
    at: int
    started: int


class Asking:
    """Gives every effect that a body asks for its index and its occurrence."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._next = 0
        self._begun: dict[tuple[str, str], int] = {}

    def _begin(self, call: Call) -> Begun:
        if not isinstance(call.name, str) or not call.name.strip():
            raise InputError(f"an effect needs a name, not {call.name!r}: ctx.effect('charge card', charge, amount)")
        try:
            if not call.name.isascii():
                encode(call.name)
            request = masked(encode(call.request))
        except NotJson as error:
            raise NotJson(
                f"what effect {call.name!r} of node {self._node!r} asks cannot be recorded: {error.message}; give the "
                f"function JSON-able arguments, or say with request=... what identifies this request",
                path=error.path,
            ) from None
        key = sha256(request)
        with self._lock:
            index, self._next = self._next, self._next + 1
            occurrence = self._begun.get((call.name, key), 0)
            self._begun[call.name, key] = occurrence + 1
        return Begun(call, index, key, occurrence, request, time.time_ns() // 1_000, time.perf_counter_ns())


class Recorder(Asking):
    """The effects of one attempt: called, recorded, and for durable ones of later attempts served instead of called."""

    def __init__(self, node: str, attempt: int, sink: Sink) -> None:
        super().__init__(node)
        self._attempt = attempt
        self._sink = sink
        self._last = 0
        self._loading = threading.Lock()
        self._earlier: dict[tuple[str, str], list[Effect]] | None = None

    def now(self) -> int:
        """The wall clock in microseconds. It never goes back within an attempt."""
        with self._lock:
            self._last = max(self._last, time.time_ns() // 1_000)
            self._sink.read_clock(self._last)
            return self._last

    def checkpoint(self, label: str) -> None:
        self._sink.keep([(CHECKPOINT, masked(encode(label)))])

    def effect(self, call: Call) -> Any:
        """The response; a coroutine that gives it when the function is one, or returns something to be awaited."""
        if inside.get():
            return call.function(*call.args, **call.kwargs)
        begun = self._begin(call)
        if inspect.iscoroutinefunction(call.function):
            return self._asynchronous(begun)
        served = self._served(begun) if call.durable else None
        if served is not None:
            self._serve(begun, served)
            return _given(served.response) if served.awaited else served.response
        try:
            result = call.perform()
        except Exception as error:
            self._raised(begun, error)
            raise
        if type(result) not in _DATA and inspect.isawaitable(result):
            return self._awaiting(begun, result)
        record, response = self._returned(begun, result)
        self._store(record)
        return response

    async def _asynchronous(self, begun: Begun) -> Any:
        if begun.call.durable:
            served = await asyncio.to_thread(self._served, begun)
            if served is not None:
                self._serve(begun, served, awaited=True)
                return served.response
        return await self._awaiting(begun, begun.call.perform())

    async def _awaiting(self, begun: Begun, result: Awaitable[Any]) -> Any:
        token = inside.set(True)
        try:
            value = await result
        except (Exception, asyncio.CancelledError) as error:
            # Nothing is awaited here: a cancelled body has no time for it, and a failed effect is not served again.
            self._raised(begun, error, awaited=True)
            raise
        finally:
            inside.reset(token)
        record, response = self._returned(begun, value, awaited=True)
        if record.durable:
            await asyncio.to_thread(self._store, record)
        else:
            self._store(record)
        return response

    def _returned(self, begun: Begun, result: Any, *, awaited: bool = False) -> tuple[Record, Any]:
        """The record, and what the body gets: what a replay would give it, which JSON has gone through."""
        call = begun.call
        try:
            data = encode(result)
            stored = masked(data if call.stored is None else encode(call.stored(result)))
        except NotJson as error:
            trouble = NotJson(
                f"effect {call.name!r} of node {self._node!r} was done, and what it returned cannot be recorded: "
                f"{error.message}; have its function return JSON-able data",
                path=error.path,
            )
            self._raised(begun, trouble, awaited=awaited)
            raise trouble from None
        record = self._record(begun, stored, awaited=awaited, durable=call.durable)
        return record, result if type(result) in _PLAIN else decode(data)

    def _raised(self, begun: Begun, error: BaseException, *, awaited: bool = False) -> None:
        self._sink.keep(self._record(begun, None, awaited=awaited)._replace(raised=raised_data(error)).lines())

    def _serve(self, begun: Begun, served: Effect, *, awaited: bool = False) -> None:
        """Recorded here too, so that what this attempt was told can be read from its own record."""
        record = self._record(begun, encode(served.response), awaited=awaited or served.awaited)
        self._sink.keep(record._replace(from_attempt=served.attempt).lines())

    def _record(self, begun: Begun, response: bytes | None, *, awaited: bool, durable: bool = False) -> Record:
        return Record(
            begun.index,
            begun.call.name,
            begun.key,
            begun.occurrence,
            begun.at,
            (time.perf_counter_ns() - begun.started) // 1_000,
            begun.request,
            response,
            awaited=awaited,
            durable=durable,
        )

    def _store(self, record: Record) -> None:
        (self._sink.append if record.durable else self._sink.keep)(record.lines())

    def _served(self, begun: Begun) -> Effect | None:
        """The durable effect of an earlier attempt that answers this one: each is used once, the oldest first."""
        if self._attempt == 1:
            return None
        with self._loading:
            if self._earlier is None:
                self._earlier = _durable(self._sink.earlier())
            waiting = self._earlier.get((begun.call.name, begun.key))
            return waiting.pop(0) if waiting else None


def _durable(rows: Iterable[LineRow]) -> dict[tuple[str, str], list[Effect]]:
    """Durable effects by name and request. One that raised is not among them: the next attempt tries it again."""
    rows = tuple(rows)
    found: dict[tuple[str, str], list[Effect]] = {}
    effects = effects_of(rows, {row.node: "" for row in rows})
    for each in sorted(effects, key=lambda effect: (effect.attempt, effect.index)):
        if each.durable and each.error is None:
            found.setdefault((each.name, each.request_hash), []).append(each)
    return found


async def _given(value: Any) -> Any:
    return value
