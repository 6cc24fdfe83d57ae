"""What reports on a run answer with: why it stands as it does, its metrics, checkpoints, effects, comparisons, results."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..core.model import NodeStatus, RunStatus
from .models import EXAMPLE_TIME


class Results(BaseModel):
    """What a run is for."""

    run: str
    status: RunStatus
    result: Any = Field(
        description="The output of its last node, or those of its last nodes by name.", examples=[{"result": 42}]
    )


class CauseModel(BaseModel):
    """One reason, and the reasons behind it."""

    kind: str = Field(examples=["attempt_failed"])
    node: str | None = None
    name: str | None = None
    attempt: int | None = None
    at: str | None = Field(default=None, description="When it happened or is due.", examples=[EXAMPLE_TIME])
    detail: dict[str, Any] = Field(default_factory=dict, examples=[{"error": "TimeoutError"}])
    because: list[CauseModel] = Field(default_factory=list)


class WhyModel(BaseModel):
    """Why a run, or one of its nodes, stands as it does."""

    run: str
    workflow: str
    run_status: RunStatus
    node: str | None = None
    name: str | None = None
    status: str = Field(description="Of the node, or of the run.", examples=["WAITING"])
    reason: str | None = None
    causes: list[CauseModel]
    advice: list[str] = Field(description="What can be done about it.")
    text: str = Field(description="All of it for people, line by line.")


class AuditModel(BaseModel):
    """The invariants of a run, recomputed from its rows."""

    run: str
    status: RunStatus
    journal_entries: int
    problems: list[str] = Field(description="None means that all of them hold.")


class LatencyModel(BaseModel):
    """Seconds."""

    samples: int
    total: float
    average: float
    p50: float
    p95: float
    most: float


class MetricsModel(BaseModel):
    """A run in numbers; docs/metrics.md says what each is."""

    model_config = ConfigDict(extra="allow")
    run_id: str
    status: RunStatus
    steps: int
    nodes: int
    active: int
    most_active: int
    queued: int
    most_queued: int
    executed: int
    attempts: int
    retries: int
    lost: int
    released: int
    heals: int
    wall_seconds: float
    average_active: float
    step_latency: LatencyModel
    queue_latency: LatencyModel


class EffectErrorModel(BaseModel):
    """What an effect raised."""

    model_config = ConfigDict(extra="allow")
    type: str
    message: str


class EffectModel(BaseModel):
    """What a body asked of the outside world and was answered, as it was recorded."""

    model_config = ConfigDict(extra="allow")
    node: str
    attempt: int
    index: int
    name: str
    request: Any
    response: Any
    error: EffectErrorModel | None = None
    time: float
    seconds: float
    durable: bool
    from_attempt: int | None = Field(
        default=None, description="The attempt that was answered first, if it was not this one."
    )
    masked: bool = Field(default=False, description="`***` stands for a secret.")
    open: bool = Field(default=False, description="Its body ended without waiting for the answer.")


class LabelModel(BaseModel):
    """A name that a body gave to a checkpoint."""

    label: str
    step: int = Field(description="The `seq` of the journal entry that it stands for.")
    time: float
    node: str
    attempt: int


class WorkItemModel(BaseModel):
    """A node that was at work, or could have been."""

    node: str
    status: NodeStatus
    attempt: int
    level: int
    order_key: str
    parents: list[str]
    edge: int


class CheckpointModel(BaseModel):
    """How a run stood at one `seq` of its journal."""

    version: int
    run_id: str
    step: int
    state: dict[str, Any] | None = None
    frontier: list[WorkItemModel]
    seed: str
    effects: list[dict[str, Any]]
    idempotency_key: str
    timestamp: str
    label: str | None = None


class ChangeModel(BaseModel):
    """One place that differs; values are JSON, shortened."""

    path: str = Field(examples=["$.total"])
    first: str | None = None
    second: str | None = None


class SideModel(BaseModel):
    run: str
    workflow: str
    status: RunStatus
    seconds: float | None = None
    input: Any
    digest: str


class NodeFactsModel(BaseModel):
    status: NodeStatus
    attempts: int
    seconds: float | None = None
    output_sha256: str | None = None
    delta_sha256: str | None = None


class PairModel(BaseModel):
    """A node in both runs."""

    id: str
    name: str
    differs: list[str] = Field(description="In which respects.")
    first: NodeFactsModel | None = None
    second: NodeFactsModel | None = None
    ratio: float | None = None
    output: list[ChangeModel]
    delta: list[ChangeModel]


class ComparisonModel(BaseModel):
    """Two runs side by side."""

    same_outputs: bool
    same_deltas: bool
    first: SideModel
    second: SideModel
    input: list[ChangeModel]
    graph: list[ChangeModel]
    nodes: list[PairModel]


class FrozenNode(BaseModel):
    """A node as it can be edited; options that differ from their default are beside."""

    model_config = ConfigDict(extra="allow")
    name: str
    job: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)
    depends_on: list[str] = Field(default_factory=list)
    position: int | float


class FrozenGraph(BaseModel):
    """A graph in the form that can be edited and put back."""

    model_config = ConfigDict(extra="allow")
    version: int
    signature: str
    frozen_at: str
    nodes: dict[str, FrozenNode]
