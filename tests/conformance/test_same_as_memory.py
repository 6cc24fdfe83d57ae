"""A store (here SQLite) does exactly what the memory store does, whatever it is asked: random batches, the same to both.

A failure prints the steps that led to it and a blob that repeats them (`@reproduce_failure`).
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import AttemptId, ClaimId, Digest, GateToken, RunId, WorkerId, split_attempt_id
from stepwell.core.graph import Graph
from stepwell.core.kernel.healing import arrange, heal
from stepwell.core.model import (
    AddNodes,
    Append,
    AttemptStatus,
    Claim,
    Claimed,
    CountNodes,
    CountRuns,
    Create,
    Delete,
    DeleteGraph,
    Dismiss,
    Enlist,
    Finish,
    Gate,
    GetAttemptColumns,
    GetGraph,
    GetGraphAges,
    GetNodeColumns,
    GetOutputs,
    GetRecord,
    Lane,
    ListAttempts,
    ListEnded,
    ListJournal,
    ListLines,
    ListMarks,
    ListNodes,
    ListReady,
    ListRecords,
    ListRuns,
    ListStops,
    ListUnfinished,
    ListUnusedGraphs,
    ListWorkers,
    NodeChange,
    NodeRow,
    NodeStatus,
    Op,
    PutRecord,
    Query,
    Receipt,
    Renew,
    Rewrite,
    RunStatus,
    Settle,
    Share,
    Sweep,
    SwitchGraph,
    Wake,
    may_rewrite,
)
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.drawn import (
    CHILDREN,
    FORKS,
    ILLEGAL,
    LANES,
    PAYLOADS,
    PURPOSES,
    REASONS,
    RUBBISH,
    RUNS,
    SETTLED,
    TOKENS,
    UNSTARTED,
    WORKERS,
    graphs,
    number,
)
from tests.conformance.invariants import check_rows, check_tables
from tests.conformance.ops import CHUNK, add_graph, skipped

GOOD = (AttemptStatus.COMPLETED, NodeStatus.COMPLETED)
NAMES = ("summarise", "Ümläut @ 7")
BAD = (AttemptStatus.FAILED, NodeStatus.FAILED)


class SameAsMemory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.open()
        self.batch: list[Op] = []
        self.graphs: list[Graph] = []
        self.claims: list[Claim] = []
        self.attempts: list[AttemptId] = []

    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stepwell-same-"))
        self.other: Any = SqliteStore(self.folder / "same.db", clock=self.clock, synchronous="normal")

    def check_other(self) -> None:
        check_tables(self.other)

    def close(self) -> None:
        self.other.close()
        shutil.rmtree(self.folder)

    def teardown(self) -> None:
        try:
            self.commit()
        finally:
            self.close()

    def ask(self, op: Op, now: bool) -> None:
        """Put an op into the batch, and commit it if it is the last."""
        self.batch.append(op)
        if now or len(self.batch) > 12:
            self.commit()

    def commit(self) -> None:
        batch, self.batch = self.batch, []
        receipts = self.memory.commit(batch)
        found = self.other.commit(batch)
        for op, expected, receipt in zip(batch, receipts, found, strict=True):
            assert receipt == expected, f"{op}\n memory {expected}\n other  {receipt}"
        self.learn(receipts)
        self.compare()

    def learn(self, receipts: list[Receipt]) -> None:
        for receipt in receipts:
            if isinstance(receipt, Claimed):
                self.attempts += [g.attempt for g in receipt.grants if g.attempt not in self.attempts]

    def compare(self) -> None:
        queries = self.everything()
        for query, expected, answer in zip(queries, self.memory.read(queries), self.other.read(queries), strict=True):
            assert answer == expected, f"{query}\n memory {expected}\n other  {answer}"
        check_rows(self.memory)
        self.check_other()

    def everything(self) -> list[Query]:
        queries: list[Query] = [ListRuns(), ListRuns(limit=2), ListWorkers(), ListReady(LANES, RUNS), ListUnfinished()]
        queries += [ListStops(worker) for worker in WORKERS]
        queries += [GetGraph(graph.digest) for graph in self.graphs]
        queries += [ListRuns(origin=run) for run in RUNS[:2]]
        queries += [ListRuns(parent=RUNS[0]), ListRuns(limit=1, parent=RUNS[1]), ListRuns(limit=2, roots=True)]
        queries += [CountRuns(ListRuns(roots=True), "status"), CountRuns(ListRuns(parent=RUNS[0]), "workflow")]
        queries += [ListEnded(0), ListEnded(0, statuses=(RunStatus.COMPLETED,), limit=2), ListEnded(self.clock.now())]
        queries.append(GetGraphAges(tuple(graph.digest for graph in self.graphs)))
        queries += [ListUnusedGraphs(limit=2), ListRuns(prefix=RUNS[0][:-1]), ListRuns(ended_before=self.clock.now())]
        queries += [ListRuns(limit=2, statuses=(RunStatus.FAILED, RunStatus.RUNNING, RunStatus.COMPLETED))]
        of_run: tuple[Callable[[RunId], Query], ...] = (
            ListNodes,
            ListAttempts,
            GetNodeColumns,
            GetAttemptColumns,
            GetOutputs,
            ListJournal,
            ListLines,
            ListMarks,
            CountNodes,
        )
        queries += [ListRecords("token"), ListRecords("trigger", after=NAMES[0], limit=1), GetRecord("token", NAMES[1])]
        queries += [CountRuns(ListRuns(), by) for by in ("status", "workflow", "day")]
        queries += [ListRuns(limit=2, order="ended"), ListRuns(order="duration"), ListRuns(error="KeyError")]
        queries += [ListRuns(1, (self.clock.now(), 2), order="ended"), ListRuns(1, (0, 2), order="duration", text="1")]
        queries += [CountRuns(ListRuns(order="ended", error="OSError"), "status"), ListRuns(text="keyE")]
        queries += [ListRuns(text="R"), CountRuns(ListRuns(text="1"), "status")]
        queries += [GetAttemptColumns(run, limit=2, indexes=(0, 2), details=True) for run in RUNS]
        queries += [ListLines(run, newest_first=True) for run in RUNS]
        present = [run.id for run in reader.all_runs(self.memory)]
        return queries + [query(run) for run in present for query in of_run]

    @rule(
        kind=st.sampled_from(("token", "trigger")),
        key=st.sampled_from(NAMES),
        value=st.sampled_from((None, b"", b"a", b"b")),
        expected=st.sampled_from((None, 0, 1, "there")),
        follows=st.booleans(),
        now=st.booleans(),
    )
    def keep_a_record(self, kind: str, key: str, value: bytes | None, expected: Any, follows: bool, now: bool) -> None:
        if expected == "there":
            there = reader.get_record(self.memory, kind, key)
            expected = 0 if there is None else there.version
        self.ask(PutRecord(kind, key, value, expected, follows), now)

    # Runs come and go

    @initialize(
        first=graphs(),
        second=graphs(),
        policies=st.lists(st.sampled_from(("fail_fast", "finish", "pause")), min_size=1, max_size=4),
        leases=st.lists(st.sampled_from((10, 60, 600)), min_size=1, max_size=3),
    )
    def begin(self, first: Graph, second: Graph, policies: list[Any], leases: list[int]) -> None:
        """Something to work on, and somebody to do it."""
        self.graphs += [first, second]
        self.batch += [*add_graph(first), *add_graph(second)]
        for place, (run, policy) in enumerate(zip(RUNS, policies, strict=False)):
            digest = self.graphs[place % 2].digest
            self.batch.append(Create(run, "orders", None, digest, b"{}", place, policy, priority=place % 3))
            self.batch += [AddNodes(run, start) for start in range(CHUNK, len(self.graphs[place % 2]), CHUNK)]
        for worker, seconds in zip(WORKERS, leases, strict=False):
            self.batch.append(Enlist(worker, seconds * SECOND, b"{}"))
        self.claim(WORKERS[0], tuple((lane, 3) for lane in LANES), RUNS + FORKS + CHILDREN, None, True)

    @rule(
        graph=graphs(), chunk=st.integers(1, 8), order=st.permutations(range(4)), whole=st.booleans(), now=st.booleans()
    )
    def add_a_graph(self, graph: Graph, chunk: int, order: list[int], whole: bool, now: bool) -> None:
        self.graphs.append(graph)
        ops = add_graph(graph) if whole else add_graph(graph, chunk=chunk)
        for place in order if not whole else range(len(ops)):
            self.ask(ops[place % len(ops)], False)
        if now:
            self.commit()

    @precondition(lambda self: self.graphs)
    @rule(
        run=st.sampled_from(RUNS),
        which=number,
        payload=st.sampled_from(("small", "small", "empty", "large")),
        on_failure=st.sampled_from(("fail_fast", "finish", "pause")),
        priority=st.sampled_from((0, 0, 5, -5)),
        timeout=st.sampled_from((None, None, 20 * SECOND, 0)),
        idempotency_key=st.sampled_from((None, None, "key-1", "key-2")),
        now=st.booleans(),
    )
    def create_a_run(self, run: RunId, which: int, now: bool, payload: str, **options: Any) -> None:
        graphs = [
            graph for graph in self.graphs if not graph.removed
        ]  # only a fork may begin without some of its nodes
        digest = graphs[which % len(graphs)].digest if which % 16 else Digest("unknown")
        names = (("orders", None), ("returns", "shop:Returns"))[which % 2]
        self.ask(Create(run, *names, digest, PAYLOADS[payload], 2**64 - 1 - which, **options), now)

    @rule(which=number, limit=st.sampled_from((1, 2, 100)), start=st.integers(0, 8), now=st.booleans())
    def load_or_delete_a_run(self, which: int, limit: int, start: int, now: bool) -> None:
        self.ask(Delete(self.run(which), limit) if which % 4 else AddNodes(self.run(which), start), now)

    @rule(which=number, limit=st.sampled_from((1, 2, 100)), again=st.booleans(), now=st.booleans())
    def delete_a_graph(self, which: int, limit: int, again: bool, now: bool) -> None:
        graph = self.graphs[which % len(self.graphs)]
        self.ask(DeleteGraph(graph.digest, limit), now)
        if again:
            for op in add_graph(graph):
                self.ask(op, now)

    # Workers come and go

    @rule(worker=st.sampled_from(WORKERS), seconds=st.sampled_from((2, 30, 600)), leave=number, now=st.booleans())
    def enlist_or_dismiss(self, worker: WorkerId, seconds: int, leave: int, now: bool) -> None:
        self.ask(Enlist(worker, seconds * SECOND, b"%d" % seconds) if leave % 4 else Dismiss(worker), now)

    @rule(worker=st.sampled_from(WORKERS), held=st.none() | st.sets(number, max_size=6), now=st.booleans())
    def renew(self, worker: WorkerId, held: set[int] | None, now: bool) -> None:
        names = None if held is None else tuple(self.attempt(which) for which in sorted(held))
        self.ask(Renew(worker, 30 * SECOND, names), now)

    @rule(limit=st.sampled_from((1_000, 1_000, 1, 0)), now=st.booleans())
    def sweep(self, limit: int, now: bool) -> None:
        self.ask(Sweep(limit), now)

    @rule(seconds=st.sampled_from((0.000_001, 1, 3, 12)), sweep=st.booleans())
    def time_passes(self, seconds: float, sweep: bool) -> None:
        self.clock.advance(seconds)
        if sweep:
            self.ask(Sweep(), True)

    @rule(
        worker=st.sampled_from(WORKERS), times=st.sampled_from((1, 1, 2, 5)), lanes=st.sampled_from((LANES, LANES[:1]))
    )
    def lose_workers(self, worker: WorkerId, times: int, lanes: tuple[Lane, ...]) -> None:
        """Short lives: a worker enlists, takes all it can, and is gone."""
        for _ in range(times):
            self.ask(Enlist(worker, SECOND, b"{}"), False)
            self.claim(worker, tuple((lane, 9) for lane in lanes), RUNS + FORKS + CHILDREN, None, True)
            self.clock.advance(1)
            self.ask(Sweep(), True)

    # Work is done

    @rule(
        worker=st.sampled_from(WORKERS),
        lanes=st.lists(st.tuples(st.sampled_from(LANES), st.integers(-1, 6)), max_size=4),
        runs=st.sets(st.sampled_from(RUNS)),
        serves=st.none() | st.sets(number, max_size=3),
        now=st.booleans(),
    )
    def claim_some(self, worker: WorkerId, lanes: list[Any], runs: Any, serves: Any, now: bool) -> None:
        pairs = None
        if serves is not None and self.graphs:
            pairs = tuple(
                ("orders" if which % 2 else "returns", self.graphs[which % len(self.graphs)].digest) for which in serves
            )
        self.claim(worker, tuple(lanes), tuple(sorted(runs)), pairs, now)

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 8), scoped=st.booleans(), now=st.booleans())
    def claim_whatever_is_ready(self, worker: WorkerId, limit: int, scoped: bool, now: bool) -> None:
        pairs = tuple((name, of.digest) for name in ("orders", "returns") for of in self.graphs)
        self.claim(
            worker, tuple((lane, limit) for lane in LANES), RUNS + FORKS + CHILDREN, None if scoped else pairs, now
        )

    def claim(self, worker: WorkerId, lanes: Any, runs: Any, serves: Any, now: bool) -> None:
        op = Claim(ClaimId(f"{len(self.claims):05}"), worker, lanes, runs, serves)
        self.claims.append(op)
        self.ask(op, now)

    @precondition(lambda self: self.claims)
    @rule(which=number, now=st.booleans())
    def claim_again(self, which: int, now: bool) -> None:
        self.ask(self.claims[which % len(self.claims)], now)

    @rule(
        take=st.lists(number, min_size=1, max_size=3),
        seconds=st.sampled_from((1, 3)),
        wait=st.booleans(),
        postponed=st.booleans(),
    )
    def retry_later(self, take: list[int], seconds: int, wait: bool, postponed: bool) -> None:
        for which in take:
            op = Settle(
                self.attempt(which),
                AttemptStatus.FAILED,
                NodeStatus.WAITING,
                error=b"{}",
                delay=seconds * SECOND,
                postponed=postponed,
            )
            self.ask(op, False)
        self.commit()
        if wait:
            self.time_passes(seconds, True)

    @rule(
        which=number,
        how=st.sampled_from((*SETTLED, *ILLEGAL)),
        payloads=st.tuples(*[st.sampled_from(sorted(PAYLOADS))] * 3),
        delay=st.sampled_from((None, SECOND, 10 * SECOND)),
        lines=st.lists(st.sampled_from(sorted(PAYLOADS)), max_size=2),
        postponed=st.booleans(),
        reason=st.sampled_from(REASONS),
        wakes=st.sampled_from((0, 0, 1, 2)),
        now=st.booleans(),
    )
    def settle(
        self,
        which: int,
        how: Any,
        payloads: Any,
        delay: int | None,
        lines: list[str],
        postponed: bool,
        reason: str | None,
        wakes: int,
        now: bool,
    ) -> None:
        recorded = tuple(("effect", PAYLOADS[name] or b"") for name in lines)
        given = (PAYLOADS[name] for name in payloads)
        self.ask(Settle(self.attempt(which), *how, *given, delay, postponed, reason, wakes, lines=recorded), now)

    @precondition(lambda self: self.graphs)
    @rule(
        which=number,
        new=number,
        of=number,
        wakes=st.sampled_from((0, 0, 0, 1)),
        recorded=st.booleans(),
        other=st.booleans(),
        now=st.booleans(),
    )
    def hand_over(self, which: int, new: int, of: int, wakes: int, recorded: bool, other: bool, now: bool) -> None:
        """A node is performed by a run from now on, mostly by a new one, with other ops in the same batch."""
        attempt = self.attempt(which)
        found = self.memory._state.attempt(*split_attempt_id(attempt))
        parent, index = (RUNS[0], 0) if found is None else (found.run.id, found.index)
        graphs = [graph for graph in self.graphs if not graph.removed]
        digest = graphs[of % len(graphs)].digest if of % 16 else Digest("unknown")
        child = Create(
            CHILDREN[new % len(CHILDREN)], "orders", None, digest, b"{}", 7, parent=parent, parent_node=index, depth=1
        )
        lines = (("effect", b"{}"),) if recorded else ()
        if other:
            self.ask(Settle(self.attempt(of), *GOOD, b"null"), False)
        settlement = Settle(
            attempt, AttemptStatus.PARKED, NodeStatus.WAITING, b"{}", wakes=wakes, child=child, lines=lines
        )
        self.ask(settlement, False)
        if other:
            self.claim(WORKERS[0], tuple((lane, 3) for lane in LANES), RUNS + FORKS + CHILDREN, None, False)
        if now:
            self.commit()

    @rule(which=number, index=st.integers(-1, 6), ended=st.none() | number, now=st.booleans())
    def wake(self, which: int, index: int, ended: int | None, now: bool) -> None:
        """Mostly the node that a child run performs, when that has ended; or any."""
        runs = [run for run in reader.all_runs(self.memory) if run.parent is not None]
        if runs and which % 3:
            child = runs[which % len(runs)]
            assert child.parent is not None
            self.ask(Wake(child.parent, child.parent_node or 0, child.id), now)
        else:
            self.ask(Wake(self.run(which), index, None if ended is None else self.run(ended)), now)

    @rule(take=st.lists(number, min_size=1, max_size=8), well=st.booleans(), then_claim=st.booleans())
    def settle_many(self, take: list[int], well: bool, then_claim: bool) -> None:
        """What a busy worker does: many settlements and a claim in one batch, most of them good."""
        for which in dict.fromkeys(take):
            how = GOOD if well or which % 4 else BAD
            recorded = (("checkpoint", b'"here"'),) if which % 5 == 0 else ()
            payloads = (b"%d" % (which % 3), b'{"type":"E%d"}' % (which % 3))
            settlement = Settle(self.attempt(which), *how, *payloads, lines=recorded)
            self.ask(skipped(settlement) if which % 7 == 0 else settlement, False)
        if then_claim:
            self.claim(WORKERS[0], ((LANES[0], 3), (LANES[2], 4)), RUNS, None, False)
        self.commit()

    @rule(
        which=number,
        worker=st.sampled_from(WORKERS),
        links=st.integers(1, 4),
        lanes=st.sampled_from((LANES, LANES[:1])),
        again=st.booleans(),
    )
    def follow_a_chain(self, which: int, worker: WorkerId, links: int, lanes: Any, again: bool) -> None:
        """What a chain does with every node: one settlement, and one claim of the same run, in one batch."""
        self.ask(Enlist(worker, 600 * SECOND, b"{}"), True)
        attempt = self.attempt(which)
        for _ in range(links):
            found = self.memory._state.attempt(*split_attempt_id(attempt))
            run = RUNS[0] if found is None else found.run.id
            settlement = Settle(attempt, *GOOD, b"null")
            known, self.batch = len(self.attempts), [skipped(settlement) if which % 3 == 0 else settlement]
            self.claim(worker, tuple((lane, 1 + which % 2) for lane in lanes), (run,), None, False)
            batch = list(self.batch)
            self.commit()
            if again:
                self.batch = batch
                self.commit()
            if len(self.attempts) == known:
                return
            attempt = self.attempts[-1]

    @rule(which=number, index=st.integers(-1, 3), data=st.sampled_from(sorted(PAYLOADS)), now=st.booleans())
    def append(self, which: int, index: int, data: str, now: bool) -> None:
        kind = "effect" if which % 2 else "log"
        self.ask(Append(self.attempt(which), index, kind, PAYLOADS[data] or b""), now)

    def attempt(self, which: int) -> AttemptId:
        """Mostly an attempt that runs, sometimes an old one, now and then rubbish."""
        if not self.attempts or which % 17 == 0:
            return AttemptId(RUBBISH[which % len(RUBBISH)])
        running = [attempt for attempt in self.attempts if self.is_running(attempt)] if which % 5 else []
        known = running or self.attempts
        return known[which % len(known)]

    def is_running(self, attempt: AttemptId) -> bool:
        found = self.memory._state.attempt(*split_attempt_id(attempt))
        return found is not None and found.status is AttemptStatus.RUNNING

    def run(self, which: int) -> RunId:
        """Mostly a run that is there."""
        there = [run.id for run in reader.all_runs(self.memory)] if which % 11 else []
        known = sorted(there) or RUNS
        return known[which % len(known)]

    # Gates are held, rows rewritten

    @rule(
        which=number,
        token=st.sampled_from(TOKENS),
        purpose=st.sampled_from(PURPOSES),
        seconds=st.sampled_from((0, 5, 60)),
        stop=st.booleans(),
        allowed=st.sets(st.sampled_from(RunStatus), max_size=2),
        now=st.booleans(),
    )
    def hold_a_gate(
        self, which: int, token: GateToken, purpose: str, seconds: int, stop: bool, allowed: Any, now: bool
    ) -> None:
        statuses = tuple(sorted(allowed)) if len(allowed) > 1 else ()
        self.ask(Gate(self.run(which), token, purpose, purpose.encode(), seconds * SECOND, stop, statuses), now)

    @rule(
        which=number,
        token=st.sampled_from(TOKENS),
        mode=st.sampled_from(("failed", "cancel", "retry", "pause", "resume")),
        chunk=st.sampled_from((None, None, 0, 1, 3)),
        now=st.booleans(),
    )
    def rewrite_as_the_kernel_does(self, which: int, token: GateToken, mode: str, chunk: int | None, now: bool) -> None:
        """Computed from the rows as they are now; the batch, or the clock, may have changed them before it is applied."""
        run = self.run(which)
        if which % 5:
            self.ask(Gate(run, token, mode, b"{}", 60 * SECOND, mode in ("failed", "cancel")), False)
        rows, end = [], Finish(RunStatus.RUNNING, open_gate=True, tolerate=bool(which % 3))
        if mode in ("failed", "cancel"):
            rows = [change(row, NodeStatus.CANCELLED, mode) for row in self.rows(run) if row.status in UNSTARTED]
            status = RunStatus.FAILED if mode == "failed" else RunStatus.CANCELLING
            end = Finish(status, open_gate=False, reason="deadline" if chunk else None, grace=3 * SECOND)
        elif mode == "retry":
            ended = {NodeStatus.FAILED, NodeStatus.CANCELLED, NodeStatus.INTERRUPTED, NodeStatus.UPSTREAM_FAILED}
            rows = [change(row, NodeStatus.PENDING, None, True) for row in self.rows(run) if row.status in ended]
        elif mode == "pause":
            end = Finish(RunStatus.PAUSED, open_gate=False)
        if chunk is None:
            self.ask(Rewrite(run, token, tuple(rows), end), now)
        else:
            self.ask(Rewrite(run, token, tuple(rows[:chunk])), now)

    @precondition(lambda self: self.graphs)
    @rule(which=number, new=number, token=st.sampled_from(TOKENS), part=st.sampled_from((None, None, 0, 1)))
    def switch_graph(self, which: int, new: int, token: GateToken, part: int | None) -> None:
        """The run gets another graph, whole, or only as far as somebody comes who then dies."""
        run = reader.get_run(self.memory, self.run(which))
        if run is None:
            return
        current = Graph.load(reader.get_graph(self.memory, run.digest) or b"")
        graph = arrange(current, self.graphs[new % len(self.graphs)])
        self.graphs.append(graph)
        for op in add_graph(graph):
            self.ask(op, False)
        self.ask(Gate(run.id, token, "heal", b"{}", 60 * SECOND), False)
        start = len(current.order) + (new % 7 == 0)
        self.ask(SwitchGraph(run.id, token, graph.digest if new % 13 else Digest("unknown"), start), True)
        if part is None:
            self.finish_switching(run.id, token, current, graph)

    def finish_switching(self, run_id: RunId, token: GateToken, before: Graph, graph: Graph) -> None:
        run, rows = reader.get_run(self.memory, run_id), self.rows(run_id)
        if run is None:  # deleted by what stood before it in the batch
            return
        if run.digest == graph.digest and len(rows) == len(graph.order):
            plan = heal(run, rows, before, graph)
            self.ask(Rewrite(run.id, token, tuple(plan.changes), plan.finish), True)

    @rule(
        which=number,
        fork=st.sampled_from((*FORKS, RUNS[0])),
        token=st.sampled_from(TOKENS),
        take=st.lists(st.tuples(number, st.integers(0, 3)), max_size=8),
        again=number,
        finish=st.booleans(),
        now=st.booleans(),
    )
    def fork_a_run(
        self, which: int, fork: RunId, token: GateToken, take: list[Any], again: int, finish: bool, now: bool
    ) -> None:
        """A run is made from another, shares some of what that one has done, in one go or two, and begins, or does not."""
        if which % 7:
            self.work_to_the_end(WORKERS[which % len(WORKERS)], which % 3)
        there = [run for run in reader.all_runs(self.memory) if self.memory.read([GetOutputs(run.id)])[0]]
        origin = there[which % len(there)] if there and which % 9 else reader.get_run(self.memory, self.run(which))
        if origin is None:
            return
        place = b'{"origin":"%s"}' % origin.id.encode()
        self.ask(Create(fork, origin.workflow, None, origin.digest, origin.input, which, fork=place), False)
        self.ask(Gate(fork, token, "fork", place, 60 * SECOND, resume=again % 5 > 0), False)
        self.commit()
        ended = [
            (attempt.index, attempt.number)
            for attempt in reader.list_attempts(self.memory, origin.id)
            if attempt.status in (AttemptStatus.COMPLETED, AttemptStatus.SUPERSEDED)
        ]
        known = ended if ended and again % 4 else [(place, 1) for place in range(-1, 6)]
        rows = [known[place % len(known)] if odd else (place % 8 - 1, odd) for place, odd in take]
        for part in (rows, rows[again % 3 :]):
            claim = ClaimId(f"{len(self.claims):05}")
            self.claims.append(Claim(claim, WORKERS[0], ()))
            self.ask(Share(fork, token, origin.id if again % 11 else RunId("nobody"), claim, tuple(part)), now)
        if finish:
            self.ask(Rewrite(fork, token, (), Finish(RunStatus.PENDING, open_gate=True)), True)

    @rule(which=number, run_on=st.booleans())
    def finish_what_is_held(self, which: int, run_on: bool) -> None:
        """Whatever a gate is held or shut for: take it when its holder is late, and go on or cancel."""
        run = self.run(which)
        self.clock.advance(6)
        self.ask(Gate(run, TOKENS[0], "cleanup", b"", 60 * SECOND, not run_on), True)
        self.rewrite_as_the_kernel_does(which, TOKENS[0], "retry" if run_on else "cancel", None, True)

    @rule(
        which=number,
        token=st.sampled_from(TOKENS),
        moves=st.lists(st.tuples(number, number, st.booleans()), max_size=5),
        end=st.none() | st.tuples(st.sampled_from(RunStatus), st.integers(0, 9)),
        stale=number,
    )
    def rewrite_anything(self, which: int, token: GateToken, moves: Any, end: Any, stale: int) -> None:
        """Any legal change of rows as they are, and some of rows as they are not, or are not there."""
        run = self.run(which)
        self.ask(Gate(run, token, "heal", b"", 60 * SECOND), True)
        rows = self.rows(run)
        changes: list[NodeChange] = []
        for place, choice, fresh in moves:
            if place % 13 == 0 or not rows:
                changes.append(NodeChange(place - 5, NodeStatus.PENDING, 0, NodeStatus.CANCELLED, "rubbish", fresh))
                continue
            row = rows[place % len(rows)]
            legal = [s for s in NodeStatus if may_rewrite(row.status, s) and not self.takes_back(run, row, s)]
            if legal or place % 5 == 0:
                status = legal[choice % len(legal)] if legal and choice % 6 else row.status
                changes.append(change(row, status, f"because {place % 3}", fresh, choice % 3 == 0))
        if stale % 8 == 0 and changes:
            changes[0] = changes[0]._replace(was_attempt=changes[0].was_attempt + 1)
        finish = None
        if end is not None:
            status, odd = end
            finish = Finish(
                status, (status in (RunStatus.PENDING, RunStatus.RUNNING)) == (odd != 0), "reason", odd * SECOND
            )
        self.ask(Rewrite(run, token, tuple(changes), finish), True)

    def takes_back(self, run: RunId, row: NodeRow, status: NodeStatus) -> bool:
        """The kernel never takes back what a running or waiting child stands on."""
        if row.status not in (NodeStatus.COMPLETED, NodeStatus.SKIPPED):
            return False
        graph = Graph.load(reader.get_graph(self.memory, reader.require_run(self.memory, run).digest) or b"")
        below = {other.status for other in self.rows(run) if other.index in graph.children[row.index]}
        return status is NodeStatus.PENDING and not {NodeStatus.RUNNING, NodeStatus.WAITING}.isdisjoint(below)

    def rows(self, run: RunId) -> list[NodeRow]:
        return reader.all_nodes(self.memory, run)

    # The rest

    @rule(times=st.integers(1, 2))
    def commit_and_repeat(self, times: int) -> None:
        """The answer was lost: the same batch again."""
        batch = list(self.batch)
        self.commit()
        for _ in range(times):
            self.batch = list(batch)
            self.commit()

    @precondition(lambda self: any(self.memory.read([ListReady(LANES, RUNS)])[0]))
    @rule(worker=st.sampled_from(WORKERS), fail=st.sampled_from((0, 0, 0, 3)))
    def work_to_the_end(self, worker: WorkerId, fail: int) -> None:
        self.ask(Enlist(worker, 600 * SECOND, b"{}"), True)
        for _ in range(12):
            before = len(self.attempts)
            self.claim(worker, tuple((lane, 100) for lane in LANES), RUNS + FORKS + CHILDREN, None, True)
            fresh = self.attempts[before:]
            if not fresh:
                return
            for place, attempt in enumerate(fresh):
                self.batch.append(Settle(attempt, *(BAD if fail and place % fail == fail - 1 else GOOD), b"null"))
            self.commit()


def change(row: NodeRow, status: NodeStatus, reason: str | None, fresh: bool = False, anew: bool = False) -> NodeChange:
    return NodeChange(row.index, row.status, row.attempt, status, reason, fresh, anew)


SameAsMemory.TestCase.settings = settings(
    max_examples=50,
    stateful_step_count=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestSameAsMemory = pytest.mark.timeout(900)(SameAsMemory.TestCase)
