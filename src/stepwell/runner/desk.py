"""The runner's decisions: what to commit next, what to claim with it, what a commit's answers mean.

A plain object driven by events. It has no threads, clocks or stores: the edge tells it the time and carries out what it
returns, so a simulator can drive exactly this code.

Group commit: one commit is in flight; all that arrives meanwhile goes into the next one, together with the claims that
follow from it. A chain costs one transaction a node, a wide graph few in all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..graph import suspect_lane
from ..ids import AttemptId, ClaimId, RunId, WorkerId
from ..model import (
    Claim,
    Claimed,
    Create,
    Created,
    GateState,
    Grant,
    HeldGate,
    Op,
    Receipt,
    Refusal,
    Refused,
    RunNews,
    Settle,
    Settled,
)
from .work import Held, RunFacts

MAX_SETTLEMENTS = 2_000
"""How many settlements one commit takes at most, so that renewals get through in between."""
MAX_RUNS_NAMED = 256
"""How many runs one claim names at most."""
AHEAD_WINDOW = 50_000
"""Claim ahead as much as finished within this many microseconds."""


class Limits(NamedTuple):
    threads: int = 8
    loop: int = 1_000
    processes: int = 2
    queue_depth: int = 1_024

    def of(self, kind: str) -> int:
        return {"thread": self.threads, "loop": self.loop, "process": self.processes}[kind]


@dataclass(slots=True, eq=False)
class Submission:
    """Ops that somebody waits for: committed together, in one batch with others'."""

    ops: list[Op]
    facts: tuple[RunFacts, ...] = ()
    receipts: list[Receipt] | None = None
    error: BaseException | None = None
    done: Callable[[], None] = lambda: None


@dataclass(slots=True, eq=False)
class Flight:
    """A batch on its way to the store."""

    ops: list[Op]
    submissions: list[Submission]
    settling: list[Held]
    kinds: list[tuple[str, int]]
    """Kind and limit of each claim, which stand at the end of the batch."""
    runs: tuple[RunId, ...] = ()
    cramped: bool = False
    """Some kind of body had no room, so its work was not asked for."""


@dataclass(slots=True)
class Landing:
    """What follows from a commit."""

    begin: list[Held] = field(default_factory=list)
    news: dict[RunId, RunNews] = field(default_factory=dict)
    answered: list[Submission] = field(default_factory=list)
    settled: list[tuple[Held, Settle, bool]] = field(default_factory=list)
    """What was settled, and whether the store accepted it."""
    lease_lost: bool = False


class Pace:
    """How many bodies finished lately: what may be claimed ahead of free slots."""

    __slots__ = ("_before", "_current", "_since")

    def __init__(self) -> None:
        self._since = self._current = self._before = 0

    def count(self, now: int) -> None:
        self._turn(now)
        self._current += 1

    def recent(self, now: int) -> int:
        self._turn(now)
        return self._current + self._before

    def _turn(self, now: int) -> None:
        age = now - self._since
        if age >= AHEAD_WINDOW:
            self._before = self._current if age < 2 * AHEAD_WINDOW else 0
            self._since, self._current = now, 0


class Desk:
    """Holds what this worker has claimed and decides what to do next."""

    def __init__(self, worker: WorkerId, limits: Limits, new_claim_id: Callable[[], ClaimId]) -> None:
        self.worker = worker
        self.limits = limits
        self.facts: dict[RunId, RunFacts] = {}
        self.held: dict[AttemptId, Held] = {}
        self.serves: dict[tuple[str, str], frozenset[str]] = {}
        """(workflow, digest) pairs it works for, with the lanes of their graphs, also when others started the run."""
        self.closing = False
        self.leased = True
        """False from a refusal for want of a lease until it is held again: claims would only be refused."""
        self.stalled = False
        """Too many bodies did not end in time; nothing more is claimed until some of them do."""
        self.blocked = 0
        """How often ready work was left in the store because there was no room: back-pressure."""
        self._new_claim_id = new_claim_id
        self._submissions: deque[Submission] = deque()
        self._settlements: deque[tuple[Held, Settle]] = deque()
        self._flight: Flight | None = None
        self._again: Flight | None = None
        self._hungry: dict[RunId, None] = {}
        self._dry: set[str] = set()
        self._look_around = False
        self._look_for_suspects: list[str] = []
        """Where to look: among the runs it knows, among those it serves."""
        self._suspects = 0
        self._lanes: dict[frozenset[frozenset[str]], dict[str, tuple[list[str], list[str]]]] = {}
        self._counts = {"thread": 0, "loop": 0, "process": 0}
        self._pace = {"thread": Pace(), "loop": Pace(), "process": Pace()}

    # What happens to the desk

    def submit(self, submission: Submission) -> None:
        self._submissions.append(submission)

    def finished(self, held: Held, settle: Settle, now: int) -> None:
        """A body has ended. Its settlement goes into the next commit."""
        held.over = True
        self._settlements.append((held, settle))
        self._pace[held.spec.body].count(now)
        self._leave(held)

    def know(self, facts: RunFacts) -> None:
        """From now on this worker works on this run."""
        self.facts[facts.run_id] = facts
        self.hungry((facts.run_id,))
        self.suspects_possible()

    def hungry(self, runs: Iterable[RunId]) -> None:
        """These runs may have READY nodes."""
        self._hungry.update(dict.fromkeys(run for run in runs if run in self.facts))
        self._dry.clear()

    def look_around(self) -> None:
        """Runs of the workflows it serves may have READY nodes."""
        if self.serves:
            self._look_around = True
            self._dry.clear()
            self.suspects_possible()

    def suspects_possible(self) -> None:
        """Some node may have lost several workers: look for it as soon as nothing else is at work."""
        self._look_for_suspects = ["known", "served"]

    def heard(self, news: Iterable[RunNews]) -> list[HeldGate]:
        """How runs stand now. Those that ended are forgotten; gates that closed on a failure are returned."""
        broken = []
        for run in news:
            if run.gate is GateState.HELD and run.purpose == "failed":
                broken.append(HeldGate(run.run_id, "failed", b""))
            if run.status.terminal:
                self.forget(run.run_id)
        return broken

    def forget(self, run: RunId) -> None:
        self.facts.pop(run, None)
        self._hungry.pop(run, None)

    def holding(self) -> tuple[AttemptId, ...] | None:
        """Every attempt that stands under this worker's lease, for its renewal; None while a claim is on its way."""
        if self._flight is not None and self._flight.kinds:
            return None
        waiting = [held for held, _ in self._settlements]
        flying = [*(self._flight.settling if self._flight else ()), *(self._again.settling if self._again else ())]
        return (*self.held, *(held.attempt for held in (*waiting, *flying)))

    def count(self, kind: str) -> int:
        """How many attempts with this kind of body are held."""
        return self._counts[kind]

    @property
    def idle(self) -> bool:
        return not (self.held or self._settlements or self._submissions or self._flight or self._again)

    # What the desk decides

    def next_flight(self, now: int) -> Flight | None:
        """The next batch to commit, or None when one is in flight or there is nothing to say."""
        if self._flight is not None:
            return None
        flight = self._again or self._compose(now)
        self._again = None
        if not flight.ops:
            return None
        self._flight = flight
        return flight

    def landed(self, flight: Flight, receipts: Sequence[Receipt], now: int) -> Landing:
        """The answers to a flight."""
        assert flight is self._flight, "only the batch in flight can land"
        self._flight = None
        landing = Landing()
        at = 0
        for submission in flight.submissions:
            answers = list(receipts[at : at + len(submission.ops)])
            at += len(submission.ops)
            self._answer(submission, answers, landing)
        for held in flight.settling:
            receipt, op = receipts[at], flight.ops[at]
            at += 1
            assert isinstance(op, Settle)
            if isinstance(receipt, Settled):
                landing.news[receipt.run.run_id] = receipt.run
            landing.settled.append((held, op, isinstance(receipt, Settled)))
        for (kind, limit), receipt in zip(flight.kinds, receipts[at:], strict=True):
            self._take(kind, limit, receipt, flight, landing)
        return landing

    def fell(self, flight: Flight, error: BaseException) -> list[Submission]:
        """The commit raised. The same batch is sent again, without what somebody waits for: they are told."""
        assert flight is self._flight, "only the batch in flight can fall"
        self._flight = None
        skip = sum(len(submission.ops) for submission in flight.submissions)
        self._again = Flight(flight.ops[skip:], [], flight.settling, flight.kinds, flight.runs, flight.cramped)
        for submission in flight.submissions:
            submission.error = error
            for facts in submission.facts:
                self.forget(facts.run_id)
        return flight.submissions

    def _compose(self, now: int) -> Flight:
        flight = Flight([], [], [], [])
        while self._submissions:
            submission = self._submissions.popleft()
            flight.submissions.append(submission)
            flight.ops += submission.ops
            for facts in submission.facts:
                self.facts[facts.run_id] = facts
                self._hungry[facts.run_id] = None
                self._dry.clear()
        while self._settlements and len(flight.settling) < MAX_SETTLEMENTS:
            held, settle = self._settlements.popleft()
            flight.settling.append(held)
            flight.ops.append(settle)
            if held.facts.run_id in self.facts:
                self._hungry[held.facts.run_id] = None
        if flight.settling:
            self._dry.clear()
        if self.leased and not (self.closing or self.stalled or self._suspects):
            self._add_claims(flight, now)
        return flight

    def _add_claims(self, flight: Flight, now: int) -> None:
        if self._hungry:
            flight.runs = (
                tuple(self._hungry) if len(self._hungry) <= MAX_RUNS_NAMED else tuple(self._hungry)[:MAX_RUNS_NAMED]
            )
            lanes = {self.facts[run].graph.lanes for run in flight.runs}
            self._claim(flight, lanes, now, runs=flight.runs)
        elif self._look_around and not flight.ops:
            self._look_around = False
            self._claim(flight, set(self.serves.values()), now, serves=tuple(sorted(self.serves)))
        while self._look_for_suspects and not flight.ops and not self.held:
            self._claim_suspect(flight)

    def _claim(self, flight: Flight, lanes: set[frozenset[str]], now: int, **scope: Any) -> None:
        """One claim for each kind of body that has room: careful lanes up to the free slots, others ahead of them."""
        for kind, (careful, usual) in self._by_kind(lanes).items():
            if kind in self._dry:
                continue
            free = self.limits.of(kind) - self._counts[kind]
            ahead = 0 if kind == "process" else self._pace[kind].recent(now)
            room = free + min(ahead, self.limits.queue_depth)
            wanted = [(lane, free) for lane in careful if free > 0] + [(lane, room) for lane in usual if room > 0]
            if len(wanted) < len(careful) + len(usual):
                self.blocked += 1
                flight.cramped = True
            if not wanted:
                continue
            flight.kinds.append((kind, wanted[-1][1]))
            flight.ops.append(Claim(self._new_claim_id(), self.worker, tuple(wanted), **scope))

    def _by_kind(self, lanes: set[frozenset[str]]) -> dict[str, tuple[list[str], list[str]]]:
        """The lanes of these graphs by kind of body: careful ones, and others."""
        key = frozenset(lanes)
        found = self._lanes.get(key)
        if found is None:
            found = {}
            for lane in sorted(frozenset().union(*lanes)):
                kind = lane.partition("/")[2].removesuffix("!")
                found.setdefault(kind, ([], []))[not lane.endswith("!")].append(lane)
            self._lanes[key] = found
        return found

    def _claim_suspect(self, flight: Flight) -> None:
        """A node that may have killed its worker is claimed alone, with nothing else at work."""
        scope = self._look_for_suspects.pop(0)
        if scope == "known":
            graphs = [facts.graph.lanes for facts in self.facts.values()]
            asked: dict[str, Any] = {"runs": tuple(self.facts)}
        else:
            graphs = list(self.serves.values())
            asked = {"serves": tuple(sorted(self.serves))}
        lanes = sorted({suspect_lane(lane) for of_graph in graphs for lane in of_graph})
        if lanes:
            flight.kinds.append(("suspect", 1))
            wanted = tuple((lane, 1) for lane in lanes)
            flight.ops.append(Claim(self._new_claim_id(), self.worker, wanted, **asked))

    def _answer(self, submission: Submission, receipts: list[Receipt], landing: Landing) -> None:
        submission.receipts = receipts
        landing.answered.append(submission)
        creates = [op for op in submission.ops if isinstance(op, Create)]
        answers = [r for op, r in zip(submission.ops, receipts, strict=True) if isinstance(op, Create)]
        for op, receipt in zip(creates, answers, strict=True):
            if not isinstance(receipt, Created) or receipt.run_id != op.run_id:
                self.forget(op.run_id)

    def _take(self, kind: str, limit: int, receipt: Receipt, flight: Flight, landing: Landing) -> None:
        if isinstance(receipt, Refused):
            assert receipt.reason is Refusal.LEASE_EXPIRED, f"a claim was refused: {receipt}"
            landing.lease_lost, self.leased = True, False
            if kind == "suspect":
                self.suspects_possible()
            elif not flight.runs:
                self.look_around()
            return
        assert isinstance(receipt, Claimed)
        for grant in receipt.grants:
            landing.begin.append(self._hold(grant, suspect=kind == "suspect"))
        if kind == "suspect":
            return
        if len(receipt.grants) < limit:
            self._dry.add(kind)
            if not flight.cramped and self._dry >= {asked for asked, _ in flight.kinds}:
                for run in flight.runs:
                    self._hungry.pop(run, None)
                self._dry.clear()
        elif not flight.runs:
            self._look_around = True

    def _hold(self, grant: Grant, *, suspect: bool) -> Held:
        held = Held(
            grant.attempt, self.facts[grant.run_id], grant.index, grant.number, grant.failures, grant.inputs, suspect
        )
        self.held[grant.attempt] = held
        self._counts[held.spec.body] += 1
        self._suspects += suspect
        return held

    def _leave(self, held: Held) -> None:
        if self.held.pop(held.attempt, None) is not None:
            self._counts[held.spec.body] -= 1
            if held.suspect:
                self._suspects -= 1
                self.suspects_possible()
