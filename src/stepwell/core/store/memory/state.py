"""What the memory store keeps: plain records, changed in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter

from ....base.ids import AttemptId, Digest, GateToken, RunId, attempt_id
from ...model import Create, Lane, LayoutRow, RunNews, StoreLimits
from ...model.rows import AttemptRow, GateState, JournalKind, JournalRow, LineRow, NodeRow, RunRow, WorkerRow
from ...model.status import ACTIVE_NODES, FAILED_NODES, AttemptStatus, NodeStatus, RunStatus
from ..rules.verdicts import GateFacts
from .records import Records

LIMITS = StoreLimits()
_NODE, _ATTEMPT = attrgetter(*NodeRow._fields), attrgetter(*AttemptRow._fields)
_ELSEWHERE = {"digest": "graph.digest", "nodes": "graph.total"} | {
    name: f"created.{name}" for name in Create._fields if name not in ("run_id", "digest")
}
_RUN = attrgetter(*(_ELSEWHERE.get(name, name) for name in RunRow._fields if name != "releasing"))


@dataclass(slots=True)
class GraphState:
    digest: Digest
    workflow: str
    signature: str
    document: bytes
    total: int
    age: int
    stored_at: int = 0
    rows: list[LayoutRow] = field(default_factory=list)
    children: dict[int, list[int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.rows) == self.total


@dataclass(slots=True)
class NodeState:
    index: int
    layout: LayoutRow
    status: NodeStatus
    waiting: int
    lane: Lane
    skipped: int = 0
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    due_at: int | None = None
    reason: str | None = None
    generation: int = 0
    postponed: int = 0
    wakes: int = 0

    @property
    def id(self) -> str:
        return self.layout.id

    def row(self) -> NodeRow:
        return NodeRow._make(_NODE(self))


@dataclass(slots=True)
class AttemptState:
    claim: str
    ordinal: int
    run: RunState
    index: int
    number: int
    worker: str
    started_at: int
    status: AttemptStatus = AttemptStatus.RUNNING
    ended_at: int | None = None
    output: bytes | None = None
    error: bytes | None = None
    outcome: bytes | None = None

    @property
    def id(self) -> AttemptId:
        return attempt_id(self.claim, self.ordinal)

    def row(self) -> AttemptRow:
        return AttemptRow._make(_ATTEMPT(self))


@dataclass(slots=True)
class RunState:
    admission: int
    created: Create
    graph: GraphState
    created_at: int
    deadline_at: int | None
    status: RunStatus = RunStatus.PENDING
    gate: GateState = GateState.HELD
    token: GateToken | None = None
    last_token: str | None = None
    reported_until: int = 0
    purpose: str | None = "load"
    arguments: bytes = b""
    expires_at: int | None = None
    stopping: bool = False
    open: int = 0
    active: int = 0
    failed: int = 0
    tolerated: int = 0
    error: str | None = None
    seq: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    cancel_at: int | None = None
    reason: str | None = None
    heals: int = 0
    former_graphs: set[str] = field(default_factory=set)
    nodes: list[NodeState] = field(default_factory=list)
    attempts: list[AttemptState] = field(default_factory=list)
    journal: list[JournalRow] = field(default_factory=list)
    lines: dict[tuple[str, int], LineRow] = field(default_factory=dict)

    @property
    def id(self) -> RunId:
        return self.created.run_id

    def note(self, at: int, kind: JournalKind, index: int | None, attempt: int | None, status: str | None) -> None:
        """Add to the journal; `seq` numbers the entries without a gap."""
        self.seq += 1
        self.journal.append(JournalRow(self.seq, at, kind, index, attempt, status))

    def recount(self) -> None:
        self.open = sum(not node.status.terminal for node in self.nodes)
        self.active = sum(node.status in ACTIVE_NODES for node in self.nodes)
        self.failed = sum(node.status in FAILED_NODES for node in self.nodes)

    def gate_facts(self) -> GateFacts:
        return GateFacts(self.status, self.gate, self.token, self.purpose, self.expires_at, self.last_token)

    def news(self) -> RunNews:
        return RunNews(self.id, self.status, self.gate, self.purpose, self.open, self.active, self.failed, self.seq)

    def row(self) -> RunRow:
        return RunRow._make((*_RUN(self), False))


@dataclass(slots=True)
class WorkerState:
    id: str
    lease_until: int
    renewed_at: int
    info: bytes
    lease: int

    def row(self) -> WorkerRow:
        return WorkerRow(self.id, self.lease_until, self.renewed_at, self.info)  # type: ignore[arg-type]


@dataclass(slots=True)
class MemoryState:
    graphs: dict[str, GraphState] = field(default_factory=dict)
    runs: dict[str, RunState] = field(default_factory=dict)
    claims: dict[str, dict[int, AttemptState]] = field(default_factory=dict)
    workers: dict[str, WorkerState] = field(default_factory=dict)
    records: Records = field(default_factory=dict)
    admissions: int = 0
    graphs_stored: int = 0
    swept_at: int | None = None

    def attempt(self, claim: str, ordinal: int) -> AttemptState | None:
        return self.claims.get(claim, {}).get(ordinal)

    def run_of_key(self, workflow: str, key: str | None) -> RunState | None:
        """The run of this workflow that has this idempotency key."""
        created = ((run, run.created) for run in self.runs.values() if key is not None)
        return next((run for run, made in created if (made.idempotency_key, made.workflow) == (key, workflow)), None)

    def uses(self, digest: str) -> bool:
        """Some run has this graph, or had it once."""
        return any(digest == run.graph.digest or digest in run.former_graphs for run in self.runs.values())

    def forget(self, attempt: AttemptState) -> None:
        """An attempt is deleted, and with the last one of its claim the claim."""
        granted = self.claims[attempt.claim]
        del granted[attempt.ordinal]
        if not granted:
            del self.claims[attempt.claim]
