"""One thread that polls the store for all streams.

Every stream knows its position and reads what it missed from the store. So the feed may drop events that a slow client does not
take, and a stream needs bounded memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...base.clock import SECOND
from ...base.ids import Digest, RunId, WorkerId, new_worker_id
from ...core.graph import Graph
from ...core.model import (
    UNFINISHED_RUNS,
    Answer,
    Batch,
    JournalRow,
    ListJournal,
    ListRuns,
    PutRecord,
    Query,
    RunRow,
)
from ...core.store import Store, reader
from ...engine.following import RUNS_AT_ONCE, pages_of_ended
from ...engine.recent import Recent
from ...engine.runs.stored import SLACK
from ...engine.wrapped_store import WrappedStore
from ...errors import StoreError, StoreReplaced
from ..problems import HttpProblem
from .sse import Listener

log = logging.getLogger("stepwell")

LOOK_EVERY = 0.05
"""Seconds between two polls for changes by other processes."""
SOONEST = 0.01
"""Minimum of seconds between two polls."""
SHARE_OF_TIME = 0.1
"""Polling must not slow down the work, so slow polls are done less often,"""
LONGEST_PAUSE = 1.0
"""but at least this often: on a busy machine everything is slow now and then."""
TROUBLE_SECONDS = 1.0
AT_ONCE = 500
MAX_WAITING = 2_000
"""Events that wait for a slow client; then it reads them from the store, when it can take them."""
MAX_STREAMS = 2_000
MAX_CHANGED = 10_000
"""Changed runs that one poll reports; if there are more, streams of all runs are reset."""


class FeedItems(NamedTuple):
    """What waited for a stream."""

    rows: list[JournalRow | RunRow]
    dropped: bool
    """Some of it was not kept."""
    as_of: int
    """When the look at all runs began that brought the last of it: of what had ended by then, nothing is missing."""


class FeedStream(Listener):
    """One stream, and what waits for it."""

    def __init__(self, run_id: RunId | None) -> None:
        super().__init__()
        self.run_id = run_id
        self.waiting: list[JournalRow | RunRow] = []
        self.overflowed = False
        self._as_of = 0
        self.closed = False
        self._lock = threading.Lock()

    def push(self, rows: list[JournalRow] | list[RunRow], as_of: int = 0) -> None:
        """From the thread of the feed."""
        with self._lock:
            self._as_of = as_of
            if len(self.waiting) + len(rows) > MAX_WAITING:
                self.waiting, self.overflowed = [], True
            elif not self.overflowed:
                self.waiting += rows
        self.wake()

    def take(self) -> FeedItems:
        with self._lock:
            taken = FeedItems(self.waiting, self.overflowed, self._as_of)
            self.waiting, self.overflowed = [], False
        return taken


class Feed:
    def __init__(self, store: Store, graph: Callable[[Digest, RunId | None], Graph]) -> None:
        self._store = store
        self.graph = graph
        self._lock = threading.Lock()
        self._watchers: set[FeedStream] = set()
        self._places: dict[RunId, int] = {}
        """For every run that is followed: the last entry of its journal that was read."""
        self._seen: Recent[RunId, tuple[int, int]] = Recent(100_000)
        """For streams of all runs: (created_at, seq) of each run when it was last sent."""
        self.written: Recent[tuple[RunId, int, int], str] = Recent(2_000)
        """The JSON of runs, written once for all streams."""
        self._ended_since = 0
        self._older: tuple[int, int] | None = None
        """The cursor among the older unfinished runs."""
        self._rounds = 0
        """How many passes over the older runs are left."""
        self._poked = threading.Event()
        self._thread: threading.Thread | None = None
        self.closed = False
        self.streams = 0
        """Of all kinds, those of pipelines and logs too."""
        self._name: WorkerId = new_worker_id()

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """The place of one stream of any kind, from before its answer begins until it ends; an HttpProblem if there is none."""
        with self._lock:
            if self.closed or self.streams >= MAX_STREAMS:
                many = f"{MAX_STREAMS} streams are open, and no more are allowed"
                raise HttpProblem(503, "the server is closing" if self.closed else many, headers={"Retry-After": "2"})
            self.streams += 1
        try:
            yield
        finally:
            with self._lock:
                self.streams -= 1

    async def pause(self, seconds: float) -> None:
        """Sleep, for streams that poll; ends early when the server closes."""
        waited = 0.0
        while waited < seconds and not self.closed:
            await asyncio.sleep(min(0.25, seconds - waited))
            waited += 0.25

    def wake(self) -> None:
        """Have all streams look again whether they may go on."""
        with self._lock:
            for watcher in self._watchers:
                watcher.wake()

    def poke(self) -> None:
        """Called after a commit of this process."""
        if self._watchers:
            self._rounds = 2  # the one that is going on may have passed what has changed
            self._poked.set()

    @contextlib.contextmanager
    def watching(self, run_id: RunId | None, place: int = 0) -> Iterator[FeedStream]:
        """A stream of a run, from after this entry of its journal on; of all runs if None is named."""
        watcher = FeedStream(run_id)
        with self._lock:
            watcher.closed = self.closed
            if run_id is None and not any(each.run_id is None for each in self._watchers):
                self._seen.clear()  # all runs were not watched meanwhile
                self._ended_since = self._store.now() - SLACK
                self._rounds = 1
            if run_id is not None:
                self._places[run_id] = min(place, self._places.get(run_id, place))
            self._watchers.add(watcher)
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="stepwell-feed", daemon=True)
                self._thread.start()
        self._poked.set()
        try:
            yield watcher
        finally:
            with self._lock:
                self._watchers.discard(watcher)
                if not any(each.run_id == run_id for each in self._watchers) and run_id is not None:
                    self._places.pop(run_id, None)

    def end_streams(self) -> None:
        with self._lock:
            self.closed = True
            for watcher in self._watchers:
                watcher.closed = True
                watcher.wake()
        self._poked.set()

    def close(self) -> None:
        """End the streams, and wait for the thread."""
        self.end_streams()
        thread = self._thread
        if thread is not None:
            thread.join(5)

    def _follow(self) -> None:
        """The thread of the feed, which ends with the last stream."""
        while True:
            with self._lock:
                if self.closed or not self._watchers:
                    self._thread = None
                    return
            try:
                if self._has_changed():
                    began = time.monotonic()
                    self._look()
                    time.sleep(pause_after(time.monotonic() - began))
            except StoreError:
                log.warning("the streams wait for the store", exc_info=True)
                time.sleep(TROUBLE_SECONDS)
            except Exception:  # or all streams would be silent for good
                log.exception("the streams cannot be served; it is tried again")
                time.sleep(TROUBLE_SECONDS)

    def _has_changed(self) -> bool:
        poked = self._poked.wait(LOOK_EVERY)
        self._poked.clear()
        # A database server sends no hint for most commits, so poll it each time.
        if self._store.needs_hints or self._store.wait_for_hint((), (), self._name, 0):
            self._rounds = 2
            return True
        return poked

    def _look(self) -> None:
        with self._lock:
            places = dict(self._places)
            of_all = [watcher for watcher in self._watchers if watcher.run_id is None]
        if places:
            asked = [ListJournal(run_id, place, AT_ONCE) for run_id, place in places.items()]
            for run_id, rows in zip(places, self._store.read(asked), strict=True):
                if rows:
                    self._tell(run_id, list(rows))
        if of_all:
            changed, complete, as_of = self._changed_runs()
            for watcher in of_all if changed or not complete else ():
                watcher.push(changed, as_of)
                if not complete:
                    watcher.overflowed = True

    def _tell(self, run_id: RunId, rows: list[JournalRow]) -> None:
        with self._lock:
            if run_id in self._places:
                self._places[run_id] = rows[-1].seq
            watchers = [watcher for watcher in self._watchers if watcher.run_id == run_id]
        for watcher in watchers:
            watcher.push(rows)
        if len(rows) == AT_ONCE:
            self._poked.set()

    def _changed_runs(self) -> tuple[list[RunRow], bool, int]:
        """Runs that changed since they were last sent, whether these are all of them, and when the poll began."""
        as_of, since = self._store.now(), self._ended_since
        self._ended_since = as_of - (SECOND if self._store.embedded else SLACK)
        ended, complete = ended_since(self._store, since)
        found = [*self._some_unfinished(), *ended]
        changed = [row for row in found if self._seen.get(row.id) != (row.created_at, row.seq)]
        for row in changed:
            self._seen[row.id] = row.created_at, row.seq
        return changed, complete, as_of

    def _some_unfinished(self) -> list[RunRow]:
        """The newest runs and some of the older ones, because reading very many would take too long."""
        asked = ListRuns(RUNS_AT_ONCE, statuses=tuple(UNFINISHED_RUNS))
        (newest,) = self._store.read([asked])
        if newest.cursor is None:
            self._older = None
            return list(reader.without_internal(newest.runs))
        (older,) = self._store.read([asked._replace(before=self._older or newest.cursor)])
        self._older = older.cursor
        if older.cursor is None:
            self._rounds -= 1
        if self._rounds > 0:
            self._poked.set()
        return list(reader.without_internal((*newest.runs, *older.runs)))


def pause_after(took: float) -> float:
    """Seconds until the next poll.

    >>> pause_after(0.001), pause_after(0.05), pause_after(30)
    (0.01, 0.5, 1.0)
    """
    return SOONEST if took <= SOONEST else min(LONGEST_PAUSE, took / SHARE_OF_TIME)


def ended_since(store: Store, since: int) -> tuple[list[RunRow], bool]:
    """Runs that ended then or later, and whether these are all of them."""
    found: list[RunRow] = []
    for page in pages_of_ended(store, since):
        if len(found) > MAX_CHANGED:
            return found, False
        found += page
    return found, True


class WatchedStore(WrappedStore):
    """A store that reports its commits to the feed, changed records to their cache, and its loss to the server."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.on_replaced: Callable[[StoreReplaced], None] = lambda error: None
        """Called when what is stored was exchanged: no request can be answered any more."""
        self.on_commit: Callable[[], None] = lambda: None
        self.on_record: Callable[[str], None] = lambda kind: None
        """Called with the kind of each record that was put."""
        store.hooks.add(self._committed)

    def _committed(self, batch: Batch, answer: Answer) -> None:
        self.on_commit()
        for op in batch:
            if type(op) is PutRecord:
                self.on_record(op.kind)

    def commit(self, batch: Batch) -> Answer:
        with self._noticing():
            return self._store.commit(batch)

    def read(self, queries: Sequence[Query]) -> list[Any]:
        with self._noticing():
            return self._store.read(queries)

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except StoreReplaced as error:
            self.on_replaced(error)
            raise
