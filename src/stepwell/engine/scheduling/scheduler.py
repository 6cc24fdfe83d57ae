"""The runner's decisions: what to commit next, what to claim with it, what the answers to a commit mean.

A plain object driven by events, without threads, clocks or stores. The caller passes the time and carries out what it
returns, so a simulator can drive exactly this code.

Group commit: one commit is in flight at a time. All that arrives meanwhile goes into the next one, together with the claims
that follow from it. So a chain costs one transaction per node, and a wide graph few in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...base.ids import AttemptId, ClaimId, RunId, WorkerId
from ...core.kernel.settling import after_parents
from ...core.model import (
    ENDED,
    AttemptStatus,
    Claim,
    Create,
    GateState,
    Lane,
    ListReady,
    NodeStatus,
    Op,
    Settle,
    StoreLimits,
)
from ...core.model.receipts import Claimed, Created, Grant, HeldGate, Receipt, Refusal, Refused, RunNews, Settled
from ...errors import NotStored
from ..bodies.held import Held, RunFacts
from ..bodies.kinds import Limits
from .batches import FIRST_PAUSE, ClaimScope, CommitBatch, CommitResult, Submission
from .claims import Claims
from .metrics import Counters, EngineMetrics, snapshot
from .outbox import Outbox, Rejected, in_words
from .pressure import Pressure
from .ready import ReadyPools, WaitingWork
from .slots import pool_of


class Scheduler:
    """Holds what this worker has claimed and decides what to do next."""

    def __init__(
        self,
        worker: WorkerId,
        limits: Limits,
        new_claim_id: Callable[[], ClaimId],
        queues: frozenset[str] | None = None,
        takes: StoreLimits | None = None,
    ) -> None:
        self.worker = worker
        takes = takes or StoreLimits()
        self.limits = limits
        self.pressure = Pressure()
        self.claims = Claims(worker, new_claim_id, limits, ReadyPools(queues, self.pressure), takes)
        self._ready, self._slots, self._suspects = self.claims.ready, self.claims.slots, self.claims.suspects
        self.facts = self.claims.facts
        self.held: dict[AttemptId, Held] = {}
        self.closing = False
        self.leased = True
        """False after a claim was refused because the lease had expired, until the lease is held again."""
        self.stalled = False
        """Too many bodies have overrun their time limits: claim nothing until some of them end."""
        self.resting = False
        """Claim nothing, because whoever drives this process has not asked it to work."""
        self.counters = Counters()
        self.waiting = WaitingWork(self.facts, self._ready, self._slots, self.pressure)
        self._outbox = Outbox(takes)
        self.submit, self.lines = self._outbox.submissions.append, self._outbox.lines
        self._isolation = self._outbox.isolation
        self._in_flight: CommitBatch | None = None
        self._known = 0
        """How many runs this worker has known so far; orders runs of the same priority."""

    # Events

    def finished(self, held: Held, settle: Settle, now: int) -> None:
        """A body has ended: its settlement goes into the next commit."""
        held.over = True
        self._outbox.settlements.append((held, settle))
        if settle.status is not AttemptStatus.RELEASED or settle.node is NodeStatus.SKIPPED:  # else it goes back
            self._slots.finished(held.kind, now, held.claimed_at)
        self._leave(held)

    def settle_again(self, held: Held, settle: Settle) -> None:
        """The store has refused the settlement of an attempt that still stands."""
        held.facts.held += 1
        self._outbox.settlements.append((held, settle))

    def settled_apart(self, held: Held, settle: Settle, now: int) -> CommitResult:
        """A body has ended, and its settlement was committed with its own transaction."""
        assert held.answer is not None
        run, late = held.answer.run, held.over
        if not late:  # else it also timed out, and the store will refuse that settlement
            held.over = True
            self._slots.finished(held.kind, now, held.claimed_at)
            self._leave(held)
            held.facts.held -= 1
            self.counters.settled += 1
            self.counters.step_time += now - held.claimed_at
        if run.run_id in self.facts:
            self.facts[run.run_id].active = run.active
            self._add_ready(run.run_id)
        result = CommitResult()
        result.news[run.run_id] = run
        if not late:
            result.settled.append((held, settle, True))
            if settle.delay is not None:
                result.delays.append(settle.delay)
        return result

    @property
    def serves(self) -> dict[tuple[str, str], frozenset[Lane]]:
        """The (workflow, digest) pairs this worker works for, with the lanes of their graphs."""
        return self.claims.serves

    @serves.setter
    def serves(self, pairs: dict[tuple[str, str], frozenset[Lane]]) -> None:
        self.claims.serves = pairs

    def know(self, facts: RunFacts) -> None:
        """Start to work on this run."""
        self._remember(facts)
        self.look_for_suspects()

    def mark_ready(self, runs: Iterable[RunId]) -> None:
        """Note that these runs may have READY nodes."""
        for run in runs:
            if run in self.facts:
                self._add_ready(run)

    def look_around(self, *, suspects: bool = True) -> None:
        """Look for READY nodes in all runs of the served workflows. `suspects`: also for nodes that may have killed workers."""
        self._ready.serve(self.serves)
        if self.serves and suspects:
            self.look_for_suspects()

    def look_again(self) -> None:
        """Claim again from runs that other workers had locked a moment ago."""
        contended, self._ready.contended = self._ready.contended, []
        for asked in contended:
            self.mark_ready(asked.runs)
            if asked.suspect:
                self.look_for_suspects()
        if any(asked.window is not None for asked in contended):
            self._ready.serve(self.serves)

    def look_for_suspects(self) -> None:
        """Look for nodes that may have killed several workers, as soon as nothing else runs here."""
        self._suspects.look()

    @property
    def would_drain(self) -> bool:
        """Whether it would look for suspects if it held nothing else."""
        suspects = self._suspects
        return bool(suspects.scopes and self.held) and not (suspects.draining() or suspects.held)

    def ready_query(self, runs: tuple[RunId, ...]) -> ListReady:
        """The query that finds out which of these runs have READY nodes for this worker."""
        return self.claims.ask_for_ready(runs)

    def suspects(self) -> ListReady:
        """The query that finds out whether there are suspects."""
        return self.claims.ask_for_suspects()

    def drain(self, now: int) -> None:
        """There is a suspect: claim nothing else until it is claimed, or it has waited long enough."""
        self._suspects.drain(now)

    def apply_news(self, news: Iterable[RunNews]) -> list[HeldGate]:
        """Update what is known of these runs and forget those that ended. Returns the gates that closed on a failure, or
        on the end of a child run."""
        closed = []
        for run in news:
            if run.gate is GateState.HELD and run.purpose in ("failed", ENDED):
                closed.append(HeldGate(run.run_id, run.purpose, b""))
            facts = self.facts.get(run.run_id)
            if facts is not None:
                facts.active = run.active
                if run.status.terminal and run.seq >= facts.since:
                    self.forget(run.run_id)
        return closed

    def forget(self, run: RunId) -> None:
        self.facts.pop(run, None)
        self._ready.forget(run)

    def holding(self) -> tuple[AttemptId, ...] | None:
        """All attempts under this worker's lease, for its renewal. None while a claim is under way, which may add some."""
        if any(batch.claims for batch in (self._in_flight, *self._outbox.again) if batch is not None):
            return None
        return (*self.held, *(held.attempt for held in self.settling), *self._outbox.attempts())

    def count(self, kind: str) -> int:
        """How many attempts with this kind of body are held."""
        return self._slots.counts[kind]

    @property
    def settling(self) -> Sequence[Held]:
        """The attempts that the batch in flight settles."""
        return () if self._in_flight is None else self._in_flight.settling

    @property
    def idle(self) -> bool:
        return not (self.held or self._in_flight) and self._outbox.empty

    @property
    def full(self) -> bool:
        """Whether all slots for some kind of body are taken."""
        return bool(self._slots.full)

    def metrics(self, now: int, *, renewals: int, leases_lost: int) -> EngineMetrics:
        blocked_runs = self.waiting.blocked_runs()
        counters, slots, pressure = self.counters, self._slots, self.pressure
        return snapshot(counters, slots, pressure, blocked_runs, now, renewals=renewals, leases_lost=leases_lost)

    # Decisions

    def next_batch(self, now: int) -> CommitBatch | None:
        """The next batch to commit. None while one is in flight, or if there is nothing to commit."""
        if self._in_flight is not None:
            return None
        suspects = self._suspects
        if suspects.draining_since is not None or suspects.waited:
            suspects.update(now)
        again = self._outbox.again
        batch = again.popleft() if again else self._isolated(now) if self._isolation.apart else None
        if batch is None and not self._nothing_to_commit():
            batch = self._compose(now)
        if batch is None or not batch.ops:
            self.waiting.update(now)
            return None
        batch.since = now
        self._in_flight = batch
        self._ready.sent()
        return batch

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to commit, no back-pressure to update and no claim to repeat."""
        if self._slots.full or self.pressure.active or self._outbox.again or self._ready.contended:
            return False
        return self._nothing_to_commit()

    def _nothing_to_commit(self) -> bool:
        """Found out without composing a batch, because every commit is followed by this question."""
        return not (self._outbox.due or self.claims.are_due(busy=bool(self.held)))

    def committed(self, batch: CommitBatch, receipts: Sequence[Receipt], now: int) -> CommitResult:
        """Apply the answers to the batch in flight."""
        assert batch is self._in_flight, "only the batch in flight can be answered"
        self._in_flight = None
        self._ready.answered()
        self.counters.committed(batch, now)
        self.claims.committed(now - batch.since)
        result = CommitResult()
        at = 0
        for submission in batch.submissions:
            answers = list(receipts[at : at + len(submission.ops)])
            at += len(submission.ops)
            self._answer(submission, answers, result)
        at += batch.lines  # one is refused only if its attempt is fenced, as its settlement will be too
        for held in batch.settling:
            receipt, op = receipts[at], batch.ops[at]
            at += 1
            assert isinstance(op, Settle)
            held.facts.held -= 1
            if recorded := isinstance(receipt, Settled):
                result.news[receipt.run.run_id] = receipt.run
            if op.status is not AttemptStatus.COMPLETED or not recorded:
                self.counters.unusual(held, op, now, recorded=recorded)
                if recorded and op.delay is not None:
                    result.delays.append(op.delay)
            else:
                self.counters.step_time += now - held.claimed_at
            result.settled.append((held, op, recorded))
        assert len(receipts) == at + len(batch.claims), "each op has one receipt"
        for asked in batch.claims:
            self._take(asked, receipts[at], result, now)
            at += 1
        if self.closing:
            for held in result.begin:
                self.finished(held, Settle(held.attempt, AttemptStatus.RELEASED, NodeStatus.READY), now)
            result.begin.clear()
        for run in result.news.values():
            facts = self.facts.get(run.run_id)
            if facts is not None:
                facts.active = run.active
        self.waiting.update(now)
        return result

    def failed(self, batch: CommitBatch, error: BaseException) -> list[Submission]:
        """The store is in trouble: the batch is sent again without its submissions. All submissions fail and are returned."""
        assert batch is self._in_flight, "only the batch in flight can fail"
        self._in_flight = None
        self._ready.answered()
        self.counters.commits_failed += 1
        told = self._outbox.failed(batch)
        for submission in told:
            self._tell(submission, error)
        return told

    def rejected(self, batch: CommitBatch, error: Exception, now: int) -> tuple[list[Submission], Rejected | None]:
        """The store cannot apply one op of the batch. Find that op, and let the others go on.

        The batch is sent again in halves until the op is alone. Then returns the submissions to answer, and what to report.
        """
        assert batch is self._in_flight, "only the batch in flight can fail"
        self._in_flight = None
        self._ready.answered()
        self.counters.commits_failed += 1
        if self._outbox.halve(batch):
            return [], None
        if batch.submissions:
            (submission,) = batch.submissions
            self._tell(submission, NotStored(f"the store cannot apply this: {in_words(error)}"))
            return [submission], Rejected(
                f"a submission cannot be stored, and its caller gets the error: {in_words(error)}"
            )
        (op,) = batch.ops
        if isinstance(op, Settle):
            (held,) = batch.settling
            return [], self._isolation.not_settled(held, op, batch.apart, error, now)
        if isinstance(op, Claim):
            (asked,) = batch.claims
            for pool in self._ready.by_pool if op.runs else dict(asked.pools):
                self._ready.drained(pool, asked)
            return [], self._isolation.not_claimed(op, batch.apart, error, now, suspect=asked.suspect)
        return [], Rejected(
            f"a line of attempt {getattr(op, 'attempt', '?')} cannot be stored and is dropped: {in_words(error)}"
        )

    def _tell(self, submission: Submission, error: BaseException) -> None:
        submission.error = error
        for facts in submission.facts:
            self.forget(facts.run_id)

    def _isolated(self, now: int) -> CommitBatch | None:
        """The next isolated op that is due for a retry, as a batch."""
        apart = self._isolation.take_due(now)
        if apart is None:
            return None
        if apart.held is not None:
            assert apart.settle is not None
            return CommitBatch([apart.stand_in or apart.settle], [], [apart.held], apart=apart)
        apart.runs = tuple(run for run in apart.runs if run in self.facts)
        apart.serves = tuple(pair for pair in apart.serves if pair in self.serves)
        if self.closing or not (apart.runs or apart.serves):
            return None
        batch = CommitBatch([], [], [], apart=apart)
        if self._may_claim:
            self.claims.add_apart(batch, apart, now)
            if batch.ops:
                # If the store can apply the claim again, nodes that it does not grant are claimed as usual.
                self.mark_ready(apart.runs)
        if batch.ops:
            return batch
        apart.due = now + FIRST_PAUSE  # no slot is free
        self._isolation.add(apart)
        return None

    def _compose(self, now: int) -> CommitBatch:
        batch = CommitBatch([], [], [])
        may_claim = self._may_claim
        if may_claim and self._ready.windows:
            self.claims.add_served_first(batch, now)
            if batch.ops:
                return batch
        self._outbox.fill(batch)
        for submission in batch.submissions:
            for facts in submission.facts:
                self._remember(facts)
        self.mark_ready({held.facts.run_id for held in batch.settling})
        if may_claim:
            self.claims.add(batch, now, busy=bool(self.held))
        return batch

    @property
    def _may_claim(self) -> bool:
        return self.leased and not (self.closing or self.stalled or self.resting or self._suspects.held)

    def withdraw(self, kind: str) -> None:
        """Claim nothing with this kind of body any more."""
        self._ready.withdraw(kind)
        self.look_around()

    def _remember(self, facts: RunFacts) -> None:
        """Start to work on this run, which may have READY nodes."""
        known = self.facts.get(facts.run_id)
        self._known += known is None
        facts.place = (-facts.priority, self._known, facts.run_id) if known is None else known.place
        self.facts[facts.run_id] = facts
        if self.limits.node_seconds is not None:
            facts.limit_nodes(self.limits.node_seconds)
        self._add_ready(facts.run_id)

    def _add_ready(self, run: RunId) -> None:
        """Note that a known run may have READY nodes in any of its pools, unless its claims are isolated."""
        if self._outbox.claims_run(run):
            return
        self._ready.add(self.facts[run])

    def close(self, now: int) -> None:
        """Claim nothing more."""
        self.closing = True
        self.waiting.close(now)

    def _answer(self, submission: Submission, receipts: list[Receipt], result: CommitResult) -> None:
        submission.receipts = receipts
        result.answered.append(submission)
        creates = [op for op in submission.ops if isinstance(op, Create)]
        answers = [r for op, r in zip(submission.ops, receipts, strict=True) if isinstance(op, Create)]
        for op, receipt in zip(creates, answers, strict=True):
            if not isinstance(receipt, Created) or receipt.run_id != op.run_id:
                self.forget(op.run_id)

    def _take(self, asked: ClaimScope, receipt: Receipt, result: CommitResult, now: int) -> None:
        if isinstance(receipt, Refused):
            assert receipt.reason is Refusal.LEASE_EXPIRED, f"a claim was refused: {receipt}"
            result.lease_lost, self.leased = True, False
            self.mark_ready(asked.runs)
            if asked.suspect:
                self.look_for_suspects()
            return
        assert isinstance(receipt, Claimed)
        begun: list[Held] = []
        strange: list[Grant] = []
        for grant in receipt.grants:
            if self.knows(grant):
                begun.append(self._hold(grant, self.facts[grant.run_id], now, suspect=asked.suspect))
            else:
                strange.append(grant)
        result.begin += begun
        if any(grant.skipped for grant in receipt.grants):
            self._skip(result, {grant.attempt: grant.skipped for grant in receipt.grants}, now)
        self.counters.claimed += len(begun)
        if strange:
            self._give_back(strange)
        taken = 0
        for pool, limit in asked.pools:
            taken += len(begun) if len(asked.pools) == 1 else sum(_pool(held) == pool for held in begun)
            if taken < limit:
                self._ready.drained(pool, asked)
        if receipt.contended:
            self._ready.contended.append(asked)
            result.contended = True
        if asked.suspect and begun:
            self._suspects.stop_draining()

    def _skip(self, result: CommitResult, skipped: Mapping[AttemptId, int], now: int) -> None:
        """Settle the nodes that are skipped with their parents; no body of them begins."""
        begin, result.begin = result.begin, []
        for held in begin:
            parents = len(held.facts.graph.parents[held.index])
            number = skipped.get(held.attempt, 0)
            verdict = after_parents(held.spec, parents, number) if number else None
            if verdict is None:
                result.begin.append(held)
            else:
                self.finished(held, Settle(held.attempt, verdict.status, verdict.node, reason=verdict.reason), now)

    def knows(self, grant: Grant) -> bool:
        """Whether this worker has the graph and code of the run that a node was granted of, as the run is now."""
        facts = self.facts.get(grant.run_id)
        return facts is not None and facts.heals == grant.heals

    def _give_back(self, grants: list[Grant]) -> None:
        """Release nodes of runs that ended or were healed meanwhile, or whose code is missing here: other workers may have it.

        If this commit is lost, the next lease renewal releases them.
        """
        for run in {grant.run_id for grant in grants}:
            self.forget(run)
        ops: list[Op] = [Settle(grant.attempt, AttemptStatus.RELEASED, NodeStatus.READY) for grant in grants]
        self.submit(Submission(ops))

    def _hold(self, grant: Grant, facts: RunFacts, now: int, *, suspect: bool) -> Held:
        held = Held(
            grant.attempt,
            facts,
            grant.index,
            grant.number,
            grant.failures,
            grant.inputs,
            grant.generation,
            suspect,
            now,
            grant.postponed,
            grant.wakes,
        )
        self.held[grant.attempt] = held
        facts.held += 1
        self._slots.take(held.kind)
        self._suspects.held += suspect
        return held

    def _leave(self, held: Held) -> None:
        if self.held.pop(held.attempt, None) is not None:
            self._slots.leave(held.kind)
            if held.suspect:
                self._suspects.held -= 1
                self.look_for_suspects()


def _pool(held: Held) -> str:
    return pool_of(held.spec.body, careful=held.spec.on_lost == "interrupt")
