"""What can be asked of a store: a closed set of records. A batch of them is committed together.

Each op succeeds or fails alone: a refused op undoes no other. Ops carry ids and durations, never times;
times come from the store's clock. Repeating an op whose answer was lost is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ...base.ids import AttemptId, ClaimId, Digest, GateToken, RunId, WorkerId
from .lanes import Lane
from .records import PutRecord
from .rows import AttemptRow, JournalRow, LineRow, NodeRow, OnFailure, RunRow
from .status import SETTLEMENTS, AttemptStatus, NodeStatus, RunStatus


class StoreLimits(NamedTuple):
    """How much a store takes at once, so that no commit blocks the others for long."""

    nodes: int = 2_000
    """How many nodes one op adds, claims, rewrites, shares or deletes at most."""
    settlements: int = 2_000
    """How many settlements, or lines, one batch has at most."""
    batch_bytes: int = 8 * 1024 * 1024
    """Bytes of payloads after which a batch is full. A larger payload is a batch of its own."""
    runs: int = 256
    """How many runs, or (workflow, digest) pairs, one claim names at most."""


class LayoutRow(NamedTuple):
    """A node as its graph numbers it."""

    id: str
    parents: tuple[int, ...]
    needs: tuple[int, ...]
    lane: Lane
    rank: int
    """Its place in the order of the graph: its number, unless the run has lived with other versions of the graph."""
    removed: bool = False
    """No longer a node of the graph: a body of it that still runs ends, and nothing follows from it."""


class AddGraph(NamedTuple):
    """Store one chunk of a graph: `rows` are its nodes from `start` on, at most `limits.nodes`. Complete when all `total` are
    there. Only the first chunk has the document."""

    digest: Digest
    workflow: str
    signature: str
    document: bytes | None
    total: int
    start: int
    rows: tuple[LayoutRow, ...]


class Create(NamedTuple):
    """A run of a stored graph, and its first `limits.nodes` nodes. Loaded at once when it has no more; else see AddNodes."""

    run_id: RunId
    workflow: str
    target: str | None
    digest: Digest
    input: bytes
    seed: int
    on_failure: OnFailure = "fail_fast"
    priority: int = 0
    timeout: int | None = None
    idempotency_key: str | None = None
    fork: bytes | None = None
    """Of which run it is a fork, and from where. Once it is loaded its gate is held for `fork`, with this as arguments."""
    origin: RunId | None = None
    """The run it is a fork of, by which forks are found."""
    tags: tuple[tuple[str, str], ...] = ()
    """What people find it by: names and values, each name once, in order of the names."""
    parent: RunId | None = None
    """The run of which it performs a node,"""
    parent_node: int | None = None
    """and the index of that node."""
    depth: int = 0
    """How many runs are above it."""

    @classmethod
    def like(cls, row: RunRow) -> Create:
        """What creates a run like this one."""
        return cls(row.id, *(getattr(row, name) for name in cls._fields[1:]))


class Share(NamedTuple):
    """Behind the gate of a fork: these attempts of the origin, (index, number), completed in this run too.

    Of several attempts of one node the first counts. A node that has begun here is left alone.
    """

    run_id: RunId
    token: GateToken
    origin: RunId
    claim_id: ClaimId
    rows: tuple[tuple[int, int], ...]


class AddNodes(NamedTuple):
    """The next nodes of a run, at most `limits.nodes`, from `start` on. The last chunk opens the gate."""

    run_id: RunId
    start: int


class SwitchGraph(NamedTuple):
    """Behind a closed gate, the run switches to another stored graph, which numbers the nodes it has as they were.

    Each op adds at most `limits.nodes` of the nodes that are new to it; `start` says where its chunk begins.
    """

    run_id: RunId
    token: GateToken
    digest: Digest
    start: int


class Claim(NamedTuple):
    """Take READY nodes, lane by lane. The limits are cumulative: from each lane until the claim has `limit` nodes in all.
    A claim takes at most `limits.nodes`.

    Its scope is either `runs`, which the worker knows, or `serves`: the runs of these (workflow, digest) pairs, of which
    the answer says what they are. In both the most urgent run comes first, then the one that was admitted first; in a run the
    order of its graph.
    """

    claim_id: ClaimId
    worker: WorkerId
    lanes: tuple[tuple[Lane, int], ...]
    runs: tuple[RunId, ...] = ()
    serves: tuple[tuple[str, str], ...] | None = None


class Settle(NamedTuple):
    """The attempt ended as `status`; its node should become `node`. See SETTLEMENTS for what goes together."""

    attempt: AttemptId
    status: AttemptStatus
    node: NodeStatus
    output: bytes | None = None
    error: bytes | None = None
    outcome: bytes | None = None
    delay: int | None = None
    """With `node=WAITING`: microseconds until the node is due again."""
    postponed: bool = False
    """The body asked to be tried again later: that is counted, but not as a failure."""
    reason: str | None = None
    """Why the node becomes SKIPPED."""
    wakes: int = 0
    """With PARKED: how often the node had been woken when it was claimed. If that has changed, it is READY at once."""
    child: Create | None = None
    """With PARKED: the run that performs the node from now on, created with the settlement or not at all. A run that is
    stopping creates none; in a paused run it is created PAUSED."""
    lines: tuple[tuple[str, bytes], ...] = ()
    """Kind and data of what is recorded of the attempt (effects, payloads, checkpoints): its last lines, from RECORDED on."""

    @property
    def legal(self) -> bool:
        """Whether its statuses go together, and something will wake the node that it parks."""
        if self.status is AttemptStatus.PARKED and not self.wakes and self.child is None:
            return False
        if self.child is not None and self.status is not AttemptStatus.PARKED:
            return False
        return self.node in SETTLEMENTS.get(self.status, ())


ENTRIES_A_NODE = 4
MARK = -1
"""The index of an attempt's progress mark."""
RECORDED = 1 << 30
"""The index of the first line that came with the settlement: beyond all that an attempt appends while it runs."""


class Wake(NamedTuple):
    """A parked node is READY. Behind a closed gate it is due when the gate opens; if the run is stopping, it is CANCELLED. A
    node that is RUNNING counts it, so that it cannot park meanwhile. Any other is left alone."""

    run_id: RunId
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    ended: RunId | None = None
    """The child run whose end this hands on: its gate, held for ENDED, is shut with it."""


class Append(NamedTuple):
    """A line (log, durable effect) of a running attempt, numbered by the worker from 0. An existing line is kept.

    A negative index is a mark (progress): it takes the place of the one before, so that only the latest is kept.
    """

    attempt: AttemptId
    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    kind: str
    data: bytes


class Enlist(NamedTuple):
    """A worker begins, under a lease of this many microseconds."""

    worker: WorkerId
    lease: int
    info: bytes


class Renew(NamedTuple):
    """Extend a worker's lease. Attempts under it that are not `held`, claimed before the last renewal, are released.

    `held=None` says nothing about what is held, because the answer to a claim is still on its way.
    """

    worker: WorkerId
    lease: int
    held: tuple[AttemptId, ...] | None
    since: int | None = None
    """When the worker's lease was last renewed, as far as it knows, by the store's clock. Only earlier claims can be stray, so
    a renewal that is repeated or late is harmless."""


class Dismiss(NamedTuple):
    """A worker ends. Attempts that it still holds are lost now, not when its lease expires."""

    worker: WorkerId


class Sweep(NamedTuple):
    """Find what time has changed: expired leases, due nodes, passed deadlines, gates left held; `limit` of each at most.

    A gate that it reports is left to whoever asked for HAND_OUT microseconds: no other sweep reports it meanwhile. If nobody
    has swept for OUTAGE, the store could not be reached: leases that ran out since are given once more, so that workers that
    live can renew them.
    """

    limit: int = 1_000
    run: RunId | None = None
    """Only this run, and the workers that hold nodes of it. Its gate is reported even if it was handed out."""


class Gate(NamedTuple):
    """Hold the gate of a run for `lease` microseconds. Unfinished work behind the gate must be finished first."""

    run_id: RunId
    token: GateToken
    purpose: str
    arguments: bytes
    lease: int
    stop: bool = False
    """Ask the running attempts to stop, from this commit on."""
    allowed: tuple[RunStatus, ...] = ()
    """The statuses of the run for which this makes sense; empty: any."""
    resume: bool = False
    """Only to finish abandoned work: the gate must be held for this purpose, and its lease must have expired."""


class NodeChange(NamedTuple):
    """One row of a Rewrite, and what it was computed from. A row that has changed since is refused.

    With `status` equal to `was` nothing changes: the rewrite only holds if the node still is what it was.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which no record needs
    was: NodeStatus
    was_attempt: int
    status: NodeStatus
    reason: str | None = None
    fresh: bool = False
    """Reset failures, postponements and losses, because the node was asked for again."""
    anew: bool = False
    """No run performs the node any more: its body is called again."""

    @classmethod
    def of(
        cls, row: NodeRow, status: NodeStatus, reason: str | None = None, *, fresh: bool = False, anew: bool = False
    ) -> NodeChange:
        """What becomes of a node as it is now."""
        return cls(row.index, row.status, row.attempt, status, reason, fresh, anew)


class Finish(NamedTuple):
    """The end of a rewrite: the run's new status; the gate opens (counters re-derived from the rows) or shuts."""

    status: RunStatus
    open_gate: bool
    reason: str | None = None
    grace: int | None = None
    """With CANCELLING: microseconds until running attempts are fenced."""
    tolerate: bool = False
    """Nodes that have failed by now no longer fail or pause the run; later failures do."""
    input: bytes | None = None
    """The input of the run from now on; None: as it was."""


class Rewrite(NamedTuple):
    """Apply rows that the kernel computed behind a closed gate. Only the holder of `token` may."""

    run_id: RunId
    token: GateToken
    rows: tuple[NodeChange, ...] = ()
    finish: Finish | None = None


class Restore(NamedTuple):
    """A run as another store has it, or a part of it: rows with their ids, times and seq. Repeating it is harmless.

    Its graphs are stored before, and its nodes before their attempts. The gate of the run is held for `restore` until `finish`,
    with which it becomes what its row says; somebody may delete it if that does not come within LOAD_LEASE of the last part.
    Nothing of it may run: attempts that are RUNNING, and gates that are held, are refused.
    """

    run: RunRow
    nodes: tuple[NodeRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    """In the order in which they were claimed."""
    journal: tuple[JournalRow, ...] = ()
    lines: tuple[LineRow, ...] = ()
    former_graphs: tuple[Digest, ...] = ()
    finish: bool = False


class Delete(NamedTuple):
    """Forget an ended run, at most `limit` nodes and ENTRIES_A_NODE times as many entries of its journal at a time."""

    run_id: RunId
    limit: int = StoreLimits().nodes


class DeleteGraph(NamedTuple):
    """Forget a graph that no run has or had, at most `limit` nodes at a time. Refused while one does.

    It is incomplete from the first time on: who creates a run of it is told so, and stores it again.
    """

    digest: Digest
    limit: int = StoreLimits().nodes


Op: TypeAlias = (
    AddGraph
    | Create
    | AddNodes
    | SwitchGraph
    | Share
    | Claim
    | Settle
    | Wake
    | Append
    | Enlist
    | Renew
    | Dismiss
    | Sweep
    | Gate
    | Rewrite
    | Restore
    | Delete
    | DeleteGraph
    | PutRecord
)

Batch: TypeAlias = Sequence[Op]

ENDED = "ended"
"""The purpose of the gate of a child run that has ended, until the node that it performs was told."""
NODE_FAILED = "node_failed"
"""Why a run with `on_failure="pause"` is PAUSED."""
HAND_OUT = 5_000_000
OUTAGE = 12_000_000
LOAD_LEASE = 30_000_000
"""Microseconds after which a run that is still not loaded is reported, so that anybody can finish it."""
