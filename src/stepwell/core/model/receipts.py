"""The answers of a store to ops: what is true now, or why an op was refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from ...base.ids import AttemptId, Digest, RunId
from .records import RecordPut
from .rows import GateState, RunRow
from .status import RunStatus


class Refusal(StrEnum):
    """Why an op was refused."""

    FENCED = "fenced"
    """The attempt is not the current one of its node."""
    CONFLICT = "conflict"
    """The same id exists with other content."""
    UNKNOWN = "unknown"
    """There is no such run, graph, worker or attempt."""
    LEASE_EXPIRED = "lease_expired"
    GATE_HELD = "gate_held"
    """Somebody else holds the gate."""
    GATE_LOST = "gate_lost"
    """The gate is not held by this token."""
    STATUS = "status"
    """The status of the run does not allow it, or it is no legal move at all."""
    CHANGED = "changed"
    """Rows have changed since the rewrite was computed; compute it again."""
    INVALID = "invalid"
    """It holds a text or a number that not every store can keep: see `store.rules.values`."""
    INCOMPLETE = "incomplete"
    """The graph, or the run, is not loaded yet; or what a gate was held for is not done."""


class Refused(NamedTuple):
    reason: Refusal
    detail: str = ""


class RunNews(NamedTuple):
    """The state of a run after a commit."""

    run_id: RunId
    status: RunStatus
    gate: GateState
    purpose: str | None
    open: int
    active: int
    failed: int
    seq: int


class GraphAdded(NamedTuple):
    digest: Digest
    loaded: int
    total: int


class Created(NamedTuple):
    run_id: RunId
    existed: bool
    loaded: int
    total: int


class Grant(NamedTuple):
    """One node that was claimed: the attempt to make, and the outputs its body asked for, by node index."""

    attempt: AttemptId
    run_id: RunId
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    number: int
    failures: int
    losses: int
    inputs: tuple[tuple[int, bytes], ...] = ()
    generation: int = 0
    """How often a completion of this node was superseded."""
    heals: int = 0
    """How often the run has switched to another graph: a graph that was cached before is outdated."""
    postponed: int = 0
    """How often the node has asked to be tried again later, since it was last asked for."""
    skipped: int = 0
    """How many of its parents were skipped."""
    wakes: int = 0
    """See `NodeRow.wakes`. If not 0, a run performs the node, and its body is not called."""


class GraphSwitched(NamedTuple):
    """How many nodes of the graph the run has; all of them: it is done."""

    loaded: int
    total: int


class Shared(NamedTuple):
    """How many of them the run has now."""

    rows: int


class Claimed(NamedTuple):
    grants: tuple[Grant, ...]
    runs: tuple[RunRow, ...] = ()
    """For a claim by `serves`: the runs of its grants, as they are now."""
    contended: bool = False
    """Runs that other workers hold at this moment were left out, so there may be more READY nodes than were granted."""


class Settled(NamedTuple):
    """`repeated`: this same settlement was recorded before."""

    repeated: bool
    run: RunNews


class Woken(NamedTuple):
    run: RunNews | None
    """None: the run of the node is gone."""
    queue: str | None
    """Of the node, if it is READY now."""


class Appended(NamedTuple):
    pass


class Enlisted(NamedTuple):
    lease_until: int


class Renewed(NamedTuple):
    lease_until: int
    stop: tuple[AttemptId, ...]
    """Attempts of this worker that should stop."""
    released: int


class Dismissed(NamedTuple):
    lost: int


class HeldGate(NamedTuple):
    """A gate with work that must be finished."""

    run_id: RunId
    purpose: str
    arguments: bytes


class Swept(NamedTuple):
    lost: int
    woken: int
    runs: tuple[RunNews, ...]
    """Runs that the sweep changed."""
    gates: tuple[HeldGate, ...]
    next_due: int | None
    """When the next sweep will find something, as far as the rows say now."""
    workers: int = 0
    """How many workers have a lease: together they sweep often enough."""


class GateTaken(NamedTuple):
    run: RunNews


class Rewritten(NamedTuple):
    run: RunNews
    finished: bool = True
    """False: the gate is only partly opened; repeat the op with the same `finish`."""


class Restored(NamedTuple):
    """How many nodes of the run are there; `finished`: it is whole, and goes on as its row says."""

    nodes: int
    finished: bool


class Deleted(NamedTuple):
    """`finished`: it is gone. Else a part of it is; ask again."""

    finished: bool


Receipt: TypeAlias = (
    Refused
    | GraphAdded
    | Created
    | GraphSwitched
    | Shared
    | Claimed
    | Settled
    | Woken
    | Appended
    | Enlisted
    | Renewed
    | Dismissed
    | Swept
    | GateTaken
    | Rewritten
    | Restored
    | Deleted
    | RecordPut
)


class Answer(list[Receipt]):
    """What a commit is answered with: the receipts, one for each op, in order; and what its sender should know besides."""

    __slots__ = ("now", "stop")

    def __init__(self, receipts: Iterable[Receipt] = (), now: int = 0, stop: tuple[AttemptId, ...] = ()) -> None:
        list.__init__(self, receipts)
        self.now = now
        """The store's time at which all of it happened."""
        self.stop = stop
        """Attempts that should stop, of the worker that the batch claims or renews for."""

    def news(self) -> Iterator[RunNews]:
        """The state of every run with a settlement, each once."""
        seen = {receipt.run.run_id: receipt.run for receipt in self if isinstance(receipt, Settled)}
        return iter(seen.values())
