"""`Engine`: start runs, work on them, look at them."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar

from ..clock import SECOND
from ..codec import decode, encode
from ..commands import DEFAULT_STORE, either
from ..define import Bodies, Builder, Definition, Workflow
from ..errors import DefinitionError, EngineClosed, InputError, RunBusy, RunConflict, RunStillActive
from ..graph import Graph
from ..ids import Digest, RunId, checked_run_id, new_run_id, new_worker_id
from ..kernel.comparing import Comparison
from ..kernel.layout import add_graph
from ..model import (
    Create,
    Created,
    Gate,
    GetRun,
    ListJournal,
    ListRuns,
    Op,
    Receipt,
    Refusal,
    Refused,
    RunNews,
    RunRow,
    RunStatus,
    Unfinished,
)
from ..store import Store, open_store, reader
from .bodies.held import RunFacts
from .checking import (
    check_page,
    check_seconds,
    checked_list,
    checked_modules,
    checked_queues,
    checked_status,
    checked_workflows,
)
from .code.code import Code, Outdated
from .code.serving import Serving
from .code.versions import Versions, unfit
from .events import Events, ObservedStore
from .procedures.begin_fork import begin_fork
from .procedures.forking import below
from .procedures.gates import GATE_LEASE, ask, delete, enact, load, switch_graph
from .procedures.procedure import carry_out
from .recent import Recent
from .reports.explain import served_by
from .run import Run, as_run
from .starting import check_home, check_limits, create_op, facts_of, kept_input, refuse_while_importing_main
from .waiting import Waiting
from .watch import Watch
from .worker.batches import Limits
from .worker.debounce import Debounce
from .worker.housekeeping import Housekeeping
from .worker.local_runner import LocalRunner
from .worker.metrics import IDLE, EngineMetrics

log = logging.getLogger("stepwell")

RUNS_PER_COMMIT = 500
Answer = TypeVar("Answer")

Startable = Workflow | Builder


class Engine:
    """Runs workflows on a store.

        with Engine("sqlite:///orders.db") as engine:
            run = engine.run(OrderWorkflow(order_id=7))
            print(run.output("ship"))

    It works on the runs it started or adopted, and on every run of `workflows`, also those another process left. With
    `runner=None` it only starts and looks. With `queues` it takes only nodes of these queues. With
    `guard=True` a body that asks the clock, chance, the network or a program for
    something that is not recorded fails, with the line that tried.

    `jobs` names modules whose functions may run for what came from elsewhere: an imported graph, or what is stored on a server.
    What programs put into an embedded store needs none.
    """

    def __init__(
        self,
        url: str | Store | None = None,
        *,
        workflows: Iterable[type[Workflow]] = (),
        jobs: Iterable[str] = (),
        runner: Literal["local"] | None = "local",
        max_concurrent_nodes: int = 8,
        max_async_nodes: int = 1_000,
        max_processes: int = 2,
        queue_depth: int = 1_024,
        lease_seconds: float = 30.0,
        close_seconds: float = 10.0,
        queues: Iterable[str] | None = None,
        guard: bool = False,
    ) -> None:
        check_home(url, runner)
        given, allowed, taken = checked_workflows(workflows), checked_modules(jobs), checked_queues(queues)
        check_limits(
            lease_seconds=lease_seconds,
            close_seconds=close_seconds,
            max_concurrent_nodes=max_concurrent_nodes,
            max_async_nodes=max_async_nodes,
            max_processes=max_processes,
            queue_depth=queue_depth,
        )
        refuse_while_importing_main()
        self.events = Events()
        store = open_store(url or DEFAULT_STORE) if url is None or isinstance(url, str) else url
        self.store: Store = ObservedStore(store, self.events)
        self._watch = Watch()
        self._waiting = Waiting(self.store, self._watch, self._work, self._still_active, news=runner == "local")
        self._lock = threading.Lock()
        self._stored: Recent[str, bool] = Recent(10_000)
        """Digests of graphs that are known to be in the store."""
        worker = new_worker_id() if runner == "local" else None
        self.code = Code(self.store, given, allowed)
        self.checkpoint_keys: Recent[str, int] = Recent(20_000)
        """The steps of checkpoints that were met while one was looked for by its key."""
        self._versions = Versions(self.store, self.code, worker)
        self._serving = Serving(self.store, self.code, self._versions, take_up=self._take_up, announce=self._announce)
        self._discovering = Debounce(self._serve, "stepwell-serving", 0)
        self._close_seconds = close_seconds
        self._closed = False
        self._started = False
        self._runner: LocalRunner | None = None
        if worker is not None:
            limits = Limits(max_concurrent_nodes, max_async_nodes, max_processes, queue_depth)
            self._runner = LocalRunner(
                self.store,
                worker,
                limits,
                lease_seconds,
                versions=self.code.versions,
                find_facts=self._find_facts,
                on_news=self._on_news,
                on_trouble=self._watch.trouble,
                on_pressure=self.events.pressed,
                house=lambda: self._house,
                graphs=self.code.known_graph,
                queues=taken,
                guarded=guard,
            )
            self.events.settling = self._runner.settling
            self._house = Housekeeping(
                self._runner, store_now=self.store.now, waited=self._watch.runs, serve=self._serve_soon
            )
        if self.code.given:
            self._work()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.5 if kind is not None and issubclass(kind, KeyboardInterrupt) else None)

    def close(self, timeout: float | None = None) -> None:
        """Let running bodies end for up to `timeout` seconds (by default `close_seconds`), then give back the rest."""
        if timeout is not None:
            check_seconds("timeout", timeout)  # before anything is closed
        if self._closed:
            return
        self._closed = True
        if self._runner is not None and self._started:
            self._runner.close(self._close_seconds if timeout is None else timeout)
            self._discovering.end(5)
        self.events.close()
        self._waiting.close()
        self.store.close()

    # Starting

    def run(self, workflow: Startable, *, check: bool = True, wait: float | None = None, **options: Any) -> Run:
        """Start a run and wait for its end, `wait` seconds at most.

        Raises RunFailed or RunCancelled if it ended so, RunPaused if it waits for a decision; with `check=False` the run is
        returned however it stands then. The other options are those of `start`.
        """
        if wait is not None:
            check_seconds("wait", wait)  # before anything is started
        run = self.start(workflow, **options).wait(wait)
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

        The same `run_id`, or the same `idempotency_key`, with the same workflow and input gives the run that is there; that of
        a Builder must also have the same graph.
        """
        definition = self.code.definition_of(workflow)
        create = create_op(definition, run_id, idempotency_key, priority, timeout, seed)
        return self._start([(definition, create)], fresh=run_id is None and idempotency_key is None)[0]

    def start_many(self, workflows: Iterable[Startable], *, priority: int = 0) -> list[Run]:
        """Start many runs, hundreds in one commit."""
        runs: list[Run] = []
        chunk: list[tuple[Definition, Create]] = []
        for workflow in checked_list(workflows):
            definition = self.code.definition_of(workflow)
            chunk.append((definition, create_op(definition, priority=priority)))
            if len(chunk) == RUNS_PER_COMMIT:
                runs += self._start(chunk, fresh=True)
                chunk = []
        return runs + (self._start(chunk, fresh=True) if chunk else [])

    def _start(self, items: Sequence[tuple[Definition, Create]], *, fresh: bool) -> list[Run]:
        news = [self.code.remember(definition) for definition, _ in items]
        self._work()
        if any(news):
            self._announce()
        ops: list[Op] = []
        for definition, _ in items:
            ops += self._graph_ops(definition)
        ops += [create for _, create in items]
        # A run that exists may have another graph, so nothing is claimed of it before the answer is there.
        small = all(len(definition.graph) <= self.store.limits.nodes for definition, _ in items)
        facts = tuple(facts_of(definition, create) for definition, create in items) if fresh and small else ()
        receipts = self._commit(ops, facts)[-len(items) :]
        return [
            self._started_run(definition, create, receipt, known=bool(facts))
            for (definition, create), receipt in zip(items, receipts, strict=True)
        ]

    def _started_run(self, definition: Definition, create: Create, receipt: Receipt, *, known: bool) -> Run:
        if isinstance(receipt, Refused) and receipt.reason in (Refusal.UNKNOWN, Refusal.INCOMPLETE):
            # The graph was collected meanwhile, or somebody else has not stored it whole yet.
            receipt = self._commit([*(self._whole_graph(definition)), create], ())[-1]
            known = False  # the scheduler forgot it with the refusal
        if isinstance(receipt, Refused):
            raise RunConflict(
                f"run {receipt.detail} exists already, with another workflow or input; choose another run id or key",
                run_id=create.run_id,
            )
        assert isinstance(receipt, Created)
        run = Run(self, receipt.run_id)
        if receipt.existed:
            self._check_same_graph(definition, receipt.run_id)
            return self.adopt(run.id) if self._runner is not None else run
        if receipt.loaded < receipt.total:
            carry_out(self.store, load(run.id, receipt.loaded))
        if self._runner is not None and not known:
            self._runner.know(facts_of(definition, create))
        if self._runner is not None and create.timeout is not None:
            self._runner.sweep_in(create.timeout)
        return run

    def _check_same_graph(self, definition: Definition, run_id: RunId) -> None:
        """A run that is there is the same one only if it has the same graph; that of a class may have healed since."""
        row, moved = self.store.read([GetRun(run_id), ListJournal(run_id, limit=1, kinds=("healed",))])
        if row is None or (row.target is not None and definition.target is not None):
            return
        first = Digest(moved[0].status.partition(" ")[0]) if moved else row.digest  # before somebody edited or froze it
        if first == definition.graph.digest and row.target == definition.target:
            return
        stored = reader.get_graph(self.store, first)  # it may be collected, once no run has it any more
        differing = "" if stored is None else f" ({_difference(Graph.load(stored), definition.graph)})"
        raise RunConflict(
            f"run {run_id} exists already, with another graph{differing}; choose another run id or key, or go on with the run "
            f"as it is: engine.adopt({run_id!r})",
            run_id=run_id,
        )

    def _graph_ops(self, definition: Definition) -> list[Op]:
        """What stores the graph: nothing if it is there; a large one is stored here, chunk by chunk."""
        graph = definition.graph
        if graph.digest in self._stored:
            return []
        chunks: list[Op] = [*add_graph(graph, definition.workflow)]
        for chunk in chunks[:-1]:
            self.store.commit([chunk])
        self._stored[graph.digest] = True
        self.code.stored(graph)
        return chunks[-1:]

    def _whole_graph(self, definition: Definition) -> list[Op]:
        """All that stores the graph, in one batch with what needs it: nobody can collect it in between."""
        return [*add_graph(definition.graph, definition.workflow)]

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

    def compare(self, first: Run | str, second: Run | str) -> Comparison:
        """Two runs side by side; see `Run.diff`."""
        return as_run(self, first).diff(second)

    def runs(
        self, *, limit: int = 100, workflow: str | None = None, status: RunStatus | str | None = None
    ) -> list[Run]:
        """The newest runs."""
        check_page(limit, workflow)
        statuses = () if status is None else (checked_status(status),)
        page = reader.list_runs(self.store, ListRuns(limit, workflow=workflow, statuses=statuses))
        return [Run(self, row.id) for row in page.runs]

    @property
    def metrics(self) -> EngineMetrics:
        """What this engine holds now and has done since it was opened, in numbers; see also `run.metrics`."""
        return IDLE if self._runner is None else self._runner.metrics()

    def on(self, event: Literal["run", "node", "backpressure"], callback: Callable[[Any], None]) -> None:
        """Call back for every "run" whose status changes, every "node" whose attempt is settled in this process, and when
        "backpressure" begins and ends: work waits in the store because there is no room for it here.

        Of one run in the order of its journal, each change once. One thread calls the listeners, one after the other: a slow
        one delays the next event, and no work. Whatever a listener raises is logged and changes nothing. `close()` waits up
        to 5 s until they have heard everything.
        """
        self.events.on(event, callback)

    def wait(self, run_id: RunId, timeout: float | None = None) -> RunStatus:
        """Wait until a run has ended, or has paused because somebody must decide, and give its status.

        Without a runner, somebody else must be working on it.
        """
        return self._waiting.wait(run_id, timeout).status

    async def wait_on_loop(self, run_id: RunId) -> RunStatus:
        """The same for `async def`: it blocks no loop and holds no thread."""
        return (await self._waiting.wait_on_loop(run_id)).status

    def _still_active(self, row: RunRow, told: str) -> RunStillActive:
        """Waiting ended first: does the run go on by itself?"""
        if row.status is RunStatus.PAUSED:
            more = f"{either('run.resume()', f'resume {row.id}', self.store.url)} goes on with it"
        elif self._is_worked_on(row):
            more = "it goes on"
        else:
            works = either(f"engine.adopt({row.id!r})", f"resume {row.id}", self.store.url)
            more = f"no worker is alive that works on it: {works} does"
        return RunStillActive(f"{told}; {more}", run_id=row.id)

    def _is_worked_on(self, row: RunRow) -> bool:
        if self._runner is None:
            return served_by(self.store, row, self.graph_of(row))
        scheduler = self._runner.scheduler
        own = row.id in scheduler.facts or bool(self.can_serve(Unfinished(row.workflow, row.target, row.digest)))
        return own or served_by(self.store, row, self.graph_of(row), but=scheduler.worker)

    def graph_of(self, row: RunRow) -> Graph:
        return self.code.graph(row.digest, row.id)

    def bodies_of(self, row: RunRow) -> Bodies:
        """The code of a run, imported if need be."""
        return self.code.bodies(row.workflow, row.target, self.graph_of(row))

    # Working

    def adopt(self, run_id: str) -> Run:
        """Work on an unfinished run that another process started and left."""
        row = self._waiting.once_it_goes_on(run_id)
        if not row.status.terminal:
            row = self._in_turn(lambda: self._versions.up_to_date(reader.require_run(self.store, run_id)))
            self._take_up(row, self.code.facts(row))
        return Run(self, row.id)

    def _take_up(self, row: RunRow, facts: RunFacts) -> None:
        runner = self._require_runner()
        runner.know(facts)
        if row.deadline_at is not None:
            runner.sweep_in(row.deadline_at - self.store.now())

    def serve(self, workflows: Iterable[type[Workflow]] = ()) -> None:
        """Work on every unfinished run whose code can be found here, now and until the engine is closed.

        Other workers are told of these `workflows` at once, and of others with the first run of them that is found.
        """
        self.code.introduce(checked_workflows(workflows))
        self._serving.everything = True
        self._require_runner().announce()
        self._discover()

    def can_serve(self, needed: Unfinished) -> bool | None:
        """Whether the code of such runs was found here; None when this engine has not looked for it (yet)."""
        return self._serving.can_serve(needed)

    def why_not_served(self, needed: Unfinished) -> str | None:
        """What is missing here to work on such runs; None: nothing is."""
        return self.code.absent(needed.workflow, needed.target, self.code.graph(needed.digest))

    def ask(self, gate: Gate) -> RunNews | None:
        """Have done what somebody asks of a run; None when the run is not in a status for it."""
        news = self._in_turn(lambda: carry_out(self.store, enact(gate), self.code.known_graph))
        if news is not None and self._runner is not None and self._started:
            if gate.stop:
                self._runner.stop_run(gate.run_id)
            self._runner.handle_news([news])
            if gate.purpose == "cancel":
                self._runner.sweep_in(decode(gate.arguments)["grace"] + 1_000)
        return news

    def go_on(self, gate: Gate, *, accept: bool = False, input: Mapping[str, Any] | None = None) -> RunNews | None:
        """The same for what makes a run go on: in the present version of its class, and in this engine if it has a runner.

        `input` has values that the class asks for and the run has not.
        """
        row = reader.require_run(self.store, gate.run_id)
        if row.status in gate.allowed or (input and not row.status.terminal):
            row = self._in_turn(lambda: self._up_to_date_if_here(gate.run_id, accept=accept, check_input=not input))
        if input:
            filled = self.code.filled_input(row, input)
            gate = gate._replace(arguments=encode({"input": filled}))
            if row.status in (RunStatus.PENDING, RunStatus.RUNNING):  # nobody has noticed yet
                self.ask(ask(row.id, "pause", reason=unfit(self.code.misfits(row))))
            row = row._replace(input=encode(filled))
        facts = self._facts_if_here(row, gate)
        news = self.ask(gate)
        if news is None and gate.purpose != "resume":
            return None  # what was refused must not make this engine work on the run
        row = self._waiting.once_it_goes_on(row.id)  # somebody else may be finishing it, because this engine was late
        if facts is not None and not row.status.terminal:
            facts.since = row.seq if news is None else news.seq
            self._take_up(row, facts)
        return news

    def change_graph(self, row: RunRow, new: Graph, purpose: Literal["import", "freeze"]) -> None:
        """Have a run go over to another graph and keep it."""

        def ask() -> RunNews | None:
            now = reader.require_run(self.store, row.id)  # who was in turn before may have changed it
            current = self.graph_of(now)
            trusted = current.trusted if purpose == "freeze" else self.code.may_trust(current, new)
            news = carry_out(self.store, switch_graph(now, current, new, purpose=purpose, pinned=True, trusted=trusted))
            if news is not None and current.trusted and not trusted:
                log.warning(
                    "run %s now names code that it did not name before; it is worked on where that is registered: jobs=[...]",
                    row.id,
                )
            return news

        news = self._in_turn(ask)
        after = reader.require_run(self.store, row.id)
        if news is None and after.digest == row.digest and self.graph_of(row).follows is not None:
            raise RunConflict(f"run {row.id} is {after.status}: its graph cannot be changed", run_id=row.id)

    def _in_turn(self, ask: Callable[[], Answer]) -> Answer:
        """What is asked of a run whose gate is held waits for that; if the holder has died, until the gate may be taken."""
        until = time.monotonic() + GATE_LEASE / SECOND + 5
        while True:
            try:
                return ask()
            except RunBusy:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.01)

    def _up_to_date_if_here(self, run_id: RunId, *, accept: bool, check_input: bool) -> RunRow:
        """Healed, if the class is here: who only steers runs need not have it."""
        row = reader.require_run(self.store, run_id)
        try:
            return self._versions.up_to_date(row, accept=accept, check_input=check_input)
        except DefinitionError:
            if self._runner is not None:
                raise
            return row

    def _facts_if_here(self, row: RunRow, gate: Gate) -> RunFacts | None:
        """Before anything is asked of the run: when code of it is not here, it stays as it is."""
        if self._runner is None:
            return None
        graph, again = self.graph_of(row), set()
        if gate.purpose == "reattempt":
            first = decode(gate.arguments)["node"]
            again = {first, *below(first, graph)} if first < len(graph.order) else set()
        return self.code.facts(row, again)

    def fork(self, row: RunRow, arguments: bytes, input: dict[str, Any], run_id: str | None) -> RunId:
        """Create a fork of a run, let it share what its origin has done, and work on it if this engine does."""
        chosen = new_run_id() if run_id is None else checked_run_id(run_id)
        given = kept_input(self.code.input_for(row, input)) if input else row.input
        create = Create(
            chosen, row.workflow, row.target, row.digest, given, row.seed, row.on_failure, row.priority, fork=arguments
        )
        made = begin_fork(self.store, create)
        if self._runner is not None:
            try:
                self.adopt(made)
            except DefinitionError:
                if run_id is None:  # its code is not here: nobody knows of it yet, and nobody has asked for it to stay
                    self.ask(ask(made, "cancel", grace=0))
                    carry_out(self.store, delete(made))
                raise
        return made

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

    def _on_news(self, news: Iterable[Any]) -> None:
        self._watch.tell(news)
        self.events.seen(news)

    def _announce(self) -> None:
        if self._runner is not None:
            self._runner.announce()

    def _discover(self) -> float | None:
        """Find unfinished runs whose code is here and serve them, whoever started them; in how many seconds again."""
        if self._runner is None:
            return None
        pairs = self._serving.discover()
        if pairs is not None:
            self._runner.serve(pairs)
        return self._serving.wait()

    def _serve_soon(self) -> None:
        """Elsewhere: a run that is healed may take long."""
        if self._serving.needed:
            self._discovering.wake()

    def _serve(self) -> None:
        with contextlib.suppress(EngineClosed):
            again = self._discover()
            if again is not None:
                self._house.serve_again(again)

    def _find_facts(self, run_id: RunId) -> RunFacts:
        row = reader.require_run(self.store, run_id)
        try:
            facts = self.code.facts(row)
            self._versions.check_input(row)
            return facts
        except Outdated:
            self._serving.leave(run_id)
            raise


def _difference(stored: Graph, given: Graph) -> str:
    """What tells the graph of a run from the one that somebody wants to start under its id, in a few words."""
    new = [spec.name for spec in given if spec.id not in stored.nodes]
    gone = [spec.name for spec in stored if spec.id not in given.nodes]
    parts = [
        f"{len(names)} {what}: {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}"
        for what, names in (("new", new), ("gone", gone))
        if names
    ]
    return "; ".join(parts) or "the same nodes, otherwise connected or with other options"
