"""Waiting for a run to end: threads wait in threads, coroutines on their loop.

`Watch` wakes those who wait. Waiting does not judge: it gives the status in which there is nothing more to wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, ParamSpec, TypeVar

from ..base.clock import LONGEST_WAIT, SECOND, Duration
from ..base.ids import RunId, new_worker_id
from ..core.model import GetRun, RunNews, RunRow, Sweep, Swept
from ..core.store import Store, reader
from ..errors import EngineClosed, InputError, RunStillActive, StoreError
from .aio.pool import Pool
from .checking import checked_limit
from .procedures.gates import GATE_LEASE, finish
from .procedures.procedure import carry_out, news_of
from .worker.housekeeper import AFTER_TROUBLE_SECONDS, HINT_SECONDS


class Waiter:
    """One thread that waits for one run."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._error: BaseException | None = None
        self.completed = False
        """News said that the run has completed."""

    def wait(self, timeout: float | None) -> None:
        self._event.wait(timeout)
        self._event.clear()
        if self._error is not None:
            raise self._error

    def wake(self, error: BaseException | None = None, *, completed: bool = False) -> None:
        self._error, self.completed = error, completed
        self._event.set()


class LoopWaiter:
    """One coroutine that waits for one run, on the loop it runs on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._error: BaseException | None = None

    async def wait(self, timeout: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), timeout)
        self._event.clear()
        if self._error is not None:
            raise self._error

    def wake(self, error: BaseException | None = None, *, completed: bool = False) -> None:
        """From any thread."""
        self._error = error
        with contextlib.suppress(RuntimeError):  # its loop was closed
            self._loop.call_soon_threadsafe(self._event.set)


AnyWaiter = TypeVar("AnyWaiter", Waiter, LoopWaiter)


class Watch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[RunId, list[Waiter | LoopWaiter]] = {}

    @contextlib.contextmanager
    def waiting(self, run_id: RunId, waiter: AnyWaiter) -> Iterator[AnyWaiter]:
        with self._lock:
            self._waiters.setdefault(run_id, []).append(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters[run_id].remove(waiter)
                if not self._waiters[run_id]:
                    del self._waiters[run_id]

    def runs(self) -> tuple[RunId, ...]:
        with self._lock:
            return tuple(self._waiters)

    @property
    def waited(self) -> Collection[RunId]:
        """The runs that are waited for, as they change: `in` says whether one is."""
        return self._waiters.keys()

    def tell(self, news: Iterable[RunNews]) -> None:
        for run in news:
            if run.status.moving:  # as after most commits
                continue
            if run.status.resting and run.run_id in self._waiters:
                with self._lock:
                    for waiter in self._waiters.get(run.run_id, ()):
                        waiter.wake(completed=run.status.completed)

    def trouble(self, error: BaseException | None, runs: Collection[RunId] | None = None) -> None:
        """Raise an error in those who wait for these runs, or for any; None: the trouble is over."""
        with self._lock:
            for run_id, waiters in self._waiters.items():
                if error is not None and (runs is None or run_id in runs):
                    for waiter in waiters:
                        waiter.wake(error)


P = ParamSpec("P")
Found = TypeVar("Found")

GOING_ON = ("retry", "reattempt", "resume")
"""Purposes of a gate after which a run goes on, although its row still says that it has ended or paused."""
PAUSED_BY_SOMEBODY = "paused"
"""The reason of a run that somebody paused, and somebody will resume."""
LOOK_SOON = 0.02
"""Seconds until the next look at a run that is about to go on."""
LOOK_EVERY = 0.05
"""Seconds between two looks where no runner brings news; longer when many wait."""


def waits_for_a_decision(row: RunRow) -> bool:
    """Whether it paused by itself, and nothing happens until somebody decides."""
    return row.status.paused and row.reason != PAUSED_BY_SOMEBODY


class PolledRun(NamedTuple):
    row: RunRow
    done: bool
    """There is nothing more to wait for."""
    again_in: float
    """Seconds until the next look, unless there is news before."""


class HintedLooks:
    """Looks at the runs that are waited for when a hint tells of one, for an engine without a runner to do so.

    Hints may be lost, so those who wait look now and then all the same.
    """

    def __init__(self, store: Store, watch: Watch) -> None:
        self._store, self._watch = store, watch
        self._name = new_worker_id()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def start(self) -> None:
        """Hear the hints from now on. A run that ended before is found by looking at it."""
        with self._starting:
            # A forked child has the object of the thread, but not the thread.
            if self._closed.is_set() or not self._store.needs_hints or (self._thread and self._thread.is_alive()):
                return
            with contextlib.suppress(StoreError):
                self._store.wait_for_hint((), self._watch.waited, self._name, 0)
            self._thread = threading.Thread(target=self._serve, name="stepwell-waiting", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Its thread ends when the store is closed, or soon after."""
        self._closed.set()

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                if self._store.wait_for_hint((), self._watch.waited, self._name, HINT_SECONDS):
                    self._closed.wait(self._look())
            except StoreError:  # those who wait find that out themselves
                self._closed.wait(AFTER_TROUBLE_SECONDS)

    def _look(self) -> float:
        """Wake those whose run has ended; as many seconds as that took, so that it takes half of the time at most."""
        began = time.monotonic()
        rows = self._store.read([GetRun(run_id) for run_id in self._watch.runs()])
        self._watch.tell(news_of(row) for row in rows if row is not None)
        return time.monotonic() - began


class Waiting:
    """Those who wait for runs of one engine."""

    def __init__(
        self,
        store: Store,
        watch: Watch,
        begin: Callable[[], None],
        still_active: Callable[[RunRow, str], RunStillActive],
        works_on: Callable[[RunId], bool],
        *,
        news: bool,
    ) -> None:
        self._store = store
        self._still_active = still_active
        self._watch = watch
        self._begin = begin
        """Starts the runner, which notices what others do. Raises when the engine is closed."""
        self.bodies_loop: asyncio.AbstractEventLoop | None = None
        """The loop of the application that async bodies run on."""
        self._works_on = works_on
        """Whether this process works on a run, and so will hear of its end."""
        self._news = news
        """Whether a runner brings news of runs."""
        self._looking: Pool | None = None
        """One thread in which all coroutines look at the store; they wait on their loops."""
        self._hints = None if news else HintedLooks(store, watch)
        self._closed = False

    def wait(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        """Wait until a run has ended or needs a decision; raises RunStillActive when that takes longer."""
        row = self._wait(run_id, timeout, just_started=False)
        assert row is not None
        return row

    def wait_for_started(self, run_id: RunId, timeout: Duration | None = None) -> RunRow | None:
        """Like `wait`, for a run that was just started: first looked at when there is news of it, or after a moment.

        None if it completed and this process recorded that: there is nothing to read.
        """
        return self._wait(run_id, timeout, just_started=True)

    def _wait(self, run_id: RunId, timeout: Duration | None, *, just_started: bool) -> RunRow | None:
        timeout = checked_limit("timeout", timeout)
        reader.check_run_id(run_id)
        self._refuse_on_loop(run_id)
        self._begin()
        began = time.monotonic()
        with self._watch.waiting(run_id, Waiter()) as waiter:
            self._expect_hints()
            if just_started and self._works_on(run_id):
                waiter.wait(LOOK_EVERY if timeout is None else min(LOOK_EVERY, timeout))
                if waiter.completed:
                    return None
            while True:
                look = self._look(run_id, began)
                if look.done:
                    return look.row
                left = None if timeout is None else began + timeout - time.monotonic()
                if left is not None and left <= 0:
                    raise self._still_active(look.row, f"run {run_id} is still {look.row.status} after {timeout:g} s")
                waiter.wait(look.again_in if left is None else min(look.again_in, left))

    def _refuse_on_loop(self, run_id: RunId) -> None:
        """Waiting in this thread would stop the very bodies that are waited for."""
        if self.bodies_loop is not None and asyncio._get_running_loop() is self.bodies_loop:
            raise InputError(
                f"run {run_id}: waiting like this would hold up the event loop that its async bodies run on, for ever; await "
                "it instead: `await engine.run(...)`, `await run` or `await run.wait(timeout=60)`"
            )

    async def wait_on_loop(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        """The same for a coroutine: its loop is not blocked, and no thread is held."""
        timeout = checked_limit("timeout", timeout)
        reader.check_run_id(run_id)
        await self._elsewhere(self._begin)
        began = time.monotonic()
        with self._watch.waiting(run_id, LoopWaiter()) as waiter:
            await self._elsewhere(self._expect_hints)
            while True:
                look = await self._elsewhere(self._look, run_id, began)
                if look.done:
                    return look.row
                left = None if timeout is None else began + timeout - time.monotonic()
                if left is not None and left <= 0:
                    message = f"run {run_id} is still {look.row.status} after {timeout:g} s"
                    raise await self._elsewhere(self._still_active, look.row, message)
                await waiter.wait(look.again_in if left is None else min(look.again_in, left))

    def once_it_goes_on(self, run_id: str) -> RunRow:
        """The run. If somebody has asked for an ended one to go on, or died while asking, wait until that is done."""
        began = time.monotonic()
        while self._goes_on(row := reader.require_run(self._store, run_id), began):
            time.sleep(LOOK_SOON)
        return row

    def _expect_hints(self) -> None:
        if self._hints is not None:
            self._hints.start()

    def close(self) -> None:
        self._closed = True
        if self._hints is not None:
            self._hints.close()
        self._watch.trouble(EngineClosed("the engine was closed while this run was still going on"))
        if self._looking is not None:
            self._looking.close()

    def _look(self, run_id: RunId, began: float) -> PolledRun:
        row = reader.require_run(self._store, run_id)
        if self._goes_on(row, began):
            return PolledRun(row, False, LOOK_SOON)
        done = row.status.terminal or waits_for_a_decision(row)
        return PolledRun(
            row, done, LONGEST_WAIT if self._news else max(LOOK_EVERY, LOOK_EVERY / 10 * len(self._watch.runs()))
        )

    def use_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start the thread for coroutines now, before other threads are busy. `loop`: the one that async bodies run on."""
        self.bodies_loop = loop
        self._readers()

    def _readers(self) -> Pool:
        if self._closed:
            raise EngineClosed("the engine is closed; open a new one")
        if self._looking is None:
            self._looking = Pool(1, "stepwell-await")
        return self._looking

    async def _elsewhere(self, call: Callable[P, Found], *args: P.args, **keywords: P.kwargs) -> Found:
        return await self._readers().call(call, *args, **keywords)

    def _goes_on(self, row: RunRow, began: float) -> bool:
        """Whether an ended or paused run is about to go on. What somebody left half done is finished here."""
        patience = GATE_LEASE / SECOND + 5
        if not row.status.resting or row.purpose not in GOING_ON or time.monotonic() > began + patience:
            return False
        (swept,) = self._store.commit([Sweep(run=row.id)])
        for held in swept.gates if isinstance(swept, Swept) else ():
            carry_out(self._store, finish(held))
        return True
