"""What routes of pipelines take, and what they answer with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from ..pipeline.staleness.standing import CauseCode, Status
from .bodies import Body


class PipelineModel(BaseModel):
    name: str = Field(examples=["auto-blog"])
    states: str = Field(description="Where its states are.")
    stages: list[str]


class CauseModel(BaseModel):
    """Why something is stale, or waits. `text` is for people, `subject` the path or function it is about."""

    cause: CauseCode
    text: str
    subject: str


class StateModel(BaseModel):
    """A stage of an entity: the states that are made together, and how they stand."""

    stage: str
    entity: str
    outputs: list[str]
    status: Status
    causes: list[CauseModel]
    dueAt: float | None = Field(default=None, description="When time alone will change it, in seconds since 1970.")


class PipelineProblem(BaseModel):
    path: str
    problem: str


class ProgressModel(BaseModel):
    done: int
    failed: int
    running: int
    ready: int


class BuildModel(BaseModel):
    """A scan that somebody asked for over HTTP."""

    id: str
    running: bool
    progress: ProgressModel | None = Field(
        default=None, description="Nodes of its runs, as they stood when it last looked."
    )
    report: dict[str, Any] | None = Field(default=None, description="What it did, once it has ended.")
    error: str | None = None


class PipelineStatusModel(BaseModel):
    """How many states stand where, and all that are not fresh."""

    pipeline: str
    entities: int
    fresh: int
    stale: int
    failed: int
    blocked: int
    waiting: int
    unrecorded: int
    orphan: int
    stages: dict[str, dict[str, int]] = Field(examples=[{"write": {"fresh": 2, "stale": 1}}])
    states: list[StateModel]
    problems: list[PipelineProblem]
    scan: BuildModel | None = Field(default=None, description="The scan that runs, or was last.")


class PlanModel(BaseModel):
    """What a scan would do."""

    willRun: list[StateModel] = Field(description="Stale, with every input at hand.")
    mayRun: list[StateModel] = Field(description="Below these: if what is above comes out different.")
    mayAppear: list[str] = Field(description="Stages that may get entities nobody knows yet.")


class StateWhy(BaseModel):
    """Why a state stands as it does."""

    state: str
    stage: str | None = None
    entity: str
    status: str
    causes: list[CauseModel]
    dueAt: float | None = None
    record: dict[str, Any] | None = None
    changedCode: list[str]
    notFollowed: dict[str, str]
    upstream: list[StateModel]


class StageModel(BaseModel):
    name: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    after: list[str] = Field(description="Stages whose outputs it reads.")


class PipelineGraph(BaseModel):
    pipeline: str
    stages: list[StageModel]


class EntityModel(BaseModel):
    entity: str
    counts: dict[str, int] = Field(examples=[{"fresh": 2, "stale": 1}])


class Targets(Body):
    """States, entities or stages."""

    targets: list[Annotated[str, Field(max_length=4_000)]] = Field(default_factory=list, max_length=10_000)


class Invalidate(Targets):
    stage: str | None = Field(default=None, max_length=200)


class Scan(Targets):
    force: bool = Field(default=False, description="Also what is fresh, and what nobody recorded.")
    existing: bool = Field(default=False, description="Fire triggers also for states that were there before them.")
    dry_run: bool = Field(default=False, description="Only say what would run.")
    after: list[str] = Field(
        default_factory=list, max_length=100, description="With dry_run: pipelines that are scanned first."
    )


class Clean(Body):
    dry_run: bool = Field(default=False, description="Only say what would be removed.")


class Changed(BaseModel):
    changed: list[str]


class FailureModel(BaseModel):
    """What went wrong with one stage of one entity, and when it is tried again."""

    error: str
    errorType: str
    attempts: int = Field(description="In a row.")
    firstFailedAt: float
    lastFailedAt: float
    nextRetryAt: float | None = Field(description="null: not before somebody asks.")
    identity: str = Field(description="Code, config and inputs it failed with: when they change, the back-off ends.")
    runId: str


class Failures(BaseModel):
    failures: dict[str, FailureModel] = Field(description="By stage and entity.")


class LinkModel(BaseModel):
    """A stage that reads what another writes; each as `pipeline#stage`."""

    writer: str
    output: str
    reader: str
    input: str


class Links(BaseModel):
    links: list[LinkModel]
    mermaid: str = Field(description="The same as a flowchart.")
