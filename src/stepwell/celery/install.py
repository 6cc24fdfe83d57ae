"""Hosting Stepwell in a Celery application: one task, queues of its own, and a runner in each process of its workers.

`stepwell worker` runs such an application of its own.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.clock import MAX_SECONDS, Duration
from ..define import Workflow
from ..engine import checking
from ..engine.broker_app import check_pool, problems
from ..engine.hint_sender import PREFIX, TASK, broker_queue, broker_queue_name
from ..engine.reports.workers import describe_workers, worker_record
from ..errors import InputError
from ..handlers import Handler, Handlers
from ..stores import open_store
from .host import IDLE_SECONDS, WorkerHost, WorkerPlan

if TYPE_CHECKING:
    from ..answers.fleet import WorkerRecord

_ENOUGH = 4_096
"""Bytes that the parent writes when it ends, one for each child. Later children find the pipe closed."""


class EndPipe:
    """A pipe from the parent to its processes: written to and closed when the worker ends, and closed if the parent dies.

    Celery's own signal reaches only the parent. The pipe is made before the first child is forked.
    """

    def __init__(self) -> None:
        self._parent = os.getpid()
        self._reading, self._writing = os.pipe()
        self._requests, self._requesting = os.pipe()
        os.set_blocking(self._requests, False)

    def watch(self, ends: Callable[[], None]) -> None:
        """Call `ends`, in a thread, when the worker ends. A child closes its copy of the other end."""
        if os.getpid() != self._parent:
            with suppress(OSError):
                os.close(self._writing)

        def wait() -> None:
            with suppress(OSError):
                os.read(self._reading, 1)
            ends()

        threading.Thread(target=wait, name="stepwell-end-pipe", daemon=True).start()

    def ask_to_end(self) -> None:
        """Ask the worker to end, because this process cannot go on; a supervisor starts it again."""
        os.write(self._requesting, b"!")
        os.kill(self._parent, signal.SIGTERM)

    @property
    def end_asked(self) -> bool:
        """Whether a process has asked for the end. True only once, in the parent."""
        with suppress(BlockingIOError):
            return bool(os.read(self._requests, 1))
        return False

    def end(self) -> None:
        """The worker ends. May be called from a signal handler."""
        if os.getpid() == self._parent:
            writing, self._writing = self._writing, -1
            with suppress(OSError):  # it was told before
                os.set_blocking(writing, False)
                os.write(writing, b"." * _ENOUGH)
                os.close(writing)


log = logging.getLogger("stepwell")

EX_IDLE = 75
"""The exit code of a worker that got no hints while there was work, with `when_idle="exit"`."""


def install(
    app: Any,
    engine_url: str,
    *,
    workflows: Iterable[type[Workflow]] = (),
    jobs: Iterable[str] = (),
    handlers: Handlers | Iterable[Handler | str] = (),
    queues: Iterable[str] = ("default",),
    max_concurrent_nodes: int | None = None,
    lease_seconds: Duration = 30.0,
    close_seconds: Duration = 10.0,
    when_idle: str = "log",
    idle_seconds: Duration = IDLE_SECONDS,
    **options: Any,
) -> Installed:
    """Let the workers of a Celery application run workflows, beside its own tasks.

        app = Celery("shop", broker="redis://localhost/1")
        stepwell.celery.install(app, "postgresql://localhost/shop", workflows=[OrderWorkflow])

    Its workers then also consume `stepwell.default`; a worker started with `-Q` must name that queue, or it hosts nothing. No
    setting of the application is changed: what hints need is set for their task and their queues alone.
    """
    if getattr(app, "stepwell", None) is not None:
        raise InputError(
            f"{app!r} hosts workflows already: install() is called once, with all of them. A second store needs an "
            "application, and so a worker, of its own"
        )
    named = checking.checked_queues(queues)
    assert named is not None
    checking.check_limits(
        queue_depth=0, max_concurrent_nodes=1 if max_concurrent_nodes is None else max_concurrent_nodes
    )
    if when_idle not in ("log", "exit"):
        raise InputError(f"when_idle={when_idle!r}: expected 'log' or 'exit'")
    registered = handlers if isinstance(handlers, Handlers) else Handlers(checking.checked_list(handlers))
    plan = WorkerPlan(
        app,
        engine_url,
        tuple(checking.checked_workflows(workflows)),
        checking.checked_modules(jobs),
        lambda: registered,
        tuple(sorted(named)),
        max_concurrent_nodes,
        checking.checked_lease(lease_seconds),
        checking.checked_seconds("close_seconds", close_seconds),
        idle_seconds=checking.checked_seconds("idle_seconds", idle_seconds, positive=True),
        when_idle=when_idle,
        options=options,
    )
    return Installed(plan)


class Installed:
    """Stepwell in a Celery application: what its workers do when they start and end."""

    def __init__(self, plan: WorkerPlan) -> None:
        self.plan = plan
        self.host: WorkerHost | None = None
        """The host in this process, once there is one."""
        self._end_pipe: EndPipe | None = None
        self._name = ""
        self._pool = ""
        self._define_task()
        self._connect()
        plan.app.stepwell = self

    def _define_task(self) -> None:
        @self.plan.app.task(  # type: ignore[untyped-decorator]
            name=TASK,
            acks_late=False,
            ignore_result=True,
            store_errors_even_if_ignored=False,
            serializer="json",
            max_retries=0,
            # Time limits of nodes are the engine's. Those of the application are for its tasks.
            time_limit=MAX_SECONDS,
            soft_time_limit=MAX_SECONDS,
            shared=False,
        )
        def hint(queue: object = None, sent_at: object = None, **_: object) -> str:
            """There may be work: look into the store. Nothing else in a message is trusted."""
            host = self.host
            return "no runner in this process" if host is None else host.work()

        self.task = hint

    def _connect(self) -> None:
        from celery import signals
        from celery.worker.control import Panel, controller_info_t

        said = "The runners of workflows in this worker: leases, versions, what they hold."
        nothing = dict.fromkeys(("alias", "signature", "args", "variadic"))
        Panel.data["stepwell"] = self._inspected
        Panel.meta["stepwell"] = controller_info_t(
            type="inspect", visible=True, default_timeout=5.0, help=said, **nothing
        )

        # Strong references, because nobody else has to keep this object.
        signals.celeryd_init.connect(self._name_queues, weak=False)
        signals.worker_init.connect(self._begin, weak=False)
        signals.worker_process_init.connect(self._begin_child, weak=False)
        signals.worker_process_shutdown.connect(self._end, weak=False)
        signals.worker_shutting_down.connect(self._ends_soon, weak=False)
        signals.worker_shutdown.connect(self._end, weak=False)

    def _name_queues(self, instance: Any = None, **_: Any) -> None:
        """Declare the queues before `-Q` is applied."""
        if instance is None or instance.app is not self.plan.app:
            return
        known = self.plan.app.amqp.queues
        for queue in self.plan.queues:
            _declare(known, queue)

    def _begin(self, sender: Any = None, **_: Any) -> None:
        """In the parent, before the first process is forked."""
        if sender is None or sender.app is not self.plan.app:
            return
        self._pool = check_pool(sender.pool_cls)
        for problem in problems(self.plan.app):
            log.warning("%s", problem)
        taken = self._consumed()
        if not taken:
            log.warning(
                "this worker consumes no queue of Stepwell and runs no workflows; name one with -Q: %s",
                ", ".join(map(broker_queue_name, self.plan.queues)),
            )
            return
        self.plan = replace(self.plan, queues=taken)
        self._name = sender.hostname
        self._end_pipe = EndPipe()
        if self._pool != "prefork":
            slots = self.plan.max_concurrent_nodes or (1 if self._pool == "solo" else sender.concurrency)
            self._open(slots, replaceable=False)

    def _consumed(self) -> tuple[str, ...]:
        """Our queues among those that this worker consumes, each declared as it must be."""
        known = self.plan.app.amqp.queues
        found = []
        for name in list(known.consume_from):
            if name.startswith(PREFIX):
                queue = name.removeprefix(PREFIX)
                found.append(queue)
                _declare(known, queue)
        return tuple(sorted(found))

    def _begin_child(self, **_: Any) -> None:
        if self._end_pipe is not None and self._pool == "prefork":
            self._open(self.plan.max_concurrent_nodes or 1, replaceable=True)

    def _open(self, slots: int, *, replaceable: bool) -> None:
        assert self._end_pipe is not None
        self.host = WorkerHost(
            self.plan, self._name, slots, replaceable=replaceable, ask_to_end=self._end_pipe.ask_to_end
        )
        self._end_pipe.watch(self.host.close)

    @property
    def exit_code(self) -> int | None:
        """The exit code of a worker whose processes asked it to end."""
        return EX_IDLE if self._end_pipe is not None and self._end_pipe.end_asked else None

    def _inspected(self, state: Any, **_: Any) -> list[WorkerRecord]:
        """What `celery inspect stepwell` shows: the runners in the processes of this worker."""
        store = open_store(self.plan.url)
        try:
            views, now = describe_workers(store), store.now()
            return [worker_record(view, now) for view in views if view.celery == state.hostname]
        finally:
            store.close()

    def _ends_soon(self, **_: Any) -> None:
        if self._end_pipe is not None:
            self._end_pipe.end()

    def _end(self, **_: Any) -> None:
        if self.host is not None:
            self.host.close()


def _declare(known: Any, queue: str) -> None:
    """Declare a queue as senders of hints do, without the settings of the application for all its queues."""
    declared = broker_queue(queue)
    for queues in (known, known.consume_from):
        dict.__setitem__(queues, declared.name, declared)


def run_worker(installed: Installed, *, concurrency: int, pool: str, name: str | None, log_level: str) -> int:
    """Run a Celery worker until it is told to end; its exit code."""
    plan = installed.plan
    if log_level.upper() != "DEBUG":  # two lines for every hint are of no use
        for noisy in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
    from celery.utils.nodenames import default_nodename, host_format

    from .consumer import TolerantConsumer

    worker: Any = plan.app.Worker(
        hostname=host_format(default_nodename(name or f"stepwell-{os.getpid()}@%h")),
        consumer_cls=TolerantConsumer,
        pool_cls=pool,
        pool=pool,
        concurrency=concurrency,
        queues=[broker_queue_name(queue) for queue in plan.queues],
        loglevel=log_level.upper(),
        optimization="fair",
        without_gossip=True,
        without_mingle=True,
        quiet=not sys.stderr.isatty(),
    )
    worker.start()
    return installed.exit_code or int(worker.exitcode or 0)
