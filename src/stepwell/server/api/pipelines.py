"""Pipelines: how their states stand and why, what a scan would do, and scans."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from ...pipeline import Pipeline
from ...pipeline.looking import StateView
from .. import paging
from ..builds import Build
from ..models import Page
from ..problems import Problem
from ..routes import Routes
from ..service import Given, Service
from ..streams.looks import LOOK_SECONDS, States
from ..streams.sse import BEGIN, HEARTBEAT, HEARTBEAT_SECONDS, event, stream
from .events import Visitor

routes = Routes("pipelines")

_SSE: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events, until the client goes.", "content": {"text/event-stream": {}}}
}


class PipelineModel(BaseModel):
    name: str = Field(examples=["auto-blog"])
    states: str = Field(description="Where its states are.")
    stages: list[str]


class StateModel(BaseModel):
    """A stage of an entity: the states that are made together, and how they stand."""

    model_config = ConfigDict(extra="allow")
    stage: str
    entity: str
    outputs: list[str]
    status: str


class PipelineProblem(BaseModel):
    path: str
    problem: str


class BuildModel(BaseModel):
    """A scan that somebody asked for over HTTP."""

    running: bool
    report: dict[str, Any] | None = Field(default=None, description="What it did, once it has ended.")
    error: str | None = None


class PipelineStatusModel(BaseModel):
    """How many states stand where (`fresh`, `stale`, ... are beside), and all that are not fresh."""

    model_config = ConfigDict(extra="allow")
    pipeline: str
    entities: int
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

    model_config = ConfigDict(extra="allow")
    state: str
    stage: str | None = None
    entity: str
    status: str
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


class Targets(BaseModel):
    """States, entities or stages."""

    model_config = ConfigDict(extra="forbid")
    targets: list[str] = Field(default_factory=list, max_length=10_000)


class Invalidate(Targets):
    stage: str | None = Field(default=None, max_length=200)


class Scan(Targets):
    force: bool = False
    dry_run: bool = Field(default=False, description="Only say what would run.")


class Changed(BaseModel):
    changed: list[str]


def _pipeline(service: Service, name: str) -> Pipeline:
    found = service.pipelines.get(name)
    if found is None:
        known = ", ".join(service.pipelines) or "none: name them with --pipeline, or `pipelines` in stepwell.toml"
        raise Problem(404, f"no pipeline {name[:200]!r} is served here; there are: {known}")
    return found


@routes.get("/pipelines", "read")
def list_pipelines(service: Given) -> list[PipelineModel]:
    """The pipelines that this server was started with."""
    return [
        PipelineModel(name=each.name, states=str(each.store.url), stages=list(each.stages))
        for each in service.pipelines.values()
    ]


@routes.get("/pipelines/{name}/status", "read")
def get_pipeline_status(name: str, service: Given) -> PipelineStatusModel:
    """How many states stand where, and all that are not fresh, each with its causes; and the scan that runs, or was last."""
    told = _pipeline(service, name).status().to_json()
    build = service.builds.get(name)
    return PipelineStatusModel.model_validate({**told, "scan": None if build is None else build.to_json()})


@routes.get("/pipelines/{name}/states", "read")
def list_states(
    name: str,
    service: Given,
    status: Annotated[str | None, Query(max_length=50)] = None,
    stage: Annotated[str | None, Query(max_length=200)] = None,
    entity: Annotated[str | None, Query(max_length=1_000)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> Page[StateModel]:
    """The states of a pipeline, by stage and entity."""
    after = paging.read(cursor)
    if after is not None and not (
        isinstance(after, list) and len(after) == 2 and all(isinstance(x, str) for x in after)
    ):
        raise Problem(400, "the cursor is not one of this server: take `next` of the page before, as it is")
    found = sorted(_states(_pipeline(service, name)), key=_place)
    chosen = [
        each.to_json()
        for each in found
        if (after is None or _place(each) > tuple(after))
        and (status is None or each.standing.status == status)
        and (stage is None or each.stage == stage)
        and (entity is None or each.entity == entity)
    ]
    page = chosen[:limit]
    more = [page[-1]["stage"], page[-1]["entity"]] if len(chosen) > limit else None
    return Page.model_validate({"items": page, "next": paging.written(more)})


def _states(pipeline: Pipeline) -> list[StateView]:
    view = pipeline.view()
    return [*view.states(), *view.orphans()]


def _place(state: StateView) -> tuple[str, str]:
    return state.stage, state.entity


@routes.get("/pipelines/{name}/entities", "read")
def list_entities(
    name: str, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100
) -> Page[EntityModel]:
    """The entities of a pipeline, and how many of their states stand where."""
    after = paging.read_text(cursor)
    counts: dict[str, dict[str, int]] = {}
    for each in _pipeline(service, name).view().states():
        of_entity = counts.setdefault(each.entity, {})
        of_entity[each.standing.status] = of_entity.get(each.standing.status, 0) + 1
    names = sorted(entity for entity in counts if after is None or entity > after)
    items = [{"entity": entity, "counts": counts[entity]} for entity in names[:limit]]
    more = names[limit - 1] if len(names) > limit else None
    return Page.model_validate({"items": items, "next": paging.written(more)})


@routes.get("/pipelines/{name}/graph", "read")
def get_pipeline_graph(name: str, service: Given) -> PipelineGraph:
    """The stages, what they read and write, and which reads what another writes."""
    pipeline = _pipeline(service, name)
    connections = pipeline.connections
    stages = [
        StageModel(
            name=stage.name,
            inputs={each: str(pattern) for each, pattern in stage.inputs.items()},
            outputs={each: str(output.pattern) for each, output in stage.outputs.items()},
            after=sorted({writer for reading in connections.readings[stage.name] for writer in reading.writers}),
        )
        for stage in connections.order
    ]
    return PipelineGraph(pipeline=name, stages=stages)


@routes.get("/pipelines/{name}/why", "read")
def get_state_why(name: str, service: Given, state: Annotated[str, Query(max_length=4_000)]) -> StateWhy:
    """Why a state, named by its path, stands as it does."""
    return StateWhy.model_validate(_pipeline(service, name).why(state).to_json())


@routes.post(
    "/pipelines/{name}/scan",
    "run",
    response_model=PlanModel,
    responses={202: {"model": BuildModel, "description": "The scan has begun; `status` tells of it."}},
)
def scan_pipeline(name: str, service: Given, response: Response, body: Scan | None = None) -> Any:
    """Produce what is missing or stale, as runs of this store; with dry_run only say what would run."""
    given, pipeline = body or Scan(), _pipeline(service, name)
    if given.dry_run:
        return pipeline.plan(given.targets, force=given.force).to_json()
    running = service.builds.get(name)
    if running is not None and running.running:
        raise Problem(409, f"a scan of {name} is running already; GET status tells of it", headers={"Retry-After": "5"})
    if service.worker is None:
        raise Problem(409, "this server has no runner: the orchestrator scans, or a server without --no-runner")
    if given.targets:
        pipeline.view().chosen(given.targets)  # which says what is not there, before it begins
    build = service.builds[name] = Build(pipeline, service.worker, given.targets, force=given.force)
    build.start()
    response.status_code = 202
    return BuildModel.model_validate(build.to_json())


@routes.post("/pipelines/{name}/invalidate", "run")
def invalidate_states(name: str, body: Invalidate, service: Given) -> Changed:
    """Have states made anew with the next scan."""
    return Changed(changed=_pipeline(service, name).invalidate(*body.targets, stage=body.stage))


@routes.post("/pipelines/{name}/accept", "run")
def accept_states(name: str, body: Targets, service: Given) -> Changed:
    """Take files as they are for the states that they stand for."""
    return Changed(changed=_pipeline(service, name).accept(*body.targets))


@routes.post("/pipelines/{name}/retry", "run")
def retry_states(name: str, body: Targets, service: Given) -> Changed:
    """Try what failed again with the next scan, whatever its back-off says."""
    return Changed(changed=_pipeline(service, name).retry(*body.targets))


@routes.get("/pipelines/{name}/events", "read", response_class=StreamingResponse, responses=_SSE)
async def follow_pipeline(name: str, service: Given, request: Request) -> StreamingResponse:
    """How states stand, whenever that changes. First come all of them; after a break they come again.

    They are looked at every two seconds, once for all streams, and less often where a look takes long.
    """
    service.feed.check_room()
    return stream(_state_events(service, _pipeline(service, name), Visitor(service, request)))


async def _state_events(service: Service, pipeline: Pipeline, visitor: Visitor) -> AsyncIterator[bytes]:
    yield BEGIN
    seen: States = {}
    quiet = 0.0

    def look() -> States:
        return {_place(each): each.to_json() for each in _states(pipeline)}

    while not service.feed.closed:
        found = await to_thread.run_sync(service.looks.states, pipeline.name, look)
        for place, told in found.items():
            if seen.get(place) != told:
                quiet = 0.0
                yield event("state", told)
        for place in seen.keys() - found.keys():
            yield event("gone", {"stage": place[0], "entity": place[1]})
        seen = found
        quiet += LOOK_SECONDS
        if quiet >= HEARTBEAT_SECONDS:
            quiet = 0.0
            if not await visitor.may_stay():
                return
            yield HEARTBEAT
        await service.feed.pause(LOOK_SECONDS)
