"""`engine.events()`: the journal of a run, or the status of every run when it changes, as it happens."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal, NamedTuple

from ..base.clock import SECOND
from ..base.ids import RunId
from ..base.words import shown
from ..core.model import UNFINISHED_RUNS, GetRun, ListEnded, ListJournal, ListRuns, RunRow
from ..core.store import Store, reader
from ..errors import InputError
from .parts import EngineParts
from .recent import Recent
from .runs.records import journal_record, run_change
from .runs.stored import SLACK

AT_ONCE = 500
RUNS_AT_ONCE = 1_000
LOOK_EVERY = 0.05
"""Seconds between two looks; ten times as long as a look takes if that is longer, one second at most."""


class Event(NamedTuple):
    """An event of a stream: its kind ("journal", "run", "log", "end", "reset"), its id and its data."""

    kind: str
    id: str | None
    data: dict[str, Any]


def check_until(run_id: str | None, until: str | None) -> None:
    if until is not None and until != "ended":
        raise InputError(f"until={shown(until)}: expected 'ended', or nothing")
    if run_id is None and until is not None:
        raise InputError("until='ended' is about one run: name it, events(run, until='ended')")


class EventFollower(ABC):
    """What one iterator has given so far."""

    over = False

    @abstractmethod
    def next(self) -> list[Event]:
        """What has happened since the last call."""


class RunFollower(EventFollower):
    """The journal of a run. `reset`: the run was deleted, or is not the one it was."""

    def __init__(self, parts: EngineParts, run_id: str, last: str | None, *, until_ended: bool) -> None:
        self._parts = parts
        self._row = reader.require_run(parts.store, run_id)
        self._place, self._until_ended = _place(last) or 0, until_ended

    def next(self) -> list[Event]:
        run_id, events = self._row.id, list[Event]()
        row, entries = self._parts.store.read([GetRun(run_id), ListJournal(run_id, self._place, AT_ONCE)])
        if row is None or row.created_at != self._row.created_at:
            self.over = True
            return [Event("reset", None, {"run": run_id, "seq": None})]
        self._row = row
        if self._place > row.seq:
            self._place = 0
            return [Event("reset", None, {"run": run_id, "seq": row.seq})]
        order = self._parts.code.graphs.of(row).order if entries else ()
        events += [Event("journal", str(entry.seq), dict(journal_record(entry, order))) for entry in entries]
        self._place = entries[-1].seq if entries else self._place
        if self._until_ended and row.status.terminal and self._place >= row.seq:
            self.over = True
            events.append(Event("end", None, {"run": run_id, "status": row.status}))
        return events


class AllFollower(EventFollower):
    """Every run that is no child run whenever its status or its counts change. First come all that have not ended."""

    def __init__(self, store: Store, last: str | None) -> None:
        self._store = store
        place = _place(last)
        self._since = store.now() if place is None else place
        self._seen: Recent[RunId, tuple[int, int]] = Recent(100_000)

    def next(self) -> list[Event]:
        now, since = self._store.now(), self._since - (SECOND if self._store.embedded else SLACK)
        pages = [*pages_of_unfinished(self._store), *pages_of_ended(self._store, since)]
        rows = [row for page in pages for row in page if row.parent is None]
        changed = [row for row in rows if self._seen.get(row.id) != (row.created_at, row.seq)]
        for row in changed:
            self._seen[row.id] = row.created_at, row.seq
        self._since = now
        return [Event("run", str(now), dict(run_change(row))) for row in changed]


def follow(follower: EventFollower) -> Iterator[Event]:
    while True:
        began = time.monotonic()
        events = follower.next()
        yield from events
        if follower.over:
            return
        if not events:
            time.sleep(_pause(time.monotonic() - began))


async def follow_on_loop(
    follower: Callable[[], EventFollower], read: Callable[[Callable[[], Any]], Awaitable[Any]]
) -> AsyncIterator[Event]:
    """The same for coroutines; `read` makes a call in a thread, which is not held between two looks."""
    made = await read(follower)
    while True:
        began = time.monotonic()
        events = await read(made.next)
        for event in events:
            yield event
        if made.over:
            return
        if not events:
            await asyncio.sleep(_pause(time.monotonic() - began))


def events_of(
    parts: EngineParts, run_id: str | None, last: str | None, until: Literal["ended"] | None
) -> EventFollower:
    if run_id is None:
        return AllFollower(parts.store, last)
    return RunFollower(parts, run_id, last, until_ended=until is not None)


def pages_of_ended(store: Store, since: int) -> Iterator[list[RunRow]]:
    query: ListEnded | None = ListEnded(since)
    while query is not None:
        (page,) = store.read([query])
        yield list(reader.without_internal(page))
        query = None if page.cursor is None else query._replace(after=page.cursor)


def pages_of_unfinished(store: Store) -> Iterator[list[RunRow]]:
    query: ListRuns | None = ListRuns(RUNS_AT_ONCE, statuses=tuple(UNFINISHED_RUNS))
    while query is not None:
        (page,) = store.read([query])
        yield list(reader.without_internal(page.runs))
        query = None if page.cursor is None else query._replace(before=page.cursor)


def _place(last: str | None) -> int | None:
    if last is None:
        return None
    if not (isinstance(last, str) and last.isascii() and last.isdigit()) or len(last) > 18:
        raise InputError(f"last={shown(last)}: expected the id of an event")
    return int(last)


def _pause(took: float) -> float:
    return min(1.0, max(LOOK_EVERY, 10 * took))
