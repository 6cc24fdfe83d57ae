"""Triggers: what starts runs by itself; and the webhooks among them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from ...base.clock import SECOND
from ...core.model import ListRecords
from ...core.store import reader
from ...errors import InputError
from ...triggers.book import StoredTrigger, Triggers
from ...triggers.definition import Trigger
from ...triggers.kinds import Kind
from ...triggers.state import RECORD
from ...triggers.times import moment, time_text
from ...triggers.webhook import MAX_BODY
from .. import paging
from ..hooks import start_by
from ..models import Body, Page, version_data
from ..problems import HttpProblem
from ..routes import Routes, described_body
from ..service import Given, ServerProcess

routes = Routes("triggers")
hooks = Routes("webhooks", prefix="")

Name = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", examples=["nightly"])]


class LastFire(BaseModel):
    time: str
    run: str | None


class BackfillModel(BaseModel):
    after: str
    until: str


class TriggerModel(BaseModel):
    """A trigger, and how it stands."""

    model_config = ConfigDict(extra="allow")  # what kind of trigger it is says which fields its definition has
    name: str = Field(examples=["nightly"])
    workflow: str = Field(examples=["report"])
    kind: Kind
    version: int
    paused: bool
    declared_in: str | None = Field(default=None, description="The document or class that declares it.")
    added_at: str
    next: list[str] = Field(description="When it fires next.", examples=[["2026-03-29T01:00:00Z"]])
    last: LastFire | None = None
    fired: int
    left_out: int
    waiting: int = Field(description="Times that wait for the run before, or to be started.")
    backfills: list[BackfillModel]
    error: str | None = Field(default=None, description="Why the latest start did not succeed.")


class TriggerVersion(BaseModel):
    version: int
    digest: str
    saved_at: str
    active: bool


class Fire(Body):
    input: dict[str, Any] | None = Field(default=None, description="Takes the place of the trigger's own.")
    key: str | None = Field(default=None, max_length=80, description="The same key is the same run.")


class Fired(BaseModel):
    run: str = Field(examples=["nightly:2026-03-29T01:00:00Z"])
    new: bool = Field(default=True, description="False: this delivery came before, and started that run then.")


class BackfillRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"start": "2026-03-01T00:00:00Z", "end": "2026-03-08T00:00:00Z"}]},
    )
    start: str = Field(max_length=60, description="The first time that counts.")
    end: str = Field(max_length=60, description="Not included, and not later than now.")
    dry_run: bool = False


class Times(BaseModel):
    times: list[str]
    dry_run: bool


_EXAMPLE = {
    "name": "nightly",
    "workflow": "report",
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
    "input": {"day": "{{ fire.date }}"},
}


def _triggers(service: ServerProcess, name: str | None = None) -> Triggers:
    """The triggers; 404 if there is none of this name."""
    if name is not None and reader.get_record(service.store, RECORD, name) is None:
        raise HttpProblem(404, f"there is no trigger {name[:100]!r}; GET /api/v1/triggers lists those there are")
    return (service.worker or service.engine).triggers


def _model(stored: StoredTrigger, count: int = 5) -> TriggerModel:
    return TriggerModel.model_validate(stored.as_json(count))


@routes.get("/triggers", "read")
def list_triggers(service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100) -> Page[TriggerModel]:
    """The triggers, by name."""
    (rows,) = service.store.read([ListRecords(RECORD, after=paging.read(cursor, paging.Text), limit=limit)])
    items = [_model(_triggers(service).stored(row)) for row in rows]
    return Page[TriggerModel](items=items, next=paging.written(rows.cursor))


@routes.post(
    "/triggers",
    "author",
    status_code=201,
    response_model=TriggerModel,
    responses={200: {"model": TriggerModel, "description": "There was one of this name: this is its version now."}},
    openapi_extra=described_body(_EXAMPLE),
)
async def add_trigger(request: Request, service: Given, response: Response) -> Any:
    """Store a trigger, or a new version of it. A refusal lists every problem and its place."""
    trigger = Trigger.of(await request.json())

    def add() -> tuple[bool, StoredTrigger]:
        there = reader.get_record(service.store, RECORD, trigger.name) is not None
        return there, _triggers(service).add(trigger)

    there, stored = await service.commit(add)
    response.status_code = 200 if there else 201
    response.headers["Location"] = f"/api/v1/triggers/{trigger.name}"
    return _model(stored)


@routes.get("/triggers/{name}", "read")
def get_trigger(
    name: Name, service: Given, next: Annotated[int, Query(ge=0, le=100, description="So many next times.")] = 5
) -> TriggerModel:
    """A trigger: its definition, how it stands, and when it fires next."""
    return _model(_triggers(service, name).get(name), next)


@routes.get("/triggers/{name}/versions", "read")
def list_trigger_versions(name: Name, service: Given) -> list[TriggerVersion]:
    """The versions of its definition, oldest first."""
    triggers = _triggers(service, name)
    active = triggers.get(name).version
    versions = ({**version_data(row), "active": row.number == active} for row in triggers.versions(name))
    return [TriggerVersion.model_validate(each) for each in versions]


@routes.delete("/triggers/{name}", "author", status_code=204)
def remove_trigger(name: Name, service: Given) -> None:
    """Forget a trigger. Runs that it started stay."""
    _triggers(service, name).remove(name)


@routes.post("/triggers/{name}/pause", "run")
def pause_trigger(name: Name, service: Given) -> TriggerModel:
    """Fire no more until it is resumed."""
    return _model(_triggers(service, name).pause(name))


@routes.post("/triggers/{name}/resume", "run")
def resume_trigger(name: Name, service: Given) -> TriggerModel:
    """Go on from now: times that passed meanwhile are not caught up."""
    return _model(_triggers(service, name).resume(name))


@routes.post("/triggers/{name}/fire", "run", status_code=201)
def fire_trigger(name: Name, service: Given, response: Response, body: Fire | None = None) -> Fired:
    """Start a run now, whether it is due or not."""
    given = body or Fire()
    _triggers(service, name)
    triggers = Triggers(service.store, lambda start: start_by(service.worker, service.engine, start))
    run_id = triggers.fire(name, given.input, key=given.key)
    response.headers["Location"] = f"/api/v1/runs/{run_id}"
    return Fired(run=run_id)


@routes.post("/triggers/{name}/backfill", "run")
def backfill_trigger(name: Name, body: BackfillRequest, service: Given) -> Times:
    """Start the runs of past times that have none. Whoever serves starts them."""
    triggers = _triggers(service, name)
    start, end = moment(body.start), moment(body.end)
    if start is None or end is None:
        raise InputError("start and end are times with their offset, as 2026-03-01T00:00:00Z")
    times = triggers.backfill(name, start, end, dry_run=body.dry_run)
    return Times(times=[time_text(time - time % SECOND) for time in times], dry_run=body.dry_run)


@hooks.open(
    "POST",
    "/hooks/{name}",
    status_code=201,
    response_model=Fired,
    responses={
        200: {"model": Fired, "description": "This delivery came before: the run that it started then."},
        429: {"description": "Too many requests; Retry-After says when to come again."},
    },
    openapi_extra={
        "requestBody": {
            "required": False,
            "content": {
                "application/json": {"schema": {}},
                "application/x-www-form-urlencoded": {"schema": {"type": "object"}},
                "text/plain": {"schema": {"type": "string"}},
            },
        }
    },
)
async def receive_webhook(name: str, request: Request, service: Given, response: Response) -> Any:
    """Start the run of a webhook. Its sender proves by a secret, or by a signature over the raw body, who it is."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HttpProblem(413, f"a webhook takes at most {MAX_BODY:,} bytes")
    headers = {key.lower(): value for key, value in request.headers.items()}
    client = request.client.host if request.client is not None else ""
    query = dict(request.query_params)
    received = await service.commit(service.hooks.receive, name, bytes(body), headers, query, client)
    response.status_code = 201 if received.is_new else 200
    response.headers["Location"] = f"/api/v1/runs/{received.run_id}"
    return Fired(run=received.run_id, new=received.is_new)
