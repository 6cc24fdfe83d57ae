"""How an engine works: which runs it works on, what it tells its runner, and what it tells those who wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable
from typing import Any

from ..commands import either
from ..errors import EngineClosed, InputError, RunStillActive
from ..ids import RunId
from ..model import RunRow, RunStatus, Unfinished
from ..store import reader
from .bodies.held import RunFacts
from .code.code import Outdated
from .code.versions import Versions
from .events import Events
from .reports.explain import served_by
from .triggered import Triggered
from .waiting import Watch
from .worker.debounce import Debounce
from .worker.follower import Follower
from .worker.local_runner import LocalRunner


class Working(Triggered):
    """The private half of `Engine`."""

    events: Events
    _watch: Watch
    _versions: Versions
    _discovering: Debounce
    _follower: Follower
    _runner: LocalRunner | None
    _lock: threading.Lock
    _closed: bool
    _started: bool

    def _still_active(self, row: RunRow, told: str) -> RunStillActive:
        """The error when waiting ended before the run: it says whether the run goes on by itself."""
        if row.status is RunStatus.PAUSED:
            more = f"{either('run.resume()', f'resume {row.id}', self.store.url)} goes on with it"
        elif self._is_worked_on(row):
            more = "it goes on"
        else:
            works = either(f"engine.adopt({row.id!r})", f"resume {row.id}", self.store.url)
            more = f"no worker is alive that works on it: {works} does"
        return RunStillActive(f"{told}; {more}", run_id=row.id)

    def _works_on(self, run_id: RunId) -> bool:
        return self._runner is not None and run_id in self._runner.scheduler.facts

    def _is_worked_on(self, row: RunRow) -> bool:
        if self._runner is None:
            return served_by(self.store, row, self.code.graphs.of(row))
        scheduler = self._runner.scheduler
        own = row.id in scheduler.facts or bool(
            self.serving.can_serve(Unfinished(row.workflow, row.target, row.digest))
        )
        return own or served_by(self.store, row, self.code.graphs.of(row), but=scheduler.worker)

    def _work_on(self, row: RunRow, facts: RunFacts) -> None:
        runner = self._require_runner()
        runner.know(facts)
        if row.deadline_at is not None:
            runner.sweep_in(row.deadline_at - self.store.now())

    def _work_soon(self) -> None:
        """Start to work. On a loop not at once, because `async with` may still say that bodies run on it; and in a thread,
        because starting commits."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._work()
        else:
            working = threading.Thread(target=self._work_unless_closed, name="stepwell-start", daemon=True)
            loop.call_soon(working.start)

    def _work_unless_closed(self) -> None:
        with contextlib.suppress(EngineClosed):
            self._work()

    def _work(self) -> None:
        """Start the runner, once."""
        with self._lock:
            if self._closed:
                raise EngineClosed("the engine is closed; open a new one")
            if self._runner is not None and not self._started:
                self._runner.start()
                self._started = True

    def _require_runner(self) -> LocalRunner:
        if self._runner is None:
            raise InputError("this engine was opened with runner=None: it only starts and looks")
        self._work()
        return self._runner

    def _on_news(self, news: Iterable[Any]) -> None:
        self._watch.tell(news)
        self.events.seen(news)

    def _announce(self) -> None:
        if self._runner is not None:
            self._runner.announce()

    def _discover(self) -> float | None:
        """Serve unfinished runs whose code is here, whoever started them; the seconds until the next look."""
        if self._runner is None:
            return None
        pairs = self.serving.discover()
        if pairs is not None:
            self._runner.serve(pairs)
        return self.serving.wait()

    def _serve_soon(self) -> None:
        """In another thread: healing a run may take long."""
        if self.serving.needed:
            self._discovering.wake()

    def _serve(self) -> None:
        with contextlib.suppress(EngineClosed):
            again = self._fire_triggers(self._discover())
            if again is not None:
                self._follower.serve_again(again)

    def _find_facts(self, run_id: RunId, row: RunRow | None) -> RunFacts:
        """`row`: the run, if a claim brought it along."""
        row = row or reader.require_run(self.store, run_id)
        try:
            facts = self.code.facts(row)
            self._versions.check_input(row)
            return facts
        except Outdated:
            self.serving.leave(run_id)
            raise
