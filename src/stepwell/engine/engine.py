"""`Engine`: what users open, for threads and for coroutines."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..base.clock import Duration
from ..base.commands import DEFAULT_STORE
from ..base.ids import RunId, new_worker_id
from ..core.model import ListRuns
from ..core.store import Store
from ..define import Workflow
from ..handlers import Handler, Handlers
from ..history.audit_log import AuditEntry, AuditFilter, read_entries
from ..stores import open_store, public
from .bodies.kinds import Limits
from .calls import Calls
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
from .child_starts import ChildStarts
from .code.code import Code
from .code.registering import KnownHandlers
from .code.versions import Versions
from .documents import Documents
from .events import Events
from .following import Event, check_until, events_of, follow
from .internal_runs import internal_bodies
from .parts import EngineParts
from .recent import Recent
from .runs.bulk import BulkVerb, apply_bulk, preview_bulk
from .runs.requests import Requests
from .runs.run import Run
from .scheduling.metrics import EngineMetrics
from .starting import Startable, Starting, StartOptions, create_op
from .waiting import Waiting, Watch
from .work import EngineWork, WorkerOptions

if TYPE_CHECKING:
    from ..answers.runs import BulkRecord, PreviewedRun
    from .aio.engine import AsyncEngine
    from .triggers import EngineTriggers

RUNS_PER_COMMIT = 500
LOOK_SECONDS = 1.0
"""How often `work` looks whether the engine had to give up."""
EventName: TypeAlias = Literal["run", "node", "backpressure", "metrics"]


class Engine(Calls):
    """Runs workflows on a store.

        with Engine("sqlite:///orders.db") as engine:
            run = engine.run(OrderWorkflow(order_id=7))
            print(run.output("ship"))

    It works on the runs it started or adopted, and on every run of `workflows`, also those that another process left. With
    `runner=None` it only starts and reads runs. With `runner="celery"` it does the same and sends hints to Celery workers:
    `broker` is the URL of their broker, or a Celery application; such an engine may be used on both sides of a fork. With
    `queues` it takes only nodes of these queues. With `guard=True` a body fails that uses the clock, randomness, the network or
    a program without recording it; the error shows the line. `node_timeout` is the time limit of every node that has none.
    Durations are numbers of seconds, or timedeltas.

    `jobs` names modules whose functions may run for what came from elsewhere: an imported graph, or what is stored on a server.
    What programs put into an embedded store needs none. `handlers` are functions with `@handler(...)` that documents may name
    besides the built-in ones, or names of modules that hold some.
    """

    parts: EngineParts

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
        classes, modules = checked_workflows(workflows), checked_modules(jobs)
        taken_queues = checked_queues(queues)
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
        limits = Limits(max_concurrent_nodes, max_async_nodes, max_processes, queue_depth, node_limit)
        store = _opened(url, broker if runner == "celery" else None, brokered=runner == "celery")
        registered = handlers if isinstance(handlers, Handlers) else Handlers(checked_list(handlers))
        code = Code(store, classes, modules, registered, checked_pipelines(pipelines), internal_bodies)
        watch = Watch()
        worker = new_worker_id() if runner == "local" else None
        listeners = Events(store)
        versions = Versions(store, code, worker)
        documents = Documents(store, KnownHandlers(registered, store))
        work = EngineWork(
            store,
            code,
            versions,
            watch,
            listeners,
            lambda: self.triggers,
            None if worker is None else WorkerOptions(worker, limits, lease, taken_queues, guard),
            ChildStarts(code, documents, lambda: work.announce()),  # noqa: PLW0108 - there is no `work` yet
            forkable=runner == "celery",
        )
        waiting = Waiting(store, watch, work.begin, work.still_active, work.works_on, news=runner == "local")
        requests = Requests(store, code, versions, waiting, work)
        starting = Starting(
            store, code, documents, work.runner, begin=work.begin, announce=work.announce, adopt=requests.adopt
        )
        self.parts = EngineParts(
            store, code, documents, requests, waiting, Recent(20_000), starting, work, work.serving, listeners
        )
        self._waiting, self._requests = waiting, requests
        self._async: AsyncEngine | None = None
        if code.given:
            work.begin_soon()

    def __repr__(self) -> str:
        return f"<Engine {public(self.store.url)}{' (closed)' if self.parts.work.closed else ''}>"

    # Leaving

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.5 if kind is not None and issubclass(kind, KeyboardInterrupt) else None)
        self.parts.work.warn_unfinished()

    async def __aenter__(self) -> AsyncEngine:
        """The same engine for coroutines. `async def` bodies that begin from now on run on this loop."""
        from .aio.engine import AsyncEngine

        loop = asyncio.get_running_loop()
        bodies = self.parts.work.use_loop(loop)
        self._waiting.use_loop(None if bodies is None else loop)
        self._async = AsyncEngine(self, bodies)
        return self._async

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._async is not None
        await self._async.close()

    def close(self, timeout: Duration | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds (by default `close_seconds`), then give back the rest."""
        limit = checked_limit("timeout", timeout)  # before anything is closed
        if not self.parts.work.close(self._close_seconds if limit is None else limit):
            return
        self.parts.listeners.close()
        self._waiting.close()
        if self._async is not None:
            self._async._shut()
        self.store.close()

    # Starting

    def _start(self, workflow: Startable, input: Mapping[str, Any] | None, options: StartOptions) -> RunId:
        self.parts.work.check_process()
        starting = self.parts.starting
        definition = starting.definition_of(workflow, input)
        fresh = options["run_id"] is None and options["idempotency_key"] is None
        return starting.start(definition, create_op(definition, **options), fresh=fresh)

    def start_many(
        self, workflows: Iterable[Startable], *, priority: int = 0, tags: Mapping[str, str] | None = None
    ) -> list[Run]:
        """Start many runs, hundreds in one commit."""
        self.parts.work.check_process()
        starting = self.parts.starting
        definitions = map(starting.definition_of, checked_list(workflows))
        items = ((definition, create_op(definition, priority=priority, tags=tags)) for definition in definitions)
        runs: list[Run] = []
        while chunk := list(islice(items, RUNS_PER_COMMIT)):
            runs += [Run(self.parts, run_id) for run_id in starting.start_many(chunk)]
        return runs

    # Looking

    @property
    def metrics(self) -> EngineMetrics:
        """What this engine holds now and has done since it was opened; see also `run.metrics`."""
        return self.parts.work.metrics()

    @cached_property
    def triggers(self) -> EngineTriggers:
        """What starts runs by itself: schedules, webhooks, the end of other runs. An engine that serves fires them."""
        from .triggers import EngineTriggers

        return EngineTriggers(self.parts)

    def _preview_bulk(self, asked: BulkVerb, query: ListRuns, cursor: Any) -> tuple[BulkRecord, Any]:
        return preview_bulk(self.parts, asked, query._replace(before=cursor))

    def _apply_bulk(self, asked: BulkVerb, previewed: list[PreviewedRun]) -> BulkRecord:
        return apply_bulk(self.parts, asked, previewed)

    def _audit_entries(self, wanted: AuditFilter) -> Iterator[AuditEntry]:
        return read_entries(self.store, wanted)

    def events(
        self, run: Run | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> Iterator[Event]:
        """Events as they happen: the journal of a run, or the status of every run when it changes.

            for event in engine.events(run, until="ended"):
                print(event.kind, event.data)

        `last` is the id of the last event received before. With `until="ended"` it stops after the run has ended, with an
        event `end`; otherwise it never stops by itself. `Client.events` gives the same.
        """
        run_id = run.id if isinstance(run, Run) else run
        check_until(run_id, until)
        return follow(events_of(self.parts, run_id, last, until))

    def on(self, event: EventName, callback: Callable[[Any], None], *, every: Duration | None = None) -> None:
        """Call back for every "run" whose status changes, every "node" whose attempt is settled in this process, when
        "backpressure" begins and ends (work waits in the store because this engine is full), and with `engine.metrics`
        `every` so many seconds (10 by default) for "metrics". Child runs and their nodes are not reported.

        The events of one run come in the order of its journal, each once. One thread calls the listeners, one after the other:
        a slow one delays the next event, but no work. What a listener raises is logged and changes nothing. `close()` waits up
        to 5 s until they have heard everything.
        """
        self.parts.work.check_process()
        self.parts.listeners.on(event, callback, checked_limit("every", every, positive=True))

    # Working

    def adopt(self, run_id: str) -> Run:
        """Work on an unfinished run that another process started and left."""
        return Run(self.parts, self._requests.adopt(run_id).id)

    def work(self, workflows: Iterable[type[Workflow]] = (), *, wait: Duration | None = None) -> None:
        """Work on every unfinished run whose code can be found here, whoever started it, until the engine is closed.

        Returns when the engine is closed by another thread, or after `wait` seconds. The work itself goes on until then, so
        `engine.work(wait=0)` only begins it. Ctrl-C ends the call like any other.

            with Engine("postgresql://...") as engine:
                engine.work([OrderWorkflow])

        Other workers and servers learn of these `workflows` at once, and of any other with the first run that is found.
        """
        limit = checked_limit("wait", wait)
        work = self.parts.work
        work.serve(checked_workflows(workflows))
        until = math.inf if limit is None else time.monotonic() + limit
        while time.monotonic() < until and not work.ended.wait(min(LOOK_SECONDS, until - time.monotonic())):
            work.check_works()


def _opened(url: str | Store | None, broker: Any, *, brokered: bool) -> Store:
    def open() -> Store:
        return open_store(url or DEFAULT_STORE) if url is None or isinstance(url, str) else url

    if not brokered:
        return open()
    from .broker_app import app_of
    from .hint_sender import BrokeredStore, HintSender

    return BrokeredStore(open, HintSender(app_of(broker)), patient=True)
