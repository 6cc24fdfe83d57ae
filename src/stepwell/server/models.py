"""What the API answers with. The keys are those of `engine/runs/records.py`, which are a promise."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ..base.words import iso
from ..core.model import AttemptStatus, NodeStatus, RunStatus, VersionRow

Item = TypeVar("Item")
EXAMPLE_TIME = "2026-01-15T10:30:02.000000Z"


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    next: str | None = Field(
        default=None, description="Pass it as `cursor` for the page after this one; null at the end."
    )


class Origin(BaseModel):
    """What a fork was made from."""

    run: str
    seq: int
    node: str | None = None


class RunModel(BaseModel):
    """A run, as lists have it."""

    id: str = Field(examples=["0199c1f2a7b3c0de0199c1f2a7b3c0de"])
    workflow: str = Field(examples=["summarise"])
    target: str | None = Field(examples=[None])
    status: RunStatus
    reason: str | None = None
    priority: int = 0
    idempotency_key: str | None = None
    tags: dict[str, str] = Field(default_factory=dict, examples=[{"customer": "7"}])
    nodes_total: int
    nodes_open: int
    nodes_failed: int
    created_at: str = Field(examples=[EXAMPLE_TIME])
    started_at: str | None = None
    ended_at: str | None = None
    deadline_at: str | None = None
    seconds: float | None = None
    origin: Origin | None = None
    seq: int = Field(description="How many entries its journal has.")


class DocumentRef(BaseModel):
    digest: str
    version: int | None = None


class RunDetail(RunModel):
    """A run with its input and how many of its nodes stand where."""

    input: Any
    digest: str
    document: DocumentRef | None = None
    heals: int = 0
    counts: dict[str, int] = Field(examples=[{"COMPLETED": 3, "FAILED": 1}])
    forks: list[str] = Field(default_factory=list)


class ErrorModel(BaseModel):
    type: str = Field(examples=["TimeoutError"])
    message: str
    traceback: str | None = None


class ProgressModel(BaseModel):
    model_config = ConfigDict(extra="allow")
    done: float
    total: float | None = None
    message: str | None = None
    fraction: float | None = None


class NodeModel(BaseModel):
    """A node of a run."""

    id: str = Field(examples=["fetch"])
    name: str
    index: int
    status: NodeStatus
    reason: str | None = None
    attempts: int
    failures: int
    queue: str
    due_at: str | None = None


class AttemptModel(BaseModel):
    """One try at a node."""

    id: str
    number: int
    status: AttemptStatus
    worker: str
    started_at: str
    ended_at: str | None = None
    seconds: float | None = None
    ancestry: str | None = Field(default=None, description="A hash of what it stands on.")
    config: Any = Field(
        default=None, description="Of a document: the config as its templates were rendered for this attempt."
    )
    outcome: dict[str, Any] = Field(default_factory=dict)
    error: ErrorModel | None = None


class NodeDetail(NodeModel):
    """A node with its attempts, its config as it is written, and where its output is."""

    job: str | None = None
    depends_on: list[str] = Field(default_factory=list)
    level: int
    config: dict[str, Any] = Field(default_factory=dict)
    progress: ProgressModel | None = None
    error: ErrorModel | None = None
    attempt_list: list[AttemptModel] = Field(default_factory=list)
    output: OutputModel | None = None


class OutputModel(BaseModel):
    """What a node returned. A large one is not in here: `href` has it, whole or in ranges."""

    node: str
    name: str
    size: int
    sha256: str
    href: str
    value: Any = None
    inline: bool = Field(description="Whether `value` has it.")


class JournalEntry(BaseModel):
    seq: int
    at: str
    kind: str = Field(examples=["completed"])
    node: str | None = None
    attempt: int | None = None
    status: str | None = None


class LogLine(BaseModel):
    run: str
    node_id: str
    node: str
    attempt: int
    time: str
    level: str
    logger: str
    message: str


class TouchedNode(BaseModel):
    id: str
    name: str
    status: NodeStatus
    becomes: NodeStatus


class Steered(BaseModel):
    """What a request did to a run, or would do."""

    run: str
    status: RunStatus
    dry_run: bool
    nodes: list[TouchedNode] = Field(default_factory=list, description="With dry_run: the nodes that would change.")


class SteeredOne(BaseModel):
    """One run of a bulk request."""

    run: str
    status: RunStatus | None = None
    done: bool
    detail: str | None = None
    fork: str | None = Field(default=None, description="Of fork: the run that was made.")


class SteeredMany(BaseModel):
    verb: str
    dry_run: bool
    matched: int
    done: int
    refused: int
    runs: list[SteeredOne]
    more: bool = Field(description="More runs match than the limit allows.")
    next: str | None = Field(default=None, description="Pass it as `cursor` to ask the same of the runs after these.")


class WorkflowModel(BaseModel):
    """A workflow that is known here: a stored document, or a class that workers have code for."""

    name: str = Field(examples=["summarise"])
    kind: str = Field(examples=["document"])
    version: int | None = Field(default=None, description="Of a document: the active version.")
    versions: int | None = None
    digest: str
    saved_at: str | None = None


class WorkflowDetail(WorkflowModel):
    description: str | None = None
    input: dict[str, Any] | None = Field(default=None, description="The JSON Schema of its input.")
    target: str | None = None
    document: dict[str, Any] | None = None


class VersionModel(BaseModel):
    name: str
    version: int
    digest: str
    size: int
    saved_at: str
    active: bool


def version_data(row: VersionRow) -> dict[str, Any]:
    own = {"name": row.name, "version": row.number, "digest": row.digest, "size": row.size}
    return {**own, "saved_at": iso(row.stored_at), "active": row.active}


class Saved(BaseModel):
    """What saving a document gave."""

    name: str
    version: int
    digest: str
    is_new: bool
    active: int


class Checked(BaseModel):
    """What checking a document found."""

    valid: bool
    name: str | None = None
    digest: str | None = None
    problems: list[dict[str, Any]] = Field(default_factory=list)


class GraphNode(BaseModel):
    id: str
    name: str
    kind: str
    job: str | None = None
    depends_on: list[str]
    level: int
    status: NodeStatus | None = None


class GraphModel(BaseModel):
    workflow: str
    digest: str
    signature: str
    nodes: list[GraphNode]


class WorkerModel(BaseModel):
    """A worker and its lease."""

    id: str
    lease_until: str
    renewed_at: str
    alive: bool
    info: dict[str, Any] = Field(default_factory=dict)


NodeDetail.model_rebuild()
