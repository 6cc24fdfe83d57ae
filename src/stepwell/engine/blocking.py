"""`BlockingEngine`: start runs, work on them, look at them."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

from ..base.clock import Duration
from ..base.commands import DEFAULT_STORE
from ..base.ids import new_worker_id
from ..core.model import Create, RunRow
from ..core.store import Store
from ..define import Builder, Definition, Workflow
from ..define.document import Document
from ..errors import EngineClosed, InputError
from ..handlers import Handler, Handlers
from ..stores import open_store, public
from .bodies.kinds import Limits
from .checking import (
    check_home,
    check_limits,
    checked_lease,
    checked_limit,
    checked_list,
    checked_modules,
    checked_pipelines,
    checked_queues,
    checked_seconds,
    checked_workflows,
    refuse_while_importing_main,
)
from .code.code import Code
from .code.registering import KnownHandlers, register_handlers, register_workflows
from .code.serving import ServedVersions
from .code.versions import Versions
from .documents import Documents
from .events import Events
from .recent import Recent
from .runs.requests import Requests
from .runs.run import Run
from .scheduling.metrics import IDLE, EngineMetrics
from .shared_calls import SharedCalls
from .starting import Startable, Starting, StartOptions, create_op
from .waiting import Waiting, Watch
from .worker.duties import Follower
from .worker.runner import LocalRunner
from .working import Working, told_of_unfinished, unfinished_here

if TYPE_CHECKING:
    from .bodies.loop import LoopBodies

log = logging.getLogger("stepwell")

RUNS_PER_COMMIT = 500
LOOK_SECONDS = 1.0
"""How often `work` looks whether the engine had to give up."""
EventName: TypeAlias = Literal["run", "node", "backpressure", "metrics"]

_OFFERED = (
    "adopt", "close", "compare", "get", "metrics", "on", "run", "runs", "save", "start", "start_many", "triggers", "wait",
    "work", "workflows",
)  # fmt: skip
"""What people type after `engine.`; the rest is for code that builds on it."""


def _opened(url: str | Store | None, broker: Any, *, brokered: bool) -> Store:
    def open() -> Store:
        return open_store(url or DEFAULT_STORE) if url is None or isinstance(url, str) else url

    if not brokered:
        return open()
    from .broker_app import app_of
    from .hint_sender import BrokeredStore, HintSender

    return BrokeredStore(open, HintSender(app_of(broker)), patient=True)


class BlockingEngine(Working, SharedCalls):
    """All that an engine does for threads; `Engine` can also be entered by coroutines."""

    def __init__(
        self,
        url: str | Store | None = None,
        *,
        workflows: Iterable[type[Workflow]] = (),
        jobs: Iterable[str] = (),
        pipelines: Iterable[Any] = (),
        handlers: Handlers | Iterable[Handler | str] = (),
        runner: Literal["local", "celery"] | None = "local",
        broker: Any = None,
        max_concurrent_nodes: int = 8,
        max_async_nodes: int = 1_000,
        max_processes: int = 2,
        queue_depth: int = 1_024,
        node_timeout: Duration | None = None,
        lease_seconds: Duration = 30.0,
        close_seconds: Duration = 10.0,
        queues: Iterable[str] | None = None,
        guard: bool = False,
    ) -> None:
        check_home(url, runner)
        given, allowed = checked_workflows(workflows), checked_modules(jobs)
        taken = checked_queues(queues)
        lease = checked_lease(lease_seconds)
        self._close_seconds = checked_seconds("close_seconds", close_seconds)
        node_limit = checked_limit("node_timeout", node_timeout, positive=True)
        check_limits(
            max_concurrent_nodes=max_concurrent_nodes,
            max_async_nodes=max_async_nodes,
            max_processes=max_processes,
            queue_depth=queue_depth,
        )
        refuse_while_importing_main()
        self.store: Store = _opened(url, broker if runner == "celery" else None, brokered=runner == "celery")
        self.events = Events(self.store, lambda: self.metrics)
        self._watch = Watch()
        news = runner == "local"
        self.waiting = Waiting(self.store, self._watch, self._work, self._still_active, self._works_on, news=news)
        self._lock = threading.Lock()
        worker = new_worker_id() if runner == "local" else None
        registered = handlers if isinstance(handlers, Handlers) else Handlers(checked_list(handlers))
        self.code = Code(self.store, given, allowed, registered, checked_pipelines(pipelines))
        self.documents = Documents(self.store, KnownHandlers(registered, self.store))
        self.checkpoint_keys: Recent[str, int] = Recent(20_000)
        """The steps of checkpoints by their keys, as far as they are known."""
        self._versions = Versions(self.store, self.code, worker)
        self.serving = ServedVersions(
            self.store, self.code, self._versions, work_on=self._work_on, announce=self._announce
        )
        self._opener = None if runner == "celery" else os.getpid()
        self._closed = False
        self._ended = threading.Event()
        self._started = False
        self._runner: LocalRunner | None = None
        if worker is not None:
            limits = Limits(max_concurrent_nodes, max_async_nodes, max_processes, queue_depth, node_limit)
            self._runner = LocalRunner(
                self.store,
                worker,
                limits,
                lease,
                versions=self.code.versions,
                lacks=self.serving.lacks,
                find_facts=self._find_facts,
                on_news=self._on_news,
                on_trouble=self._watch.trouble,
                on_pressure=self.events.pressed,
                follower=lambda: self._follower,
                discover=self._serve,
                waited=self._watch.waited,
                graphs=self.code.graphs.known,
                queues=taken,
                guarded=guard,
            )
            self.events.settling = self._runner.settling
            self._follower = Follower(
                self._runner, waited=self._watch.runs, serve=self._serve_soon, shared=not self.store.embedded
            )
        self.requests = Requests(
            self.store,
            self.code,
            self._versions,
            self.waiting,
            works=worker is not None,
            runner=lambda: self._runner if self._started else None,
            work_on=self._work_on,
        )
        self._starting = Starting(
            self.store, self.code, self._runner, begin=self._work, announce=self._announce, adopt=self.requests.adopt
        )
        self.when_closed: Callable[[], None] | None = None
        """Called once the engine takes no more requests."""
        self._left: list[RunRow] = []
        self.tells_unfinished = True
        """Whether `tell_unfinished` warns."""
        if self.code.given:
            self._work_soon()

    def __repr__(self) -> str:
        return f"<Engine {public(self.store.url)}{' (closed)' if self._closed else ''}>"

    def __dir__(self) -> list[str]:
        return [*_OFFERED]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.5 if kind is not None and issubclass(kind, KeyboardInterrupt) else None)
        self.tell_unfinished()

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> LoopBodies | None:
        """Run the async bodies that begin from now on, on this loop."""
        self._check_process()
        if self._closed:
            raise EngineClosed("the engine is closed; open a new one")
        if self._runner is None:
            return None
        self._runner.loop_bodies.use(loop)
        self.waiting.bodies_loop = loop
        return self._runner.loop_bodies

    def tell_unfinished(self) -> None:
        """Warn about runs that this engine started and did not finish."""
        if self._left and self.tells_unfinished:
            log.warning(told_of_unfinished(self._left, self.store.url))

    def close(self, timeout: Duration | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds (by default `close_seconds`), then give back the rest."""
        limit = checked_limit("timeout", timeout)  # before anything is closed
        if self._opener not in (None, os.getpid()):
            return  # A forked child must not close what its parent still uses.
        with self._lock:  # the runner has started, or never will
            if self._closed:
                return
            self._closed = True
        self._ended.set()
        if self._runner is not None and self._started:
            self._runner.close(self._close_seconds if limit is None else limit)
            self._left = unfinished_here(self.store, self._runner.scheduler)
        self.events.close()
        self.waiting.close()
        if self.when_closed is not None:
            self.when_closed()
        self.store.close()

    # Starting

    def run(
        self,
        workflow: Startable,
        *,
        check: bool = True,
        wait: Duration | None = None,
        input: Mapping[str, Any] | None = None,
        **options: Unpack[StartOptions],
    ) -> Run:
        """Start a run and wait for its end, `wait` seconds at most.

        Raises RunFailed or RunCancelled if it ended so, RunPaused if it waits for a decision; with `check=False` the run is
        returned whatever its status. The other options are those of `start`.
        """
        checked_limit("wait", wait)  # before anything is started
        run = self.start(workflow, input=input, **options)
        row = self.waiting.wait_for_started(run.id, wait)
        return run._checked(row) if check and row is not None else run

    def start(
        self,
        workflow: Startable,
        *,
        input: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        priority: int = 0,
        deadline: Duration | None = None,
        seed: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Run:
        """Start a run; it is durable when this returns. `tags` are what people find it by: `engine.runs(tag=…)`.

        The same `run_id`, or the same `idempotency_key`, with the same workflow and input gives the run that is there; that of
        a Builder must also have the same graph. `input` is that of a document; a class has its own.
        """
        definition = self._definition_of(workflow, input)
        create = create_op(definition, run_id, idempotency_key, priority, deadline, seed, tags)
        return self.start_definition(definition, create, fresh=run_id is None and idempotency_key is None)

    def start_definition(self, definition: Definition, create: Create, *, fresh: bool = True) -> Run:
        """Start a run of a compiled workflow. `fresh`: no run with this id or key can exist."""
        (started,) = self._starting.start([(definition, create)], fresh=fresh)
        return Run(self, started)

    def _definition_of(self, workflow: Startable, input: Mapping[str, Any] | None = None) -> Definition:
        self._check_process()
        if isinstance(workflow, str):
            workflow = self.documents.find(workflow)
        works = self._runner is not None
        if isinstance(workflow, Document):
            return self.code.definition_of_document(workflow, {} if input is None else input, works=works)
        if input is not None:
            raise InputError(
                "input= is for documents: a class takes its input when it is made, OrderWorkflow(order_id=7)"
            )
        definition = self.code.definition_of(workflow, works=works)
        if works and isinstance(workflow, Builder):
            workflow.check_named_jobs()  # this engine is about to import them anyway
        return definition

    def start_many(
        self, workflows: Iterable[Startable], *, priority: int = 0, tags: Mapping[str, str] | None = None
    ) -> list[Run]:
        """Start many runs, hundreds in one commit."""
        definitions = map(self._definition_of, checked_list(workflows))
        items = ((definition, create_op(definition, priority=priority, tags=tags)) for definition in definitions)
        runs: list[Run] = []
        while chunk := list(islice(items, RUNS_PER_COMMIT)):
            runs += [Run(self, run_id) for run_id in self._starting.start(chunk, fresh=True)]
        return runs

    # Looking

    @property
    def metrics(self) -> EngineMetrics:
        """What this engine holds now and has done since it was opened; see also `run.metrics`."""
        self._check_process()
        return IDLE if self._runner is None else self._runner.metrics()

    def on(self, event: EventName, callback: Callable[[Any], None], *, every: Duration | None = None) -> None:
        """Call back for every "run" whose status changes, every "node" whose attempt is settled in this process, when
        "backpressure" begins and ends (work waits in the store because this engine is full), and with `engine.metrics`
        `every` so many seconds (10 by default) for "metrics".

        The events of one run come in the order of its journal, each once. One thread calls the listeners, one after the other:
        a slow one delays the next event, but no work. What a listener raises is logged and changes nothing. `close()` waits up
        to 5 s until they have heard everything.
        """
        self._check_process()
        self.events.on(event, callback, checked_limit("every", every, positive=True))

    # Working

    def adopt(self, run_id: str) -> Run:
        """Work on an unfinished run that another process started and left."""
        return Run(self, self.requests.adopt(run_id).id)

    def work(self, workflows: Iterable[type[Workflow]] = (), *, wait: Duration | None = None) -> None:
        """Work on every unfinished run whose code can be found here, whoever started it, until the engine is closed.

        Returns when the engine is closed by another thread, or after `wait` seconds. The work itself goes on until then, so
        `engine.work(wait=0)` only begins it. Ctrl-C ends the call like any other.

            with Engine("postgresql://...") as engine:
                engine.work([OrderWorkflow])

        Other workers and servers learn of these `workflows` at once, and of any other with the first run that is found.
        """
        limit = checked_limit("wait", wait)
        given = checked_workflows(workflows)
        self.code.introduce(given)
        register_workflows(self.store, dict.fromkeys((*self.code.given.values(), *given)))
        register_handlers(self.store, self.code.handlers)
        self.serving.everything = True
        self._require_runner().announce()
        self._discover()
        until = math.inf if limit is None else time.monotonic() + limit
        while time.monotonic() < until and not self._ended.wait(min(LOOK_SECONDS, until - time.monotonic())):
            self.check_works()
