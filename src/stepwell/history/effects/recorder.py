"""Records the effects of one attempt.

An effect gets its index and its occurrence when it begins, and is recorded when it has ended. So effects that overlap, in
threads or in tasks, are told apart by what they ask and not by when they are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

from ...base.codec import encode, read_back, text
from ...core.model import LineRow
from ...core.model.lines import CHECKPOINT
from ...errors import InputError, MaskedResponse, NotJson, Stopped
from . import record
from .record import MAX_RECORDED, Effect, EffectRequest, Line

log = logging.getLogger("stepwell")

inside: ContextVar[bool] = ContextVar("stepwell_inside_effect", default=False)
"""True in the function of an effect: what it asks is part of its response and not recorded again."""
_PLAIN = frozenset({str, int, bool, type(None)})
_DATA = _PLAIN | {float, list, dict}
"""What effects mostly return, which need not be checked for awaitables."""


class Sink(Protocol):
    """Where the records of an attempt go."""

    def keep(self, lines: list[Line]) -> None:
        """Store it with the settlement of the attempt."""
        ...

    def append(self, lines: list[Line]) -> None:
        """Store it now: it is durable when this returns. Raises Stopped when the attempt may no longer write."""
        ...

    def read_clock(self, at: int) -> None:
        """Store what `ctx.now()` gave, in microseconds, with the settlement."""
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
    """Reduces a response to what may be stored."""
    hide: Callable[[Any], Any] | None = None
    """Masks secrets in it that cannot be found in its text."""

    def perform(self) -> Any:
        token = inside.set(True)
        try:
            return self.function(*self.args, **self.kwargs)
        finally:
            inside.reset(token)


_READING = 20
"""Bytes that one reading of the clock takes in the record."""
_lock = threading.Lock()
"""Threads of one body may ask at once. One lock for all bodies will do: it is held only for a moment."""


class EffectNumbering:
    """Gives every effect that a body asks for its index and its occurrence."""

    __slots__ = ("_begun", "_next", "_node")

    def __init__(self, node: str) -> None:
        self._node = node
        self._next = 0
        self._begun: dict[tuple[str, str], int] = {}

    def _begin(self, call: Call) -> EffectRequest:
        name = call.name
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"an effect needs a name, not {name!r}: ctx.effect('charge card', charge, amount)")
        if name == record.CLOCK:
            raise InputError(f"effects may not be called {name!r}: what ctx.now() gave is recorded under this name")
        try:
            if not name.isascii():
                text(name)
            request = record.masked_text(text(call.request))
        except NotJson as error:
            raise NotJson(
                f"what effect {name!r} of node {self._node!r} asks cannot be recorded: {error.message}; give the "
                f"function JSON-able arguments, or say with request=... what identifies this request",
                path=error.path,
            ) from None
        if len(name) + len(request) > MAX_RECORDED:
            raise NotJson(
                f"what effect {name[:100]!r} of node {self._node!r} asks has {len(request)} bytes; at most "
                f"{MAX_RECORDED} can be recorded: say with request=... what identifies this request"
            )
        with _lock:
            index, self._next = self._next, self._next + 1
            occurrence = self._begun.get((name, request), 0)
            self._begun[name, request] = occurrence + 1
        return EffectRequest(name, request, index, occurrence, time.time_ns() // 1_000, perf_counter_ns())


class Recorder(EffectNumbering):
    """Calls and records the effects of one attempt; durable effects of earlier attempts are served instead."""

    __slots__ = ("_attempt", "_awaited", "_bytes", "_earlier", "_ended", "_last", "_open", "_sink")

    def __init__(self, node: str, attempt: int, sink: Sink) -> None:
        super().__init__(node)
        self._attempt = attempt
        self._sink = sink
        self._last = 0
        self._open: dict[int, EffectRequest] = {}
        """Effects without an answer. Whoever takes one out, the answer or the end of the body, records it."""
        self._awaited: set[int] = set()
        """Which of them are awaited."""
        self._ended = False
        self._bytes = 0
        """How much is stored with the settlement so far."""
        self._earlier: Earlier | None = None

    def now(self) -> int:
        """The wall clock in microseconds. It never goes back within an attempt."""
        self._check_running()
        if self._bytes >= MAX_RECORDED:
            raise self._too_much("ctx.now()", self._bytes)
        self._bytes += _READING
        with _lock:
            self._last = max(self._last, time.time_ns() // 1_000)
            self._sink.read_clock(self._last)
            return self._last

    def checkpoint(self, label: str) -> None:
        self._check_running()
        line = (CHECKPOINT, record.masked(encode(label)))
        if self._bytes >= MAX_RECORDED:
            raise self._too_much(f"checkpoint {label!r}", self._bytes)
        self._bytes += len(line[1])
        self._sink.keep([line])

    def leave(self) -> None:
        """The body has ended: record what it did not wait for as open. Later answers are not recorded."""
        self._ended = True
        for index in sorted(self._open):
            request = self._open.pop(index, None)
            if request is not None:
                self._sink.keep([request.left_open(perf_counter_ns(), awaited=index in self._awaited)])

    def _check_running(self) -> None:
        if self._ended:
            raise Stopped(
                f"node {self._node!r}, attempt {self._attempt}, has ended: what its threads and tasks still ask is not recorded"
            )

    def _too_much(self, what: str, size: int) -> NotJson:
        """An attempt is stored in one piece, which must fit into the store."""
        return NotJson(
            f"{what} of node {self._node!r} cannot be recorded: there are {size} bytes, and at most {MAX_RECORDED} can be "
            "stored of one attempt. Keep what is large elsewhere and have its function return where it is"
        )

    def effect(self, call: Call) -> Any:
        """The response, or a coroutine that gives it if the function is one or returns an awaitable."""
        if inside.get():
            return call.function(*call.args, **call.kwargs)
        self._check_running()
        request = self._begin(call)
        self._open[request.index] = request
        if inspect.iscoroutinefunction(call.function):
            self._awaited.add(request.index)
            return self._later(call, request)
        try:
            return self._call(call, request)
        except BaseException as error:
            self._record_error(request, error)
            raise

    def _call(self, call: Call, request: EffectRequest) -> Any:
        if call.durable and self._attempt > 1:
            served = self._take_earlier(request)
            if served is not None:
                response = self._serve(request, served)
                return _awaitable(response) if served.awaited else response
        if self._bytes >= MAX_RECORDED:
            raise self._too_much(f"effect {call.name!r}", self._bytes)
        result = call.perform()
        if type(result) not in _DATA and inspect.isawaitable(result):
            self._awaited.add(request.index)
            return self._later(call, request, result)
        lines, response = self._record_response(call, request, result)
        if call.durable:
            self._sink.append(lines)
            self._open.pop(request.index, None)
        else:
            self._close(request, lines)
        return response

    async def _later(self, call: Call, request: EffectRequest, result: Awaitable[Any] | None = None) -> Any:
        """The same for an awaitable: `result`, or what the function returns."""
        try:
            if result is None:
                if call.durable and self._attempt > 1:
                    await asyncio.to_thread(self._earlier_effects().load)
                    served = self._take_earlier(request)
                    if served is not None:
                        return self._serve(request, served, awaited=True)
                if self._bytes >= MAX_RECORDED:
                    raise self._too_much(f"effect {call.name!r}", self._bytes)
                result = call.perform()
            lines, response = self._record_response(call, request, await _inside(result), awaited=True)
            if call.durable:
                await self._append(lines)
                self._open.pop(request.index, None)
            else:
                self._close(request, lines)
            return response
        except GeneratorExit:  # its loop was closed: the body has ended
            raise
        except BaseException as error:
            self._record_error(request, error, awaited=True)
            raise

    async def _append(self, lines: list[Line]) -> None:
        """Store a response for later attempts, even if the body is cancelled meanwhile.

        Then the effect has two records: what a later attempt is given, and after it what the body saw.
        """
        storing = asyncio.ensure_future(asyncio.to_thread(self._sink.append, lines))
        storing.add_done_callback(_retrieve_exception)
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            await asyncio.wait([storing])  # the attempt must not end before it is stored
            raise

    def _record_response(
        self, call: Call, request: EffectRequest, result: Any, *, awaited: bool = False
    ) -> tuple[list[Line], Any]:
        """The record, and what the body gets: the response after a round trip through JSON, as in a replay."""
        try:
            plain = text(result)
            storable = result if call.stored is None else call.stored(result)
            visible = storable if call.hide is None else call.hide(storable)
            visible_json = plain if visible is result else text(visible)
        except NotJson as error:
            raise NotJson(
                f"effect {call.name!r} of node {self._node!r} was done, and what it returned cannot be recorded: "
                f"{error.message}; have its function return JSON-able data",
                path=error.path,
            ) from None
        stored = record.masked_text(visible_json)
        masked = stored != visible_json or visible != storable
        if masked and call.durable:
            log.warning(
                "the response of durable effect %r of node %r holds a secret, which is not stored: a later attempt of "
                "the node could not be given it",
                call.name,
                self._node,
            )
        lines = request.answered(stored, perf_counter_ns(), awaited=awaited, durable=call.durable, masked=masked)
        size = _size(lines) if call.durable else self._bytes + _size(lines)
        if size > MAX_RECORDED:
            raise self._too_much(f"effect {call.name!r}, which was done,", size)
        return lines, result if type(result) in _PLAIN else read_back(plain)

    def _record_error(self, request: EffectRequest, error: BaseException, *, awaited: bool = False) -> None:
        self._close(
            request, request.answered(record.raised_text(error), perf_counter_ns(), raised=True, awaited=awaited)
        )

    def _close(self, request: EffectRequest, lines: list[Line]) -> None:
        if self._open.pop(request.index, None) is not None:
            self._bytes += _size(lines)
            self._sink.keep(lines)

    def _serve(self, request: EffectRequest, served: Effect, *, awaited: bool = False) -> Any:
        """Record it for this attempt too, so that its record is complete."""
        awaited = awaited or served.awaited
        if served.masked:
            raise MaskedResponse(
                f"durable effect {request.name!r} of node {self._node!r} was done by attempt {served.attempt}. Its response "
                "held a secret, which is not stored, so this attempt cannot get it. Leave out durable=True if the effect may "
                "be repeated, have the function return nothing secret, or catch this error: its `response` has *** in place "
                "of the secret",
                response=served.response,
            )
        answer = record.masked_text(text(served.response))
        lines = request.answered(answer, perf_counter_ns(), awaited=awaited, from_attempt=served.attempt)
        size = self._bytes + _size(lines)
        if size > MAX_RECORDED:
            raise self._too_much(f"effect {request.name!r}, which was done by attempt {served.attempt},", size)
        self._close(request, lines)
        return served.response

    def _take_earlier(self, request: EffectRequest) -> Effect | None:
        """The durable effect of an earlier attempt that answers this one."""
        return self._earlier_effects().take(request.name, request.key)

    def _earlier_effects(self) -> Earlier:
        with _lock:
            if self._earlier is None:
                self._earlier = Earlier(self._sink)
            return self._earlier


class Earlier:
    """The durable effects of earlier attempts, without those that raised: they are tried again."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._loading = threading.Lock()
        self._waiting: dict[tuple[str, str], list[Effect]] | None = None

    def take(self, name: str, key: str) -> Effect | None:
        """Take the oldest one; each is used once."""
        waiting = self.load().get((name, key))
        with self._loading:
            return waiting.pop(0) if waiting else None

    def load(self) -> dict[tuple[str, str], list[Effect]]:
        with self._loading:
            if self._waiting is None:
                rows = tuple(self._sink.earlier())
                by_identity: dict[tuple[str, str], list[Effect]] = {}
                effects = record.with_masked_requests(tuple(record.effects_of(rows, {row.node: "" for row in rows})))
                for effect in sorted(effects, key=lambda one: (one.attempt, one.index)):
                    if effect.durable and effect.error is None:
                        by_identity.setdefault((effect.name, effect.request_hash), []).append(effect)
                self._waiting = by_identity
            return self._waiting


def _size(lines: list[Line]) -> int:
    return len(lines[0][1]) if len(lines) == 1 else sum(len(data) for _, data in lines)


async def _inside(result: Awaitable[Any]) -> Any:
    token = inside.set(True)
    try:
        return await result
    finally:
        with contextlib.suppress(ValueError):  # a discarded coroutine ends in another context
            inside.reset(token)


async def _awaitable(value: Any) -> Any:
    return value


def _retrieve_exception(storing: asyncio.Future[None]) -> None:
    """Look at the error, or asyncio would complain after the body was cancelled."""
    if not storing.cancelled():
        storing.exception()
