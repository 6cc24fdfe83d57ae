"""A runner inside a process of a Celery worker: opened after the fork, driven by hints, closed before the process ends. Its
plan says what the processes are to serve, and how."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..define import Workflow
from ..engine.hint_sender import BrokeredStore, HintSender
from ..engine.lookout import Lookout, dismiss_dead
from ..errors import StepwellError
from ..handlers import Handlers
from ..stores import open_store

if TYPE_CHECKING:
    from ..engine.engine import Engine
    from ..engine.worker.runner import LocalRunner

log = logging.getLogger("stepwell")

LOOK_SECONDS = 5.0
"""How often a process without hints looks by itself: a lost hint costs no more time than this."""
OPEN_AGAIN_SECONDS = 1.0
CONNECTIONS = 2
"""To the server of the store, besides one that listens: a fleet has many processes."""

SLICE_SECONDS = 5.0
"""How long one hint is worked off before the process takes another task of its application."""
IDLE_SECONDS = 30.0
"""How long a process waits for hints, while work it could do is READY, before it reports that."""


@dataclass(frozen=True)
class WorkerPlan:
    app: Any
    """The Celery application."""
    url: str
    workflows: tuple[type[Workflow], ...] = ()
    jobs: tuple[str, ...] = ()
    handlers: Callable[[], Handlers | Iterable[Any]] = tuple
    queues: tuple[str, ...] = ("default",)
    max_concurrent_nodes: int | None = None
    """None: one with prefork, as many as there are threads in a pool of threads."""
    lease_seconds: float = 30.0
    close_seconds: float = 10.0
    slice_seconds: float = SLICE_SECONDS
    idle_seconds: float = IDLE_SECONDS
    when_idle: str = "log"
    """`log`, or `exit`: a worker that gets no hints while there is work ends with exit code 75."""
    options: dict[str, Any] = field(default_factory=dict)
    """Other options of the engine."""


class WorkerHost:
    """The runner of one process. `replaceable`: the process may end if it cannot go on; `ask_to_end` asks the worker to end."""

    def __init__(
        self,
        plan: WorkerPlan,
        name: str,
        slots: int,
        *,
        replaceable: bool,
        ask_to_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._name = name
        self._slots = slots
        self._replaceable = replaceable
        self._ask_to_end = ask_to_end
        self._sender = HintSender(plan.app)
        self._driving = threading.Lock()
        self._opened = threading.Event()
        self._closed = threading.Event()
        self._look_now = threading.Event()
        self._engine: Engine | None = None
        self._closing = threading.Lock()
        self._worked_at = time.monotonic()
        """When it last worked off a hint."""
        self._ready_since: float | None = None
        self._told_idle_at = -plan.idle_seconds
        self._is_idle = False
        threading.Thread(target=self._run, name="stepwell-host", daemon=True).start()

    # Hints

    def work(self) -> str:
        """Work off a hint: until nothing is READY, or for a few seconds and until no body is running. Says what was done."""
        self._worked_at = time.monotonic()
        if self._is_idle:
            self._say_idle(False)
        if not self._opened.wait(self._plan.slice_seconds) or self._closed.is_set():
            self._pass_on()
            return "passed on: this process is not open"
        runner = self._runner()
        if not self._driving.acquire(blocking=False):
            self._discover()  # the thread that drives goes on with what is found
            return "seen to by the thread that is at work"
        try:
            drained = self._drive(runner)
        finally:
            self._driving.release()
            self._worked_at = time.monotonic()
        if self._must_leave(runner):
            self._leave()
            return "passed on: this process is replaced"
        if not drained:
            self._pass_on()
        return "worked off" if drained else "passed on: there is more"

    def _drive(self, runner: LocalRunner) -> bool:
        """Whether nothing is left. A process with running bodies takes more work: it is not free for anything else."""
        self._discover()

        def over() -> bool:
            return self._closed.is_set() or self._must_leave(runner)

        while True:
            drained = runner.work_off(self._plan.slice_seconds, over)
            if drained or over():
                return drained
            if runner.wait_until_idle(self._plan.slice_seconds):
                return False

    def _discover(self) -> None:
        with suppress(StepwellError):  # it is done again soon
            self._engine_of().parts.work.discover()

    def _pass_on(self) -> None:
        self._sender.send(self._plan.queues)

    # A body that did not end in time

    def _must_leave(self, runner: LocalRunner) -> bool:
        """Whether it cannot go on: a body overran and its thread cannot be killed, or the store was replaced."""
        return (self._replaceable and runner.runaways > 0) or runner.stopped is not None

    def _leave(self) -> None:
        """Replace this process when its present task has ended, or the whole worker if it has only this one."""
        log.warning("%s: this process cannot go on and is replaced", self._name)
        self.close()
        if not self._replaceable:
            self._ask_to_end()
            return
        from billiard.process import current_process

        with suppress(Exception):
            current_process().inq._reader.close()

    # Opening, looking and closing

    def _run(self) -> None:
        while not self._closed.is_set() and not self._opened.is_set():
            try:
                self._open()
            except Exception as error:
                log.warning("%s: the engine is not open yet: %s", self._name, error)
                self._closed.wait(OPEN_AGAIN_SECONDS)
        if self._closed.is_set():
            return
        lookout = Lookout(self._engine_of().store)
        while not self._closed.is_set():
            if self._look_now.wait(LOOK_SECONDS):
                self._look_now.clear()
                self._closed.wait(0.05)
            if self._runner().stopped is not None:
                # A process of prefork leaves with its next task. Until then it may be at work on one of the application's.
                return None if self._replaceable else self._leave()
            try:
                self._look(lookout)
            except Exception as error:
                if not self._closed.is_set():
                    log.warning("%s: %s", self._name, error)
                self._closed.wait(OPEN_AGAIN_SECONDS)

    def _open(self) -> None:
        from ..engine.engine import Engine

        plan = self._plan
        store = BrokeredStore(lambda: open_store(plan.url, connections=CONNECTIONS), self._sender)
        try:
            dismiss_dead(store)
            engine = Engine(
                store,
                jobs=plan.jobs,
                handlers=plan.handlers(),
                queues=plan.queues,
                max_concurrent_nodes=self._slots,
                lease_seconds=plan.lease_seconds,
                close_seconds=plan.close_seconds,
                **plan.options,
            )
        except BaseException:
            store.close()
            raise
        runner = engine.parts.work.runner
        assert runner is not None
        runner.rest(self._look_now.set)
        runner.describe(celery=self._name)
        with self._closing:
            self._engine = engine
            if not self._closed.is_set():
                engine.work(plan.workflows, wait=0)
                self._opened.set()
                return
        engine.close()

    def _look(self, lookout: Lookout) -> None:
        """Send hints that nobody has sent, or that were lost."""
        if self._driving.locked() or self._closed.is_set():
            self._ready_since = None
            return
        dismiss_dead(self._engine_of().store)
        found = {ready.queue for ready in lookout.ready()}
        if found:
            self._sender.send(sorted(found))
        self._judge(bool(found.intersection(self._plan.queues)))

    def _judge(self, ready: bool) -> None:
        now = time.monotonic()
        if not ready or self._ready_since is None:
            self._ready_since = now if ready else None
        since = max(self._worked_at, now if self._ready_since is None else self._ready_since)
        if now - since >= self._plan.idle_seconds and now - self._told_idle_at >= self._plan.idle_seconds:
            self._told_idle_at = now
            self._say_idle(True)
            log.error(
                "%s has claimed nothing for %.0f s although work is READY that it could do: no hint reaches it. Is its "
                "connection to the broker alive, and does it consume %s?",
                self._name,
                now - since,
                ", ".join(self._plan.queues),
            )
            if self._plan.when_idle == "exit":
                self._ask_to_end()

    def _say_idle(self, idle: bool) -> None:
        """Announce whether this worker gets no hints."""
        self._is_idle = idle
        runner = self._runner()
        runner.describe(celery=self._name, **({"idle": True} if idle else {}))
        with suppress(StepwellError):
            runner.announce()

    def close(self) -> None:
        """Let bodies end for `close_seconds`, give back the rest, and tell others. It is closed when this returns, even if
        another thread closes it."""
        self._closed.set()
        self._look_now.set()
        with self._closing:
            if self._engine is not None:
                self._engine.close()
            self._pass_on()
            self._sender.close()
        self._opened.set()

    def _runner(self) -> LocalRunner:
        runner = self._engine_of().parts.work.runner
        assert runner is not None
        return runner

    def _engine_of(self) -> Engine:
        assert self._engine is not None
        return self._engine
