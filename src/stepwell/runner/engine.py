"""`Engine`: start runs, work on them, look at them."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal

from ..clock import microseconds
from ..codec import encode
from ..define import Bodies, Builder, Definition, Workflow, bodies_for, definition_of
from ..define.workflow import check_one_name
from ..errors import DefinitionError, EngineClosed, InputError, RunConflict, RunStillActive, StoreCorrupt, StoreError
from ..graph import Graph
from ..ids import Digest, RunId, checked_run_id, new_run_id, new_worker_id
from ..model import (
    CHUNK,
    AddGraph,
    Create,
    Created,
    HeldGate,
    LayoutRow,
    ListRuns,
    Op,
    Receipt,
    Refusal,
    Refused,
    RunRow,
    RunStatus,
    Unfinished,
)
from ..settings import DEFAULT_STORE
from ..store import Store, open_store, reader
from .chores import Due
from .desk import Limits
from .gates import cancel, delete, load, retry
from .housekeeping import Housekeeping
from .local import LocalRunner
from .procedure import Procedure, carry_out
from .recent import Recent
from .run import Run
from .watch import Events, Watch
from .work import RunFacts

RUNS_PER_COMMIT = 500

Startable = Workflow | Builder


class Engine:
    """Runs workflows on a store.

        with Engine("sqlite:///orders.db") as engine:
            run = engine.run(OrderWorkflow(order_id=7))
            print(run.output("ship"))

    It works on the runs it started or adopted, and on every run of `workflows`, also those another process left. With
    `runner=None` it only starts and looks.
    """

    def __init__(
        self,
        url: str | Store | None = None,
        *,
        workflows: Iterable[type[Workflow]] = (),
        runner: Literal["local"] | None = "local",
        max_concurrent_nodes: int = 8,
        max_async_nodes: int = 1_000,
        max_processes: int = 2,
        queue_depth: int = 1_024,
        lease_seconds: float = 30.0,
        close_seconds: float = 10.0,
    ) -> None:
        for name, value in (
            ("max_concurrent_nodes", max_concurrent_nodes),
            ("max_async_nodes", max_async_nodes),
            ("max_processes", max_processes),
        ):
            if value < 1:
                raise InputError(f"{name}={value}: at least 1 is needed")
        if lease_seconds <= 0:
            raise InputError(f"lease_seconds={lease_seconds}: a positive number is needed")
        _refuse_while_importing_main()
        self._met: dict[str, type[Workflow]] = {}
        """Every class that was started or is served here, by name: two of one name are refused."""
        self._classes = {workflow.workflow_name: self._meet(workflow) for workflow in workflows}
        self.store: Store = open_store(url or DEFAULT_STORE) if url is None or isinstance(url, str) else url
        self.events = Events()
        self._watch = Watch()
        self._lock = threading.Lock()
        self._graphs: Recent[str, Graph] = Recent(128)
        self._stored: Recent[str, bool] = Recent(10_000)
        """Digests of graphs that are known to be in the store."""
        self._found: Recent[tuple[str, str], Bodies] = Recent(1_000)
        """The bodies of what was started or found to be served here, by workflow and digest."""
        self._serves_all = False
        self._served: dict[tuple[str, str | None, str], frozenset[str] | None] = {}
        self._close_seconds = close_seconds
        self._closed = False
        self._started = False
        self._runner: LocalRunner | None = None
        if runner == "local":
            limits = Limits(max_concurrent_nodes, max_async_nodes, max_processes, queue_depth)
            self._runner = LocalRunner(
                self.store,
                new_worker_id(),
                limits,
                lease_seconds,
                find_facts=self._find_facts,
                on_news=self._on_news,
                on_settled=self.events.settled,
                on_trouble=self._watch.trouble,
                finish_gate=self._finish_gate,
                do_chores=self._do_chores,
            )
            self._house = Housekeeping(
                self._runner, store_now=self.store.now, waited=self._watch.runs, serve=self._discover
            )
        if self._classes:
            self._work()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.5 if kind is not None and issubclass(kind, KeyboardInterrupt) else None)

    def close(self, timeout: float | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds (by default `close_seconds`), then give back the rest."""
        if self._closed:
            return
        self._closed = True
        if self._runner is not None and self._started:
            self._runner.close(self._close_seconds if timeout is None else timeout)
        self._watch.trouble(EngineClosed("the engine was closed while this run was still going on"))
        self.store.close()

    # Starting

    def run(self, workflow: Startable, *, check: bool = True, timeout: float | None = None, **options: Any) -> Run:
        """Start a run and wait for its end; raises RunFailed or RunCancelled unless `check=False`."""
        run = self.start(workflow, **options).wait(timeout)
        return run.check() if check else run

    def start(
        self,
        workflow: Startable,
        *,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        priority: int = 0,
        timeout: float | None = None,
        seed: int | None = None,
    ) -> Run:
        """Start a run; it is durable when this returns.

        The same `run_id`, or the same `idempotency_key`, with the same workflow and input gives the run that is there.
        """
        definition = self._definition_of(workflow)
        create = _create(definition, run_id, idempotency_key, priority, timeout, seed)
        return self._start([(definition, create)], fresh=run_id is None and idempotency_key is None)[0]

    def start_many(self, workflows: Iterable[Startable], *, priority: int = 0) -> list[Run]:
        """Start many runs, hundreds in one commit."""
        runs: list[Run] = []
        chunk: list[tuple[Definition, Create]] = []
        for workflow in workflows:
            definition = self._definition_of(workflow)
            chunk.append((definition, _create(definition, None, None, priority, None, None)))
            if len(chunk) == RUNS_PER_COMMIT:
                runs += self._start(chunk, fresh=True)
                chunk = []
        return runs + (self._start(chunk, fresh=True) if chunk else [])

    def _definition_of(self, workflow: Startable) -> Definition:
        definition = definition_of(workflow)
        if isinstance(workflow, Workflow):
            self._meet(type(workflow))
        return definition

    def _meet(self, workflow: type[Workflow]) -> type[Workflow]:
        check_one_name(workflow, self._met.setdefault(workflow.workflow_name, workflow))
        return workflow

    def _start(self, items: Sequence[tuple[Definition, Create]], *, fresh: bool) -> list[Run]:
        self._work()
        ops: list[Op] = []
        for definition, _ in items:
            ops += self._graph_ops(definition)
            self._found[definition.workflow, definition.graph.digest] = definition.bodies
        ops += [create for _, create in items]
        # A run that exists may have another graph, so nothing is claimed of it before the answer is there.
        small = all(len(definition.graph) <= CHUNK for definition, _ in items)
        facts = tuple(_facts(definition, create) for definition, create in items) if fresh and small else ()
        receipts = self._commit(ops, facts)[-len(items) :]
        return [
            self._started_run(definition, create, receipt, known=bool(facts))
            for (definition, create), receipt in zip(items, receipts, strict=True)
        ]

    def _started_run(self, definition: Definition, create: Create, receipt: Receipt, *, known: bool) -> Run:
        if isinstance(receipt, Refused) and receipt.reason in (Refusal.UNKNOWN, Refusal.INCOMPLETE):
            # The graph was collected meanwhile, or somebody else has not stored it whole yet.
            self._stored.pop(create.digest, None)
            receipt = self._commit([*self._graph_ops(definition), create], ())[-1]
        if isinstance(receipt, Refused):
            raise RunConflict(
                f"run {receipt.detail} exists already, with another workflow or input; choose another run id or key",
                run_id=create.run_id,
            )
        assert isinstance(receipt, Created)
        run = Run(self, receipt.run_id)
        if receipt.existed:
            return self.adopt(run.id) if self._runner is not None else run
        if receipt.loaded < receipt.total:
            carry_out(self.store, load(run.id, receipt.loaded))
        if self._runner is not None and not known:
            self._runner.know(_facts(definition, create))
        if self._runner is not None and create.timeout is not None:
            self._runner.sweep_in(create.timeout)
        return run

    def _graph_ops(self, definition: Definition) -> list[Op]:
        """What stores the graph: nothing if it is there; a large one is stored here, chunk by chunk."""
        graph = definition.graph
        if graph.digest in self._stored:
            return []
        rows = layout_of(graph)
        chunks: list[Op] = [
            AddGraph(
                graph.digest,
                definition.workflow,
                graph.signature,
                graph.document,
                len(graph),
                start,
                rows[start : start + CHUNK],
            )
            for start in range(0, len(rows), CHUNK)
        ]
        for chunk in chunks[:-1]:
            self.store.commit([chunk])
        self._stored[graph.digest] = True
        self._graphs[graph.digest] = graph
        return chunks[-1:]

    def _commit(self, ops: list[Op], facts: tuple[RunFacts, ...]) -> list[Receipt]:
        try:
            return self.store.commit(ops) if self._runner is None else self._runner.submit(ops, facts)
        except BaseException:
            self._stored.clear()
            raise

    # Looking

    def get(self, run_id: str) -> Run:
        """The run with this id; raises RunNotFound."""
        return Run(self, reader.require_run(self.store, run_id).id)

    def runs(
        self, *, limit: int = 100, workflow: str | None = None, status: RunStatus | str | None = None
    ) -> list[Run]:
        """The newest runs."""
        statuses = () if status is None else (RunStatus(status),)
        page = reader.list_runs(self.store, ListRuns(limit, workflow=workflow, statuses=statuses))
        return [Run(self, row.id) for row in page.runs]

    def on(self, event: Literal["run", "node"], callback: Callable[[Any], None]) -> None:
        """Call back for every "run" that ends or changes, or every "node" whose attempt is settled, in this process."""
        self.events.on(event, callback)

    def wait(self, run_id: RunId, timeout: float | None = None) -> RunStatus:
        """Wait for the end of a run. Without a runner, somebody else must be working on it."""
        self._work()  # also who only waits must notice what others do
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._watch.waiting(run_id) as waiter:
            while True:
                status = reader.require_run(self.store, run_id).status
                if status.terminal:
                    return status
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise RunStillActive(
                        f"run {run_id} is still {status} after {timeout:g} s; it goes on", run_id=run_id
                    )
                waiter.wait(left if self._runner is not None else min(0.05, left or 0.05))

    def graph_of(self, row: RunRow) -> Graph:
        graph = self._graphs.get(row.digest)
        if graph is None:
            document = reader.get_graph(self.store, row.digest)
            if document is None:
                raise StoreCorrupt(f"the graph {row.digest} of run {row.id} is missing from the store")
            graph = self._graphs[row.digest] = Graph.load(document)
        return graph

    # Working

    def adopt(self, run_id: str) -> Run:
        """Work on an unfinished run that another process started and left."""
        row = reader.require_run(self.store, run_id)
        if not row.status.terminal:
            self._take_up(row, self._facts_of(row))
        return Run(self, row.id)

    def _take_up(self, row: RunRow, facts: RunFacts) -> None:
        runner = self._require_runner()
        runner.know(facts)
        if row.deadline_at is not None:
            runner.sweep_in(row.deadline_at - self.store.now())

    def serve(self) -> None:
        """Work on every unfinished run whose code can be found here, now and until the engine is closed."""
        self._serves_all = True
        self._require_runner()
        self._discover()

    def can_serve(self, needed: Unfinished) -> bool | None:
        """Whether the code of such runs was found here; None when this engine has not looked for it (yet)."""
        return None if needed not in self._served else self._served[needed] is not None

    def retry(self, run_id: RunId) -> None:
        row = reader.require_run(self.store, run_id)
        facts = self._facts_of(row) if self._runner is not None else None
        news = carry_out(self.store, retry(run_id))
        if news is None:
            status = reader.require_run(self.store, run_id).status
            raise RunConflict(f"run {run_id} is {status}; only a FAILED or CANCELLED run can be retried", run_id=run_id)
        if facts is not None:
            row = reader.require_run(self.store, run_id)
            facts.since = news.seq
            self._take_up(row, facts)

    def cancel(self, run_id: RunId, grace_seconds: float = 5.0) -> None:
        news = carry_out(self.store, cancel(run_id, grace=microseconds(grace_seconds)))
        if news is None:
            status = reader.require_run(self.store, run_id).status
            if status is RunStatus.CANCELLING or status is RunStatus.CANCELLED:
                return
            raise RunConflict(f"run {run_id} is {status}; it has ended and cannot be cancelled", run_id=run_id)
        if self._runner is not None and self._started:
            self._runner.stop_run(run_id)
            self._runner.spread([news])
            self._runner.sweep_in(microseconds(grace_seconds) + 1_000)

    def delete(self, run_id: RunId) -> None:
        reader.require_run(self.store, run_id)
        carry_out(self.store, delete(run_id))

    def _work(self) -> None:
        """Start the runner with the first thing there is to do."""
        if self._closed:
            raise EngineClosed("the engine is closed; open a new one")
        with self._lock:
            if self._runner is not None and not self._started:
                self._runner.start()
                self._started = True

    def _require_runner(self) -> LocalRunner:
        if self._runner is None:
            raise InputError("this engine was opened with runner=None: it only starts and looks")
        self._work()
        return self._runner

    def _finish_gate(self, held: HeldGate) -> None:
        self._house.finish_gate(held)

    def _do_chores(self, due: Due) -> Procedure[None]:
        return self._house.do(due)

    def _on_news(self, news: Iterable[Any]) -> None:
        self._watch.tell(news)
        self.events.runs(news)

    def _discover(self) -> None:
        """Find unfinished runs whose code is here and serve them, whoever started them."""
        if self._runner is None or not (self._serves_all or self._classes):
            return
        for item in reader.list_unfinished(self.store):
            if item not in self._served:
                self._served[item] = self._lanes_if_served(*item)
        pairs = {(workflow, digest): lanes for (workflow, _, digest), lanes in self._served.items() if lanes}
        self._runner.serve(pairs)

    def _lanes_if_served(self, workflow: str, target: str | None, digest: Digest) -> frozenset[str] | None:
        """The lanes of a graph this engine has all the code of, else None."""
        if workflow not in self._classes and not self._serves_all:
            return None
        document = reader.get_graph(self.store, digest)
        if document is None:
            return None
        graph = self._graphs[digest] = Graph.load(document)
        try:
            bodies = self._bodies(workflow, target, digest)
            for spec in {spec.job or spec.id: spec for spec in graph}.values():
                bodies.find(spec)
        except StoreError:
            raise
        except Exception:
            return None
        self._found[workflow, digest] = bodies
        return graph.lanes

    def _bodies(self, workflow: str, target: str | None, digest: Digest) -> Bodies:
        """What this engine has at hand comes first: a class inside a function cannot be found by its address."""
        return self._found.get((workflow, digest)) or bodies_for(self._classes.get(workflow, target))

    def _facts_of(self, row: RunRow) -> RunFacts:
        bodies = self._bodies(row.workflow, row.target, row.digest)
        facts = RunFacts(row.id, row.workflow, row.target, self.graph_of(row), row.input, row.seed, bodies)
        facts.since = row.seq
        return facts

    def _find_facts(self, run_id: RunId) -> RunFacts:
        return self._facts_of(reader.require_run(self.store, run_id))


def _refuse_while_importing_main() -> None:
    """A process for bodies imports the main module, and would start the same runs again."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DefinitionError(
            'a process for bodies (isolation="process") imports the main module, which opens an engine: '
            'put what it does when it is run below `if __name__ == "__main__":`'
        )


def _create(
    definition: Definition,
    run_id: str | None,
    idempotency_key: str | None,
    priority: int,
    timeout: float | None,
    seed: int | None,
) -> Create:
    chosen = new_run_id() if run_id is None else checked_run_id(run_id)
    limit = definition.timeout if timeout is None else timeout
    if limit is not None and not 0 < limit < 2**40:
        raise InputError(f"timeout={limit}: a positive number of seconds is needed")
    if not -(2**31) <= priority < 2**31:
        raise InputError(f"priority={priority}: a whole number of 32 bits is needed")
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(chosen.encode()).digest()[:8], "big")
    elif not 0 <= seed < 2**64:
        raise InputError(f"seed={seed}: a whole number from 0 to 2**64 - 1 is needed")
    return Create(
        chosen,
        definition.workflow,
        definition.target,
        definition.graph.digest,
        encode(dict(definition.input)),
        seed,
        definition.on_failure,
        priority,
        None if limit is None else microseconds(limit),
        idempotency_key,
    )


def _facts(definition: Definition, create: Create) -> RunFacts:
    return RunFacts(
        create.run_id,
        definition.workflow,
        definition.target,
        definition.graph,
        create.input,
        create.seed,
        definition.bodies,
    )


def layout_of(graph: Graph) -> tuple[LayoutRow, ...]:
    index = graph.index
    return tuple(
        LayoutRow(spec.id, parents, tuple(index[need] for need in spec.needs) if spec.needs else (), spec.lane)
        for spec, parents in zip(graph.in_order, graph.parents, strict=True)
    )
