"""Starting runs: checks the options, makes the ops, reads their receipts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from ..base.clock import Duration, microseconds
from ..base.codec import MAX_BYTES, encode
from ..base.ids import Digest, RunId, checked_run_id, new_run_id
from ..core.graph import Graph
from ..core.kernel.layout import add_graph
from ..core.model import Create, Created, GetRun, Hint, ListJournal, Op, PutRecord, Receipt, Refusal, Refused, RunRow
from ..core.store import Store, reader
from ..define import Builder, Definition, Workflow
from ..define.document import Document
from ..errors import InputError, RunConflict
from ..history.audit_log import noted
from .bodies.held import RunFacts
from .bodies.transaction import no_transactions
from .checking import check_text, check_whole, checked_limit, checked_tags
from .code.code import Code
from .code.graphs import commit_graph
from .code.versions import told_changes
from .documents import Documents
from .procedures.gates import load
from .procedures.procedure import carry_out
from .recent import Recent
from .worker.runner import LocalRunner
from .worker.sharing import FEW_RUNS

MAX_INPUT = MAX_BYTES
Startable = Workflow | Builder | Document | str
"""What can be started; a text is the name of a stored document, `summarise`, or of one version, `summarise@3`."""


class StartOptions(TypedDict, total=False):
    """What `start` and `run` take beside a workflow and its input."""

    run_id: str | None
    idempotency_key: str | None
    priority: int
    deadline: Duration | None
    seed: int | None
    tags: Mapping[str, str] | None


def create_op(
    definition: Definition,
    run_id: str | None = None,
    idempotency_key: str | None = None,
    priority: int = 0,
    deadline: Duration | None = None,
    seed: int | None = None,
    tags: Mapping[str, str] | None = None,
) -> Create:
    chosen = new_run_id() if run_id is None else checked_run_id(run_id)
    limit = checked_limit("deadline", definition.deadline if deadline is None else deadline, positive=True)
    check_whole("priority", priority, -(2**31), 2**31 - 1, "a whole number of 32 bits")
    if idempotency_key is not None:
        check_text("idempotency_key", idempotency_key)
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(chosen.encode()).digest()[:8], "big")
    else:
        check_whole("seed", seed, 0, 2**64 - 1, "a whole number from 0 to 2**64 - 1")
    return Create(
        chosen,
        definition.workflow,
        definition.target,
        definition.graph.digest,
        kept_input(definition.input),
        seed,
        definition.on_failure,
        priority,
        None if limit is None else microseconds(limit),
        idempotency_key,
        tags=checked_tags(tags if not definition.tags else {**definition.tags, **(tags or {})}),
    )


def kept_input(values: Mapping[str, Any]) -> bytes:
    """The bytes of the input of a run."""
    kept = encode(dict(values))
    if len(kept) > MAX_INPUT:
        raise InputError(
            f"the input has {len(kept)} bytes; at most {MAX_INPUT} can be stored: keep it elsewhere and give where it is"
        )
    return kept


def facts_of(definition: Definition, create: Create) -> RunFacts:
    run_id, workflow, target, *_ = create
    facts = RunFacts(run_id, workflow, target, definition.graph, create.input, create.seed, definition.bodies)
    facts.priority = create.priority
    facts.started_here = True
    return facts


class Starting:
    """Starts runs of one engine."""

    def __init__(
        self,
        store: Store,
        code: Code,
        documents: Documents,
        runner: LocalRunner | None,
        *,
        begin: Callable[[], None],
        announce: Callable[[], None],
        adopt: Callable[[str], RunRow],
    ) -> None:
        self._store, self._code, self._documents, self._runner = store, code, documents, runner
        self._begin, self._announce, self._adopt = begin, announce, adopt
        self.known_graphs: Recent[str, bool] = Recent(10_000)
        """Digests of graphs that are in the store."""

    def definition_of(self, workflow: Startable, input: Mapping[str, Any] | None = None) -> Definition:
        if isinstance(workflow, str):
            workflow = self._documents.find(workflow)
        works = self._runner is not None
        if isinstance(workflow, Document):
            return self._code.definition_of_document(workflow, {} if input is None else input, works=works)
        if input is not None:
            raise InputError(
                "input= is for documents: a class takes its input when it is made, OrderWorkflow(order_id=7)"
            )
        definition = self._code.definition_of(workflow, works=works)
        if works and isinstance(workflow, Builder):
            workflow._check_named_jobs()  # this engine is about to import them anyway
        return definition

    def start(self, definition: Definition, create: Create, *, fresh: bool = True) -> RunId:
        """Start a run of a compiled workflow. `fresh`: no run with this id or key can exist."""
        (run_id,) = self.start_many([(definition, create)], fresh=fresh)
        return run_id

    def start_many(self, items: Sequence[tuple[Definition, Create]], *, fresh: bool = True) -> list[RunId]:
        """Start runs in one commit. `fresh`: none of them can exist already."""
        if self._store.transactions is None:
            unknown = (definition.graph for definition, _ in items if definition.graph.digest not in self.known_graphs)
            for spec in (spec for graph in unknown for spec in graph if spec.transaction):
                raise InputError(no_transactions(spec.name))
        for definition, _ in items:
            self._code.graphs.recall(definition.graph)
        news = [self._code.remember(definition) for definition, _ in items]
        self._begin()
        if any(news):
            self._announce()
        ops: list[Op] = []
        for definition, _ in items:
            ops += self._graph_ops(definition)
        notes = [noted("start", "run", create.run_id, workflow=create.workflow) for _, create in items]
        for (_, create), entries in zip(items, notes, strict=True):
            ops += [create, *entries]
        # A run that exists may have another graph, so nothing of it is claimed before the answer is known.
        small = all(len(definition.graph) <= self._store.limits.nodes for definition, _ in items)
        facts = tuple(facts_of(definition, create) for definition, create in items) if fresh and small else ()
        answers = self._commit(ops, facts)
        receipts = [receipt for op, receipt in zip(ops, answers, strict=True) if type(op) is Create]
        started = [
            self._started(definition, create, receipt, entries, known=bool(facts))
            for (definition, create), receipt, entries in zip(items, receipts, notes, strict=True)
        ]
        if self._runner is None and self._store.needs_hints:
            queues = {lane.queue for definition, _ in items for lane in definition.graph.lanes}
            named = tuple(started) if len(started) <= FEW_RUNS else ()
            self._store.send_hint(Hint(queues=tuple(sorted(queues)), started=named))
        return started

    def _started(
        self, definition: Definition, create: Create, receipt: Receipt, entries: list[PutRecord], *, known: bool
    ) -> RunId:
        if isinstance(receipt, Refused) and receipt.reason in (Refusal.UNKNOWN, Refusal.INCOMPLETE):
            # The graph was collected meanwhile, or somebody else has not stored it whole yet. In one batch with what needs it,
            # nobody can collect it in between.
            graph_ops = add_graph(definition.graph, definition.workflow)
            receipt = self._commit([*graph_ops, create, *entries], ())[-1 - len(entries)]
            known = False  # the scheduler forgot the run when it was refused
        if isinstance(receipt, Refused) and receipt.reason is Refusal.INVALID:
            raise InputError(f"run {create.run_id} of {create.workflow} cannot be stored: {receipt.detail}")
        if isinstance(receipt, Refused):
            raise RunConflict(
                f"run {receipt.detail} exists already, with another workflow or input; choose another run id or key",
                run_id=create.run_id,
            )
        assert isinstance(receipt, Created)
        run_id = receipt.run_id
        if receipt.existed:
            self._check_same_graph(definition, run_id)
            return run_id if self._runner is None else self._adopt(run_id).id
        if receipt.loaded < receipt.total:
            carry_out(self._store, load(run_id, receipt.loaded))
        if self._runner is not None and not known:
            self._runner.know(facts_of(definition, create))
        if self._runner is not None and create.timeout is not None:
            self._runner.sweep_in(create.timeout)
        return run_id

    def _check_same_graph(self, definition: Definition, run_id: RunId) -> None:
        """Refuse a run with the same id but another graph. The graph of a class may have healed since."""
        row, moved = self._store.read([GetRun(run_id), ListJournal(run_id, limit=1, kinds=("healed",))])
        if row is None or (row.target is not None and definition.target is not None):
            return
        first = Digest(moved[0].status.partition(" ")[0]) if moved else row.digest  # before it was edited or frozen
        if first == definition.graph.digest and row.target == definition.target:
            return
        stored = reader.get_graph(self._store, first)  # it may be collected, once no run has it any more
        differing = ""
        if stored is not None:
            theirs, ours = Graph.load(stored), definition.graph
            new = [spec.name for spec in ours if spec.id not in theirs.nodes]
            differing = f" ({told_changes(new=new, gone=[each.name for each in theirs if each.id not in ours.nodes])})"
        raise RunConflict(
            f"run {run_id} exists already, with another graph{differing}; choose another run id or key, or go on with the run "
            f"as it is: engine.adopt({run_id!r})",
            run_id=run_id,
        )

    def _graph_ops(self, definition: Definition) -> list[Op]:
        """The ops that store the graph: none if it is stored. All but the last chunk of a large graph are committed here."""
        graph = definition.graph
        if graph.digest in self.known_graphs:
            return []
        last = commit_graph(self._store, graph, definition.workflow)
        self.known_graphs[graph.digest] = True
        self._code.graphs.add(graph)
        return [last]

    def _commit(self, ops: list[Op], facts: tuple[RunFacts, ...]) -> list[Receipt]:
        try:
            return self._store.commit(ops) if self._runner is None else self._runner.submit(ops, facts)
        except BaseException:
            self.known_graphs.clear()
            raise
