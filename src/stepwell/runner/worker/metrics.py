"""What an engine has done since it was opened, in numbers for people and dashboards. Those of a run: `kernel/measuring.py`.

Counting is adding to plain integers under the lock of the scheduler, which is held anyway, once for each commit where possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...clock import SECOND
from ...model import AttemptStatus, NodeStatus, Settle
from .backpressure import KINDS

if TYPE_CHECKING:
    from ..bodies.held import Held
    from .batches import CommitBatch
    from .lease import Lease
    from .scheduler import Scheduler

_FAILURES = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)


class Counters:
    """What a scheduler counts."""

    __slots__ = (
        "claimed",
        "claims",
        "commit_time",
        "commits",
        "commits_failed",
        "failures",
        "fenced",
        "most_held",
        "ops",
        "retries",
        "settled",
        "step_time",
        "unbegun",
    )

    def __init__(self) -> None:
        self.commits = self.commits_failed = self.ops = self.commit_time = 0
        self.claims = self.claimed = 0
        self.settled = self.unbegun = self.failures = self.retries = self.fenced = 0
        self.step_time = 0
        """How long the attempts that were executed took together, from the answer to their claim to that to their end."""
        self.most_held = dict.fromkeys(KINDS, 0)
        """Of each kind of body, the most attempts at once; only looked at where there is no slot left."""

    def committed(self, batch: CommitBatch, now: int) -> None:
        self.commits += 1
        self.ops += len(batch.ops)
        self.commit_time += now - batch.since
        self.claims += len(batch.claims)
        self.settled += len(batch.settling)

    def unusual(self, held: Held, op: Settle, now: int, *, recorded: bool) -> None:
        """A settlement that is no recorded completion."""
        self.fenced += not recorded
        if recorded:
            self.unbegun += not held.begun
            self.step_time += now - held.claimed_at if held.begun else 0
            self.failures += op.status in _FAILURES
            self.retries += op.node is NodeStatus.WAITING


class ByKind(NamedTuple):
    """A number for each kind of body: `def` in threads, `async def` on the loop, in processes of their own."""

    thread: int | float
    loop: int | float
    process: int | float

    @property
    def total(self) -> int | float:
        return self.thread + self.loop + self.process


class EngineMetrics(NamedTuple):
    """What one engine did since it was opened, and what it holds now."""

    active: ByKind
    """Attempts in memory that have a slot to run in."""
    queued: ByKind
    """Attempts in memory beyond these, claimed ahead. `queue_depth` bounds them for each kind."""
    most_queued: ByKind
    """The most that ever were."""
    steps: int
    """Entries that it added to the journals of runs by claiming nodes and recording the ends of attempts."""
    executed: int
    """Attempts whose body ran here and whose end was recorded."""
    step_seconds: float
    """How long one of these took on average, from its claim to its settlement."""
    failures: int
    """Those of them that failed or timed out."""
    retries: int
    """Those of them that are tried again."""
    fenced: int
    """Settlements that the store refused, because the attempt was no longer the current one of its node."""
    commits: int
    """Group commits: settlements, claims, starts. What housekeeping, leases and control commit is not counted."""
    commits_failed: int
    """How often a commit raised; the same batch is sent again."""
    ops_per_commit: float
    commit_seconds: float
    """How long a commit took on average."""
    claims: int
    """How often work was asked for."""
    claimed: int
    """How many nodes were granted."""
    blocks: ByKind
    """How often back-pressure began: no room, and work waiting in the store."""
    blocked_seconds: ByKind
    """For how long it was felt in all, until now."""
    renewals: int
    leases_lost: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: value._asdict() if isinstance(value, ByKind) else value for name, value in self._asdict().items()}


_NONE = ByKind(0, 0, 0)
IDLE = EngineMetrics(_NONE, _NONE, _NONE, 0, 0, 0.0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, _NONE, ByKind(0.0, 0.0, 0.0), 0, 0)
"""Of an engine that has no runner."""


def snapshot(scheduler: Scheduler, lease: Lease, now: int) -> EngineMetrics:
    """The lock of the scheduler is held."""
    counters, pressure = scheduler.counters, scheduler.pressure
    recorded = counters.settled - counters.fenced
    executed = recorded - counters.unbegun

    def each(number: Callable[[str], int | float]) -> ByKind:
        return ByKind(*map(number, KINDS))

    return EngineMetrics(
        each(lambda kind: min(scheduler.count(kind), scheduler.limits.of(kind))),
        each(lambda kind: max(0, scheduler.count(kind) - scheduler.limits.of(kind))),
        each(lambda kind: max(0, counters.most_held[kind] - scheduler.limits.of(kind))),
        counters.claimed + recorded,
        executed,
        counters.step_time / (executed or 1) / SECOND,
        counters.failures,
        counters.retries,
        counters.fenced,
        counters.commits,
        counters.commits_failed,
        counters.ops / (counters.commits or 1),
        counters.commit_time / (counters.commits or 1) / SECOND,
        counters.claims,
        counters.claimed,
        each(pressure.blocks),
        each(lambda kind: pressure.spent(kind, now) / SECOND),
        lease.renewals,
        lease.losses,
    )
