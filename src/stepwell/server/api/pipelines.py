"""Pipelines: how their states stand and why, what a scan would do, and scans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field
from starlette.requests import Request

from ...answers.page import PageOf
from ...answers.pipelines import (
    ChangedStates,
    EntityRecord,
    LinksRecord,
    PipelineDetail,
    PipelineRecord,
    PlanRecord,
    ScanRecord,
    StageFailures,
    StageRecord,
    StagesRecord,
    StateExplanation,
    StateRecord,
)
from ...answers.staleness import Status
from ...answers.streams import GoneMessage, StateMessage
from ...core.store.living import living
from ...pipeline import Pipeline
from ...pipeline.connected import drawing, links
from ...pipeline.looking import StateView
from ...pipeline.noting import note_request
from ...pipeline.states.notes import read_failures
from .. import paging
from ..bodies import Body
from ..builds import Build
from ..problems import HttpProblem
from ..routes import Routes
from ..service import Given, ServerProcess
from ..streams.sse import BEGIN, HEARTBEAT, HEARTBEAT_SECONDS, EventStream, describe_stream, event
from ..streams.states import States
from .events import Visitor

routes = Routes("pipelines")

CLOSING_SECONDS = 0.5
"""How soon a stream that has nothing to tell sees that the server is closing."""


def _pipeline(service: ServerProcess, name: str) -> Pipeline:
    found = service.pipelines.get(name)
    if found is None:
        known = ", ".join(service.pipelines) or "none: name them with --pipeline, or `pipelines` in stepwell.toml"
        raise HttpProblem(404, f"no pipeline {name[:200]!r} is served here; there are: {known}")
    return found


class Targets(Body):
    """States, entities or stages."""

    targets: list[Annotated[str, Field(max_length=4_000)]] = Field(default_factory=list, max_length=10_000)
    """Paths of states, entities or stages; globs, too."""


class InvalidateRequest(Targets):
    """Which states to make anew."""

    stage: str | None = Field(default=None, max_length=200)
    """Only those of this stage."""


class ScanRequest(Targets):
    """What to make."""

    force: bool = False
    """Also what is fresh, and what no stage has made."""
    existing: bool = False
    """Fire triggers also for states that were there before them."""
    dry_run: bool = False
    """Only say what would be made."""
    after: list[str] = Field(default_factory=list, max_length=100)
    """With `dry_run`: pipelines that are scanned first."""


class CleanRequest(Body):
    """Whether to remove states."""

    dry_run: bool = False
    """Only say what would be removed."""


@routes.get("/pipelines", "read")
def list_pipelines(service: Given) -> list[PipelineRecord]:
    """The pipelines that this server was started with."""
    return [
        {"name": each.name, "states": str(each.store.url), "stages": list(each.stages)}
        for each in service.pipelines.values()
    ]


@routes.get("/pipelines/{name}/status", "read", threads="view")
def get_pipeline_status(
    name: str, service: Given, entity: Annotated[str | None, Query(max_length=1_000)] = None
) -> PipelineDetail:
    """How many states stand where, and all that are not fresh, each with its causes; and the scan that runs, or was last.

    With `entity` only its states, also those that are fresh.
    """
    pipeline, build = _pipeline(service, name), service.builds.last(name)
    # The scan comes first: if it has ended, what it made is in the status.
    scan = None if build is None else build.to_dict()
    return {**pipeline.view().status(entity).to_dict(), "scan": scan}


@routes.get("/pipelines/{name}/states", "read", threads="view")
def list_states(
    name: str,
    service: Given,
    status: Annotated[Status | None, Query()] = None,
    stage: Annotated[str | None, Query(max_length=200)] = None,
    entity: Annotated[str | None, Query(max_length=1_000)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> PageOf[StateRecord]:
    """The states of a pipeline, by stage and entity."""
    after = paging.read(cursor, paging.Pair)
    view = _pipeline(service, name).view()
    place: Callable[[StateView], tuple[str, str]] = attrgetter("stage", "entity")
    chosen = [
        each
        for each in sorted((*view.states(), *view.orphans()), key=place)
        if (after is None or place(each) > after)
        and (status is None or each.standing.status == status)
        and (stage is None or each.stage == stage)
        and (entity is None or each.entity == entity)
    ]
    page = chosen[:limit]
    return paging.page([each.to_dict() for each in page], place(page[-1]) if len(chosen) > limit else None)


@routes.get("/pipelines/{name}/entities", "read", threads="view")
def list_entities(
    name: str, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100
) -> PageOf[EntityRecord]:
    """The entities of a pipeline, and how many of their states stand where."""
    after = paging.read(cursor, paging.Text)
    counts: defaultdict[str, Counter[Status]] = defaultdict(Counter)
    for each in _pipeline(service, name).view().states():
        counts[each.entity][each.standing.status] += 1
    names = sorted(entity for entity in counts if after is None or entity > after)
    items: list[EntityRecord] = [{"entity": entity, "counts": counts[entity]} for entity in names[:limit]]
    more = names[limit - 1] if len(names) > limit else None
    return paging.page(items, more)


@routes.get("/pipelines/{name}/graph", "read", threads="view")
def get_pipeline_graph(name: str, service: Given) -> StagesRecord:
    """The stages, what they read and write, and which reads what another writes."""
    pipeline = _pipeline(service, name)
    connections = pipeline.connections
    stages: list[StageRecord] = [
        {
            "name": stage.name,
            "inputs": {each: str(pattern) for each, pattern in stage.inputs.items()},
            "outputs": {each: str(output.pattern) for each, output in stage.outputs.items()},
            "after": sorted({writer for reading in connections.readings[stage.name] for writer in reading.writers}),
        }
        for stage in connections.order
    ]
    return {"pipeline": name, "stages": stages}


@routes.get("/pipelines/{name}/why", "read", threads="view")
def get_state_why(name: str, service: Given, state: Annotated[str, Query(max_length=4_000)]) -> StateExplanation:
    """Why a state, named by its path, stands as it does."""
    return _pipeline(service, name).why(state).to_dict()


@routes.get("/pipelines/{name}/failures", "read", threads="view")
def list_failures(name: str, service: Given) -> StageFailures:
    """What failed, why, and when it is tried again."""
    found = read_failures(_pipeline(service, name).store.notes, name)
    return {"failures": {unit: failure.to_dict() for unit, failure in sorted(found.items())}}


@routes.get("/pipeline-links", "read", threads="view")
def get_links(service: Given, name: Annotated[list[str] | None, Query(max_length=100)] = None) -> LinksRecord:
    """Which stages read what others write, within these pipelines and between them; without a name of all there are."""
    chosen = [_pipeline(service, each) for each in dict.fromkeys(name or service.pipelines)]
    return {"links": [link.to_dict() for link in links(chosen)], "mermaid": drawing(chosen)}


@routes.post(
    "/pipelines/{name}/scan",
    "run",
    response_model=PlanRecord,
    responses={202: {"model": ScanRecord, "description": "The scan has begun; `scans/{id}` tells of it."}},
)
def scan_pipeline(name: str, service: Given, response: Response, body: ScanRequest | None = None) -> Any:
    """Produce what is missing or stale, as runs of this store; with dry_run only say what would run."""
    given, pipeline = body or ScanRequest(), _pipeline(service, name)
    if given.dry_run:
        before = [_pipeline(service, each) for each in dict.fromkeys(given.after)]
        return pipeline.plan(*given.targets, force=given.force, after=before).to_dict()
    if service.worker is None and not living(service.store):
        raise HttpProblem(409, "this server has no runner, and no worker is alive that could make states: start one")
    if given.targets:
        pipeline.view().chosen(given.targets)  # which refuses unknown targets before the scan begins
    engine = service.worker or service.engine
    build = Build(pipeline, engine, given.targets, force=given.force, existing=given.existing)
    if not service.builds.begin(pipeline, build):
        running = service.builds.last(name)
        hint = "" if running is None else f"; GET scans/{running.id} tells of it"
        busy = f"a scan of {name} is running already{hint}"
        raise HttpProblem(409, busy, error="PipelineBusy", headers={"Retry-After": "5"})
    note_request(service.store, name, "scan", given.targets, force=given.force, existing=given.existing)
    response.status_code = 202
    return build.to_dict()


@routes.get("/pipelines/{name}/scans/{scan}", "read")
def get_scan(name: str, scan: Annotated[str, Path(max_length=100)], service: Given) -> ScanRecord:
    """A scan that was asked for here: whether it runs, how far it is, and what it did. The last ones are known."""
    pipeline = _pipeline(service, name)
    build = service.builds.get(pipeline.name, scan)
    if build is None:
        raise HttpProblem(404, f"no scan {scan[:100]!r} of {name} is known: only the latest are kept")
    return build.to_dict()


@routes.post("/pipelines/{name}/invalidate", "run")
def invalidate_states(name: str, body: InvalidateRequest, service: Given) -> ChangedStates:
    """Have states made anew with the next scan."""
    changed = _pipeline(service, name).invalidate(*body.targets, stage=body.stage)
    return _changed(service, name, "invalidate", changed, body.targets, stage=body.stage)


@routes.post("/pipelines/{name}/accept", "run")
def accept_states(name: str, body: Targets, service: Given) -> ChangedStates:
    """Take files as they are for the states that they stand for."""
    return _changed(service, name, "accept", _pipeline(service, name).accept(*body.targets), body.targets)


@routes.post("/pipelines/{name}/retry", "run")
def retry_states(name: str, body: Targets, service: Given) -> ChangedStates:
    """Try what failed again with the next scan, whatever its back-off says."""
    return _changed(service, name, "retry", _pipeline(service, name).retry(*body.targets), body.targets)


@routes.post("/pipelines/{name}/clean", "run")
def clean_states(name: str, service: Given, body: CleanRequest | None = None) -> ChangedStates:
    """Remove states whose source is gone."""
    dry_run = body is not None and body.dry_run
    removed = _pipeline(service, name).clean(dry_run=dry_run)
    return {"changed": removed} if dry_run else _changed(service, name, "clean", removed)


def _changed(
    service: ServerProcess, name: str, verb: str, changed: list[str], targets: Sequence[str] = (), **options: Any
) -> ChangedStates:
    if changed:
        note_request(service.store, name, verb, targets, changed=len(changed), **options)
    return {"changed": changed}


@routes.get(
    "/pipelines/{name}/events",
    "read",
    response_class=EventStream,
    responses=describe_stream(StateMessage | GoneMessage),
)
async def follow_pipeline(name: str, service: Given, request: Request) -> EventStream:
    """How states stand, whenever that changes. First come all of them; after a break they come again.

    They are looked at when files change, once for all streams, and less often where a look takes long.
    """
    return EventStream(service.feed.room(), _state_events(service, _pipeline(service, name), Visitor(service, request)))


async def _state_events(service: ServerProcess, pipeline: Pipeline, visitor: Visitor) -> AsyncIterator[bytes]:
    yield BEGIN
    seen: States = {}
    quiet = 0.0
    with service.state_feed.following(pipeline) as follower:
        while not service.feed.closed and await visitor.may_stay():
            found = seen if follower.states is None else follower.states
            for place, told in found.items():
                if seen.get(place) != told:
                    yield event({"event": "state", "data": told})
            for place in seen.keys() - found.keys():
                yield event({"event": "gone", "data": {"stage": place[0], "entity": place[1]}})
            seen = found
            if await follower.wait(CLOSING_SECONDS):
                quiet = 0.0
                continue
            quiet += CLOSING_SECONDS
            if quiet >= HEARTBEAT_SECONDS:
                quiet = 0.0
                yield HEARTBEAT
