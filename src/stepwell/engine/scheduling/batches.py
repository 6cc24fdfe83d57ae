"""The data that passes through the scheduler: submissions, batches to commit, and the results of commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from ...base.clock import SECOND
from ...base.ids import RunId
from ...core.model import Lane, Op, Receipt, RunNews, Settle
from ..bodies.held import Held, RunFacts


@dataclass(slots=True, eq=False)
class Submission:
    """Ops that are committed together, in one batch with others. `done` is called once `receipts` or `error` is set."""

    ops: list[Op]
    facts: tuple[RunFacts, ...] = ()
    receipts: list[Receipt] | None = None
    error: BaseException | None = None
    done: Callable[[], None] = lambda: None


class ClaimScope(NamedTuple):
    """What one claim asks for: nodes of these pools, each with a cumulative limit, from these runs or this window.

    A pool is a kind of body; "!" marks nodes that must not be claimed ahead of a free slot.
    """

    pools: tuple[tuple[str, int], ...]
    runs: tuple[RunId, ...] = ()
    window: Window | None = None
    suspect: bool = False


@dataclass(slots=True, eq=False)
class Window:
    """Some of the (workflow, digest) pairs that a worker serves, few enough for one claim."""

    pairs: tuple[tuple[str, str], ...]
    graphs: list[frozenset[Lane]]
    """The lanes of each of their graphs."""
    pools: set[str]
    """The pools that may have READY nodes of these workflows."""


FIRST_PAUSE = SECOND // 100
LONGEST_PAUSE = 10 * SECOND
"""Microseconds between two tries of an isolated op."""


@dataclass(slots=True, eq=False)
class IsolatedOp:
    """A settlement, or the scope of a claim, that the store could not apply."""

    tries: int = 0
    due: int = 0
    held: Held | None = None
    settle: Settle | None = None
    stand_in: Settle | None = None
    """Sent in place of the settlement: the attempt failed, and why."""
    runs: tuple[RunId, ...] = ()
    """The claim asks for nodes of these runs,"""
    serves: tuple[tuple[str, str], ...] = ()
    """or of runs of these (workflow, digest) pairs."""
    divided: bool = False

    def wait(self, now: int) -> None:
        self.due = now + min(LONGEST_PAUSE, FIRST_PAUSE * 4 ** min(self.tries - 1, 10))

    def halves(self) -> tuple[IsolatedOp, IsolatedOp] | None:
        """Split the scope of a claim in two. None if it is a single run or pair."""
        for name in ("runs", "serves"):
            scope = getattr(self, name)
            if len(scope) > 1:
                middle = len(scope) // 2
                return IsolatedOp(**{name: scope[:middle]}), IsolatedOp(**{name: scope[middle:]})
        return None


@dataclass(slots=True, eq=False)
class CommitBatch:
    """Ops for one commit, in this order: submissions, lines of bodies, settlements, claims."""

    ops: list[Op]
    submissions: list[Submission]
    settling: list[Held]
    claims: list[ClaimScope] = field(default_factory=list)
    """What its claims ask for, in the order of their ops."""
    lines: int = 0
    """How many of its ops are lines of bodies. After the settlement of their attempt the store would refuse them."""
    since: int = 0
    """When it was sent, in microseconds."""
    apart: IsolatedOp | None = None
    """The isolated op that this batch retries, if any."""

    def halves(self) -> tuple[CommitBatch, CommitBatch] | None:
        """Split it into two batches, in order. None if it holds one unit only.

        A submission stays whole; each line, settlement and claim is a unit.
        """
        units = self._units()
        middle = (len(units) + 1) // 2
        if len(units) < 2:
            return None
        return _joined(units[:middle], self.apart), _joined(units[middle:], self.apart)

    def without_submissions(self) -> CommitBatch:
        skip = sum(len(submission.ops) for submission in self.submissions)
        return CommitBatch(self.ops[skip:], [], self.settling, self.claims, self.lines, apart=self.apart)

    def _units(self) -> list[_BatchPart]:
        units, ops = [], iter(self.ops)
        for submission in self.submissions:
            units.append(_BatchPart([*islice(ops, len(submission.ops))], submission=submission))
        units += [_BatchPart([op], line=True) for op in islice(ops, self.lines)]
        units += [_BatchPart([next(ops)], held=held) for held in self.settling]
        units += [_BatchPart([next(ops)], asked=asked) for asked in self.claims]
        return units


class _BatchPart(NamedTuple):
    """The smallest part of a batch, which is never split."""

    ops: list[Op]
    submission: Submission | None = None
    line: bool = False
    held: Held | None = None
    asked: ClaimScope | None = None


def _joined(units: list[_BatchPart], apart: IsolatedOp | None) -> CommitBatch:
    return CommitBatch(
        [op for unit in units for op in unit.ops],
        [unit.submission for unit in units if unit.submission is not None],
        [unit.held for unit in units if unit.held is not None],
        [unit.asked for unit in units if unit.asked is not None],
        sum(unit.line for unit in units),
        apart=apart,
    )


class CommitResult:
    """What the runner has to do after a commit. Not a dataclass, because one is made for every commit."""

    __slots__ = ("answered", "begin", "contended", "delays", "enough", "lease_lost", "news", "settled")

    def __init__(self) -> None:
        self.begin: list[Held] = []
        self.news: dict[RunId, RunNews] = {}
        self.answered: list[Submission] = []
        self.settled: list[tuple[Held, Settle, bool]] = []
        """Each settled attempt, its settlement, and whether the store accepted it."""
        self.delays: list[int] = []
        """After how many microseconds the nodes are due again that wait after their settlement."""
        self.lease_lost = self.contended = False
        """Contended: a claim skipped runs that other workers had locked: claim again soon."""
        self.enough = False
        """The scheduler had nothing more to commit when this result came in."""
