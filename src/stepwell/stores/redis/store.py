"""`redis://`: runs in a Redis server, for workers on many machines."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from typing import Any, cast

from redis import exceptions as trouble

from ...base.clock import Clock
from ...base.ids import AttemptId, RunId, WorkerId
from ...base.words import error_text
from ...core.model import (
    Answer,
    Batch,
    CountedRuns,
    CountRuns,
    Hint,
    ListLines,
    ListMarks,
    ListRuns,
    Page,
    Query,
    RunPage,
    Swept,
    ops,
)
from ...core.model.rows import LineRow
from ...core.store.hooks import CommitHooks
from ...core.store.rules.processes import check_process
from ...core.store.rules.values import refuse_values
from ...errors import (
    NotStored,
    SchemaTooNew,
    StepwellError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreReplaced,
)
from .connecting import RedisAddress, connect, inspect, read_url
from .decoding import blobs_of, value_of
from .fields import Arg, Arguments
from .hints import Hints
from .library import LIMITS, SCANNED, library
from .reading import lines_of, question, run_counts, run_page
from .request import Request, parts_before

SEARCHING_CALLS = 20
"""Calls that search runs for a text, or count them, before an answer is given, complete or not."""
LAYOUT = 10
"""The version of the keys: see `lua/keys.lua`."""


class RedisStore:
    """Runs in a Redis server, under one namespace.

    `durability` says what a crash of the server can lose. Time is that of the server; tests add an `offset` to it, or give a
    `clock` in its place.
    """

    embedded = False
    needs_hints = True
    transactions = None
    limits = LIMITS

    def __init__(
        self, url: str, *, offset: Callable[[], int] = int, clock: Clock | None = None, connections: int | None = None
    ) -> None:
        self._address: RedisAddress = read_url(url)
        self.url = self._address.shown
        self._prefix = f"{{{self._address.namespace}}}:"
        self._marker_key = f"{self._prefix}marker"
        self._offset = offset
        self._clock = clock
        self._pid = os.getpid()
        self.hooks = CommitHooks()
        self._closed = False
        self._library = library()
        self._client: Any = connect(self._address)
        self._permits = nullcontext() if connections is None else threading.BoundedSemaphore(connections)
        self._hints = Hints(self._address, f"{self._prefix}hints")
        with self._translated():
            self.durability = inspect(self._client, self._address)
            self._load_library()
            self._marker = self._mark()
        if connections is not None:
            self._client.connection_pool.disconnect()  # what was asked at the beginning was asked on one of its own

    def _mark(self) -> bytes:
        """What tells this store from every other that was or will be under its name."""
        self._client.hsetnx(self._marker_key, "marker", f"{LAYOUT} {secrets.token_hex(16)}")
        marker = cast(bytes, self._client.hget(self._marker_key, "marker"))
        layout = marker.split(b" ")[0].decode(errors="replace")
        if layout != str(LAYOUT):
            older = layout.isdecimal() and int(layout) < LAYOUT
            kind, advice = (StoreError, "") if older else (SchemaTooNew, "upgrade Stepwell, or ")
            raise kind(f"{self.url} has layout {layout}, this Stepwell knows {LAYOUT}: {advice}use another namespace")
        return marker

    def _load_library(self) -> None:
        if self._client.execute_command("FUNCTION", "LIST", "LIBRARYNAME", self._library.name):
            return
        try:
            self._client.execute_command("FUNCTION", "LOAD", self._library.text)
        except trouble.ResponseError as error:
            if "already exists" not in str(error):  # somebody else was first
                raise

    def commit(self, batch: Batch) -> Answer:
        return self.hooks.around(self._commit, batch)

    def _commit(self, batch: Batch) -> Answer:
        self._check_open()
        for op in takewhile(lambda op: isinstance(op, ops.AddGraph), batch):
            for part in parts_before(cast(ops.AddGraph, op)) if refuse_values(op) is None else ():
                self._call(self._library.commit, part, writes=True)
        request = Request(batch, self._address.keep)
        began = time.monotonic()
        now, answers, stops, blobs = self._call(self._library.commit, request.arguments(), writes=True)
        with self._decoding(NotStored):
            receipts = request.receipts(answers, blobs_of(blobs))
        if len(receipts) == 1 and type(receipts[0]) is Swept:
            self._hints.heard.swept(receipts[0].workers, time.monotonic() - began)
        return Answer(receipts, now, tuple(map(value_of(AttemptId), stops)))

    def read(self, queries: Sequence[Query]) -> list[Any]:
        self._check_open()
        return [self._whole(query, answer) for query, answer in zip(queries, self._ask(queries), strict=True)]

    def _ask(self, queries: Sequence[Query]) -> list[Any]:
        arguments = Arguments()
        questions = [question(query, arguments) for query in queries]
        request = arguments.of({"queries": [asked.fields for asked in questions]})
        _, answers, blobs = self._call(self._library.read, request)
        with self._decoding(StoreCorrupt):
            payloads = blobs_of(blobs)
            return [asked.read(asked.query, answer, payloads) for asked, answer in zip(questions, answers, strict=True)]

    def _whole(self, query: Query, answer: Any) -> Any:
        """Some queries look through more than one call may: the rest is asked for here."""
        if isinstance(query, ListRuns):
            return self._runs(query, answer)
        if isinstance(query, CountRuns):
            return self._run_counts(query, answer)
        if isinstance(query, ListLines | ListMarks):
            return self._lines(query, answer)
        return answer

    def _runs(self, query: ListRuns, answer: Any) -> RunPage:
        rows, more, stopped = answer
        calls, is_bounded = 1, query.text is not None or query.order != "created"
        while stopped is not None and len(rows) <= query.limit and (not is_bounded or calls < SEARCHING_CALLS):
            rest = query._replace(before=tuple(stopped), limit=query.limit - len(rows))
            ((others, more, stopped),) = self._ask([rest])
            rows = rows + others
            calls += 1
        with self._decoding(StoreCorrupt):
            page = run_page(rows, query, bool(more))
        return page if stopped is None or page.cursor is not None else page._replace(cursor=tuple(stopped))

    def _run_counts(self, query: CountRuns, answer: Any) -> CountedRuns:
        counts, stopped = answer
        parts = [counts]
        while stopped is not None and len(parts) < SEARCHING_CALLS:
            ((counts, stopped),) = self._ask([query._replace(runs=query.runs._replace(before=tuple(stopped)))])
            parts.append(counts)
        with self._decoding(StoreCorrupt):
            return run_counts(parts, query, exact=stopped is None)

    def _lines(self, query: ListLines | ListMarks, answer: Any) -> Page[LineRow]:
        lines: list[LineRow] = []
        while True:
            with self._decoding(StoreCorrupt):
                lines += lines_of(answer, query)
            if len(lines) >= query.limit:
                lines = lines[: query.limit]
                return Page(lines, (lines[-1].attempt, lines[-1].index) if lines else None)
            if len(answer) < SCANNED:
                return Page(lines)
            attempt, index = answer[-1][:2]
            (answer,) = self._ask([query._replace(after=(AttemptId(attempt.decode()), index))])

    def _call(self, function: str, args: Sequence[Arg], *, writes: bool = False) -> Any:
        command = ("FCALL", function, 1, self._marker_key, self._marker, self._time(), *args)
        try:
            try:
                return self._send(command, writes)
            except trouble.ResponseError as error:
                if "Function not found" not in str(error):
                    raise
            self._load_library()  # the server lost it, or was exchanged for another
            return self._send(command, writes)
        except trouble.RedisError as error:
            known = translated(error, self.url)
            raise (
                damaged(self.url, error, NotStored if writes else StoreCorrupt) if known is error else known
            ) from error

    def _send(self, command: Sequence[Arg], writes: bool) -> Any:
        wait = self._address.wait
        with self._permits:
            if wait is None or not writes:
                return self._client.execute_command(*command)
            milliseconds = int(self._address.wait_seconds * 1000)
            waiting: Sequence[Arg] = ("WAITAOF", 1, 0, milliseconds) if wait == "aof" else ("WAIT", 1, milliseconds)
            answer, reached = self._send_together(command, waiting)
        if (reached[0] if wait == "aof" else reached) < 1:
            raise StoreError(
                f"{self.url}: a commit was applied, and was not on the {'disk' if wait == 'aof' else 'replica'} "
                f"{self._address.wait_seconds:g} seconds later; it is sent again"
            )
        return answer

    def _send_together(self, *commands: Sequence[Arg]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return cast("list[Any]", pipeline.execute())

    def _time(self) -> Arg:
        """An offset to the time of the server, or a time."""
        return self._offset() if self._clock is None else f"@{int(self._clock.now())}"

    def now(self) -> int:
        self._check_open()
        if self._clock is not None:
            return self._clock.now()
        with self._translated():
            seconds, microseconds = self._client.time()
        return int(seconds) * 1_000_000 + int(microseconds) + self._offset()

    def send_hint(self, hint: Hint) -> None:
        if not self._closed and self._pid == os.getpid():
            self._hints.send(self._client, hint)

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        self._check_open()
        return self._hints.wait(queues, runs, worker, timeout)

    def close(self) -> None:
        if self._pid != os.getpid():
            return  # A forked child must not close what its parent still uses.
        self._closed = True
        self._hints.close()
        self._client.close()

    def _check_open(self) -> None:
        check_process(self._pid, self.url)
        if self._closed:
            raise StoreError("the store is closed")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """What can happen to any server. Whatever else it answers is a bug of ours, and looks like one."""
        try:
            yield
        except trouble.RedisError as error:
            raise translated(error, self.url) from error

    @contextmanager
    def _decoding(self, kind: type[StepwellError]) -> Iterator[None]:
        """What is read here was written by this class; when it cannot be read, the keys were changed by somebody else."""
        try:
            yield
        except (LookupError, ValueError, TypeError) as error:
            raise damaged(self.url, error, kind) from error


def damaged(url: str, error: Exception, kind: type[StepwellError]) -> StepwellError:
    """An error of `kind`: StoreCorrupt of a read. Of a commit NotStored, so that the ops it does not concern are applied."""
    return kind(
        f"{url}: what is stored there is damaged, or of another program ({error_text(error)}): restore it from a backup, "
        "or use another namespace. `stepwell audit` says which runs are affected"
    )


def translated(error: trouble.RedisError, url: str) -> Exception:
    told = str(error)
    if isinstance(error, trouble.AuthenticationError | trouble.NoPermissionError | trouble.AuthorizationError):
        return StoreError(f"{url}: the server refuses this user: {told}; see docs/redis.md for the rights it must have")
    if isinstance(error, trouble.BusyLoadingError):
        return StoreBusy(f"{url}: the server is starting: {told}")
    if isinstance(error, trouble.ConnectionError | trouble.TimeoutError):
        return StoreError(f"{url}: the server cannot be reached: {told}")
    if isinstance(error, trouble.OutOfMemoryError):
        return StoreFull(f"{url}: the memory of the server is full: {told}; nothing was written, and it is sent again")
    if isinstance(error, trouble.ReadOnlyError):
        return StoreReadOnly(f"{url}: the server is a replica by now: {told}")
    if told.startswith("REPLACED"):
        return StoreReplaced(
            f"{url}: what was stored here is gone or was exchanged: the server was flushed, restored from a backup, or is "
            f"another one. Nothing was written. Start the engine again to begin with what is there now"
        )
    if told.startswith(("MISCONF", "NOREPLICAS", "MASTERDOWN", "UNBLOCKED", "BUSY")):
        return StoreError(f"{url}: the server does not write now: {told}")
    return error
