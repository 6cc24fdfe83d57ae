"""Metrics of an engine since it was opened, for people and dashboards. Those of a run: `history/measuring.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...base.clock import SECOND
from ...base.ids import RunId
from ...core.model import AttemptStatus, NodeStatus, Settle
from ..bodies.held import Held
from ..bodies.kinds import KINDS, ByKind
from .batches import CommitBatch
from .pressure import Pressure, RunPressure
from .slots import Slots

_FAILURES = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)


class Counters:
    """Plain integers, updated under the lock of the scheduler, once per commit where possible."""

    __slots__ = (
        "claimed",
        "claims",
        "commit_time",
        "commits",
        "commits_failed",
        "failures",
        "fenced",
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
        """Total microseconds of all executed attempts, from the answer to the claim to the answer to the settlement."""

    def committed(self, batch: CommitBatch, now: int) -> None:
        self.commits += 1
        self.ops += len(batch.ops)
        self.commit_time += now - batch.since
        self.claims += len(batch.claims)
        self.settled += len(batch.settling)

    def unusual(self, held: Held, op: Settle, now: int, *, recorded: bool) -> None:
        """Count a settlement that is not a recorded completion."""
        self.fenced += not recorded
        if recorded:
            self.unbegun += not held.begun
            self.step_time += now - held.claimed_at if held.begun else 0
            self.failures += op.status in _FAILURES
            self.retries += op.node is NodeStatus.WAITING and op.status is not AttemptStatus.PARKED


class EngineMetrics(NamedTuple):
    """What one engine did since it was opened, and what it holds now."""

    active: ByKind
    """Attempts in memory that have a slot to run in."""
    queued: ByKind
    """Attempts in memory beyond these, claimed ahead. `queue_depth` limits them for each kind."""
    most_queued: ByKind
    """The most attempts that were ever claimed ahead at once."""
    steps: int
    """Journal entries that it wrote by claiming nodes and recording the ends of attempts."""
    executed: int
    """Attempts whose body ran here and whose end was recorded."""
    step_seconds: float
    """Their average time, from claim to settlement."""
    failures: int
    """How many of them failed or timed out."""
    retries: int
    """How many of them are tried again."""
    fenced: int
    """Settlements that the store refused, because the attempt was no longer the current one of its node."""
    commits: int
    """Group commits: settlements, claims, starts. Commits of housekeeping, leases and control are not counted."""
    commits_failed: int
    """How many commits failed; the same batch is sent again."""
    ops_per_commit: float
    commit_seconds: float
    """The average time of a commit."""
    claims: int
    """How many claims were made."""
    claimed: int
    """How many nodes were granted."""
    blocks: ByKind
    """How often back-pressure began: no slot was free while work waited in the store."""
    blocked_seconds: ByKind
    """How long it has lasted in total, until now."""
    renewals: int
    leases_lost: int
    blocked_runs: Mapping[RunId, RunPressure]
    """What back-pressure has cost the latest 1,000 runs that had to wait: `blocks` and `seconds` of each."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        found = {
            name: value._asdict() if isinstance(value, ByKind) else value for name, value in self._asdict().items()
        }
        return {**found, "blocked_runs": {run: cost._asdict() for run, cost in self.blocked_runs.items()}}


_NONE = ByKind(0, 0, 0)
IDLE = EngineMetrics(
    _NONE, _NONE, _NONE, 0, 0, 0.0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, _NONE, ByKind(0.0, 0.0, 0.0), 0, 0, {}
)
"""The metrics of an engine that has no runner."""


def snapshot(
    counters: Counters,
    slots: Slots,
    pressure: Pressure,
    blocked_runs: Mapping[RunId, RunPressure],
    now: int,
    *,
    renewals: int,
    leases_lost: int,
) -> EngineMetrics:
    recorded = counters.settled - counters.fenced
    executed = recorded - counters.unbegun

    def each(number: Callable[[str], int | float]) -> ByKind:
        return ByKind(*map(number, KINDS))

    return EngineMetrics(
        each(lambda kind: min(slots.counts[kind], slots.most[kind])),
        each(lambda kind: max(0, slots.counts[kind] - slots.most[kind])),
        each(lambda kind: max(0, slots.most_held[kind] - slots.most[kind])),
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
        renewals,
        leases_lost,
        blocked_runs,
    )
