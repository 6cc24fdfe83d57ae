"""How an engine works: which runs it works on, what it tells its runner and those who wait, and when it fires triggers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ..base.commands import command, either
from ..base.ids import RunId
from ..base.words import count
from ..core.kernel.healing import way_on
from ..core.model import GetRun, ListRecords, RunRow, Unfinished
from ..core.store import Store, reader
from ..core.store.rules.processes import check_process
from ..errors import EngineClosed, InputError, RunStillActive, StepwellError, StoreError
from .bodies.held import RunFacts
from .code.code import Code, Outdated
from .code.serving import ServedVersions
from .code.versions import Versions
from .events import Events
from .reports.explain import served_by
from .scheduling.scheduler import Scheduler
from .waiting import Watch
from .worker.duties import Follower
from .worker.runner import LocalRunner

if TYPE_CHECKING:
    from .triggers import EngineTriggers, TriggeredEngine

log = logging.getLogger("stepwell")

LOOK_AGAIN_SECONDS = 5.0
"""How often to look for changed triggers, while there are some."""
NONE_SECONDS = 15.0
"""How often to look whether there are any."""
LOOKED_AT = 100
NAMED = 5


class Working:
    """The private half of `Engine`."""

    store: Store
    code: Code
    serving: ServedVersions
    events: Events
    _watch: Watch
    _versions: Versions
    _follower: Follower
    _runner: LocalRunner | None
    _lock: threading.Lock
    _opener: int | None
    """The process that alone may use it; None: also those that are forked from it."""
    _closed: bool
    _started: bool
    _declared: frozenset[str] = frozenset()
    """Targets of classes whose triggers are stored."""
    _fire_at = 0.0
    _look_at = 0.0

    def _still_active(self, row: RunRow, told: str) -> RunStillActive:
        """The error when waiting ended before the run: it says whether the run goes on by itself."""
        if row.status.paused:
            verb = way_on(row)
            more = f"{either(f'run.{verb}()', f'{verb} {row.id}', self.store.url)} goes on with it"
        elif self._is_worked_on(row):
            more = "it goes on"
        else:
            works = either(f"engine.adopt({row.id!r})", f"resume {row.id}", self.store.url)
            more = f"no worker is alive that works on it: {works} does"
        return RunStillActive(f"{told}; {more}", run_id=row.id, told=told)

    def _works_on(self, run_id: RunId) -> bool:
        return self._runner is not None and run_id in self._runner.scheduler.facts

    def _is_worked_on(self, row: RunRow) -> bool:
        if self._runner is None:
            return served_by(self.store, row, self.code.graphs.of(row))
        scheduler = self._runner.scheduler
        needed = Unfinished(row.workflow, row.target, row.digest)
        own = row.id in scheduler.facts or bool(self.serving.can_serve(needed))
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
        self._check_process()
        if self._runner is None and not self._closed:
            return  # without a lock, which another thread may have held during a fork
        with self._lock:
            if self._closed:
                raise EngineClosed("the engine is closed; open a new one")
            if self._runner is not None and not self._started:
                self._runner.start()
                self._started = True

    def _check_process(self) -> None:
        """Called before any lock is taken. A process that was forked has none of the threads."""
        if self._opener is not None:
            check_process(self._opener, "this engine")

    def check_works(self) -> None:
        """Raise StoreReplaced if the engine has given up: what it worked for is gone, and its store will not come back."""
        if self._runner is not None and self._runner.stopped is not None:
            raise self._runner.stopped

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
        if self.serving.needed and self._runner is not None:
            self._runner.discover_soon()

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

    # Triggers: what they need is loaded when there are some.

    @property
    def works(self) -> bool:
        """Whether it runs bodies."""
        return self._runner is not None

    @cached_property
    def triggers(self) -> EngineTriggers:
        """What starts runs by itself: schedules, webhooks, the end of other runs. An engine that serves fires them."""
        from .triggers import EngineTriggers

        return EngineTriggers(cast("TriggeredEngine", self))

    def look_at_triggers(self) -> None:
        """A trigger was added or changed here: look at once what is due."""
        self._fire_at = 0.0
        follower: Follower | None = getattr(self, "_follower", None)
        if follower is not None and self.serving.wanted:
            follower.serve_again(0)

    def _declare(self) -> None:
        """Store the triggers of the classes that are served here, once for each class; the last process to do so wins."""
        for workflow in self.code.classes():
            if workflow.target in self._declared:
                continue
            self._declared |= {workflow.target}
            (found,) = self.store.read([ListRecords("trigger", limit=1)])
            if not (workflow._triggers or found):
                continue
            try:
                self.triggers.declare(f"class {workflow.workflow_name}", workflow._triggers)
            except StoreError:
                self._declared -= {workflow.target}
                raise
            except StepwellError as error:
                log.warning("%s", error)

    def _fire_triggers(self, again: float | None) -> float | None:
        """Fire what is due, if this engine serves; the seconds until the next look, at most `again`."""
        if not self.serving.wanted:
            return again
        now = time.monotonic()
        self._declare()
        if now >= self._fire_at:
            (found,) = self.store.read([ListRecords("trigger", limit=1)])
            if found:
                seconds = self.triggers.fire_due()
                # This is called after every commit, but reads at most once a second what others added.
                self._fire_at, self._look_at = now + min(seconds, LOOK_AGAIN_SECONDS / 5), now + seconds
            else:
                self._fire_at = self._look_at = now + NONE_SECONDS
        soonest = max(0.0, self._look_at - now)
        return soonest if again is None else min(again, soonest)


def unfinished_here(store: Store, scheduler: Scheduler) -> list[RunRow]:
    """The unfinished ones among the first hundred runs that the engine started, oldest first."""
    known = [facts.run_id for facts in scheduler.facts.values() if facts.started_here][:LOOKED_AT]
    try:
        rows = store.read([GetRun(run_id) for run_id in known])
    except Exception:  # the store is away, which is reported elsewhere
        return []
    return [row for row in rows if row is not None and not row.status.terminal]


def told_of_unfinished(rows: list[RunRow], store: str) -> str:
    named = ", ".join(f"{row.id} ({row.status})" for row in rows[:NAMED])
    number = count(len(rows), "run") if len(rows) < LOOKED_AT else f"at least {LOOKED_AT} runs"
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    verb = way_on(rows[0]) if rows[0].status.paused else "resume"
    typed = command(f"{verb} {rows[0].id}", store)
    if typed is None:
        rest = "they are gone with it, because its store was in memory; run.wait() before the end waits for them"
    else:
        others = "" if len(rows) == 1 else f", `{command('work MODULE', store)}` with all of them"
        rest = f"nothing is lost: `{typed}` goes on with it{others}; run.wait() before the end waits for it"
    return f"the engine was left with {number} unfinished that it started: {named}{more}; {rest}"
