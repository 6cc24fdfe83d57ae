"""`EngineWork`: what an engine works on. It starts the runner, says which runs it works on, and fires triggers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..base.commands import command, either
from ..base.ids import RunId, WorkerId
from ..base.words import count
from ..core.kernel.healing import way_on
from ..core.model import GetRun, RunNews, RunRow, Unfinished
from ..core.store import Store, reader
from ..core.store.rules.processes import check_process
from ..define import Workflow
from ..errors import EngineClosed, InputError, RunStillActive
from .bodies.held import RunFacts
from .bodies.kinds import Limits
from .bodies.loop import LoopBodies
from .code.code import Code, Outdated
from .code.registering import register_handlers, register_workflows
from .code.serving import ServedVersions
from .code.versions import Versions
from .events import Events
from .reports.explain import served_by
from .scheduling.metrics import IDLE, EngineMetrics
from .trigger_rounds import TriggerPort, TriggerRounds
from .waiting import Watch
from .worker.children import ChildPort
from .worker.duties import Follower
from .worker.runner import LocalRunner

log = logging.getLogger("stepwell")

LOOKED_AT = 100
NAMED = 5


class WorkerOptions(NamedTuple):
    """How the bodies of an engine run."""

    worker: WorkerId
    limits: Limits
    lease_seconds: float
    queues: frozenset[str] | None
    guarded: bool


class EngineWork:
    def __init__(
        self,
        store: Store,
        code: Code,
        versions: Versions,
        watch: Watch,
        listeners: Events,
        triggers: Callable[[], TriggerPort],
        options: WorkerOptions | None,
        children: ChildPort,
        *,
        forkable: bool,
    ) -> None:
        """Without `options` the engine runs no bodies. `forkable`: it may be used on both sides of a fork."""
        self._store, self._code, self._versions = store, code, versions
        self._watch, self._listeners = watch, listeners
        self._children = children
        self._opener = None if forkable else os.getpid()
        self._lock = threading.Lock()
        self._started = False
        self.closed = False
        self.ended = threading.Event()
        self.warns_unfinished = True
        """Whether `warn_unfinished` warns."""
        self._unfinished: list[RunRow] = []
        self.serving = ServedVersions(store, code, versions, work_on=self.work_on, announce=self.announce)
        self._trigger_rounds = TriggerRounds(store, code, triggers)
        self.runner: LocalRunner | None = None
        """What runs bodies here; None in an engine that only starts and reads runs."""
        self._follower: Follower | None = None
        if options is not None:
            self.runner, self._follower = self._make_runner(options)
            listeners.settling, listeners.measure = self.runner.settling, self.runner.metrics

    def _make_runner(self, options: WorkerOptions) -> tuple[LocalRunner, Follower]:
        runner = LocalRunner(
            self._store,
            options.worker,
            options.limits,
            options.lease_seconds,
            versions=self._code.versions,
            lacks=self.serving.lacks,
            find_facts=self._find_facts,
            on_news=self._on_news,
            on_trouble=self._watch.trouble,
            on_pressure=self._listeners.pressed,
            follower=lambda: follower,
            discover=self._serve,
            waited=self._watch.waited,
            graphs=self._code.graphs.known,
            children=self._children,
            queues=options.queues,
            guarded=options.guarded,
        )
        shared = not self._store.embedded
        follower = Follower(runner, waited=self._watch.runs, serve=self._serve_soon, shared=shared)
        return runner, follower

    # Starting and closing

    def begin(self) -> None:
        """Start the runner, once."""
        self.check_process()
        if self.runner is None and not self.closed:
            return  # without a lock, which another thread may have held during a fork
        with self._lock:
            if self.closed:
                raise _closed()
            if self.runner is not None and not self._started:
                self.runner.start()
                self._started = True

    def begin_soon(self) -> None:
        """On a loop not at once, because `async with` may still say that bodies run on it; and in a thread, because starting
        commits."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.begin()
        else:
            thread = threading.Thread(target=self._begin_unless_closed, name="stepwell-start", daemon=True)
            loop.call_soon(thread.start)

    def _begin_unless_closed(self) -> None:
        with contextlib.suppress(EngineClosed):
            self.begin()

    def check_process(self) -> None:
        """Called before any lock is taken. A process that was forked has none of the threads."""
        if self._opener is not None:
            check_process(self._opener, "this engine")

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> LoopBodies | None:
        """Run the async bodies that begin from now on, on this loop."""
        self.check_process()
        if self.closed:
            raise _closed()
        if self.runner is None:
            return None
        self.runner.loop_bodies.use(loop)
        return self.runner.loop_bodies

    def close(self, timeout: float) -> bool:
        """Let running bodies end for up to `timeout` seconds. False if there is nothing to close."""
        if self._opener not in (None, os.getpid()):
            return False  # A forked child must not close what its parent still uses.
        with self._lock:  # the runner has started, or never will
            if self.closed:
                return False
            self.closed = True
        self.ended.set()
        if self.runner is not None and self._started:
            self.runner.close(timeout)
            self._unfinished = self._find_unfinished(self.runner)
        return True

    def check_works(self) -> None:
        """Raise StoreReplaced if the engine has given up: what it worked for is gone, and its store will not come back."""
        if self.runner is not None and self.runner.stopped is not None:
            raise self.runner.stopped

    def metrics(self) -> EngineMetrics:
        self.check_process()
        return IDLE if self.runner is None else self.runner.metrics()

    # Which runs

    @property
    def started_runner(self) -> LocalRunner | None:
        return self.runner if self._started else None

    def works_on(self, run_id: RunId) -> bool:
        return self.runner is not None and run_id in self.runner.scheduler.facts

    def work_on(self, row: RunRow, facts: RunFacts) -> None:
        runner = self._require_runner()
        runner.know(facts)
        if row.deadline_at is not None:
            runner.sweep_in(row.deadline_at - self._store.now())

    def serve(self, classes: list[type[Workflow]]) -> None:
        """Work on every unfinished run whose code is here. Other processes learn of `classes` at once."""
        self._code.introduce(classes)
        register_workflows(self._store, dict.fromkeys((*self._code.given.values(), *classes)))
        register_handlers(self._store, self._code.handlers)
        self.serving.everything = True
        self._require_runner().announce()
        self.discover()

    def announce(self) -> None:
        if self.runner is not None:
            self.runner.announce()

    def look_at_triggers(self) -> None:
        """A trigger was added or changed here: look at once what is due."""
        self._trigger_rounds.look_now()
        if self._follower is not None and self.serving.wanted:
            self._follower.serve_again(0)

    def _require_runner(self) -> LocalRunner:
        if self.runner is None:
            raise InputError("this engine was opened with runner=None: it only starts and looks")
        self.begin()
        return self.runner

    def discover(self) -> float | None:
        """Serve unfinished runs whose code is here, whoever started them; the seconds until the next look."""
        if self.runner is None:
            return None
        pairs = self.serving.discover()
        if pairs is not None:
            self.runner.serve(pairs)
        return self.serving.wait()

    def _serve_soon(self) -> None:
        """In another thread: healing a run may take long."""
        if self.serving.needed and self.runner is not None:
            self.runner.discover_soon()

    def _serve(self) -> None:
        with contextlib.suppress(EngineClosed):
            again = self.discover()
            if self.serving.wanted:
                again = self._trigger_rounds.fire(again)
            if again is not None and self._follower is not None:
                self._follower.serve_again(again)

    def _find_facts(self, run_id: RunId, row: RunRow | None) -> RunFacts:
        """`row`: the run, if a claim brought it along."""
        row = row or reader.require_run(self._store, run_id)
        try:
            facts = self._code.facts(row)
            self._versions.check_input(row)
            return facts
        except Outdated:
            self.serving.leave(run_id)
            raise

    # What others are told

    def _on_news(self, news: Iterable[RunNews]) -> None:
        self._watch.tell(news)
        self._listeners.seen(news)

    def still_active(self, row: RunRow, status: str) -> RunStillActive:
        """The error when waiting ended before the run: it says whether the run goes on by itself."""
        if row.status.paused:
            verb = way_on(row)
            more = f"{either(f'run.{verb}()', f'{verb} {row.id}', self._store.url)} goes on with it"
        elif self._is_worked_on(row):
            more = "it goes on"
        else:
            works = either(f"engine.adopt({row.id!r})", f"resume {row.id}", self._store.url)
            more = f"no worker is alive that works on it: {works} does"
        return RunStillActive(f"{status}; {more}", run_id=row.id, told=status)

    def _is_worked_on(self, row: RunRow) -> bool:
        if self.runner is None:
            return served_by(self._store, row, self._code.graphs.of(row))
        scheduler = self.runner.scheduler
        needed = Unfinished(row.workflow, row.target, row.digest)
        own = row.id in scheduler.facts or bool(self.serving.can_serve(needed))
        return own or served_by(self._store, row, self._code.graphs.of(row), but=scheduler.worker)

    def warn_unfinished(self) -> None:
        """Warn about runs that this engine started and did not finish."""
        if self._unfinished and self.warns_unfinished:
            log.warning(unfinished_message(self._unfinished, self._store.url))

    def _find_unfinished(self, runner: LocalRunner) -> list[RunRow]:
        """The unfinished ones among the first hundred runs that the engine started, oldest first."""
        known = [facts.run_id for facts in runner.scheduler.facts.values() if facts.started_here][:LOOKED_AT]
        try:
            rows = self._store.read([GetRun(run_id) for run_id in known])
        except Exception:  # the store is away, which is reported elsewhere
            return []
        return [row for row in rows if row is not None and not row.status.terminal]


def _closed() -> EngineClosed:
    return EngineClosed("the engine is closed; open a new one")


def unfinished_message(rows: list[RunRow], store: str) -> str:
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
