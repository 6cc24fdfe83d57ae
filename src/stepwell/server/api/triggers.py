"""Triggers: what starts runs by itself; and the webhooks among them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import ConfigDict, Field
from starlette.requests import Request

from ...answers.page import PageOf
from ...answers.triggers import BackfillRecord, FiredRecord, TriggerRecord
from ...answers.workflows import VersionRecord
from ...base.clock import SECOND
from ...core.model import ListRecords
from ...core.store import reader
from ...engine.documents import version_record
from ...errors import InputError
from ...triggers.book import StoredTrigger, Triggers
from ...triggers.definition import Trigger
from ...triggers.kinds import FORMS
from ...triggers.rendering import Start
from ...triggers.state import RECORD
from ...triggers.times import moment, time_text
from ...triggers.webhook import MAX_BODY
from .. import paging
from ..bodies import Body
from ..hooks import start_by
from ..problems import HttpProblem
from ..routes import Routes, described_body
from ..service import Given, ServerProcess
from .runs import IdempotencyKey

routes = Routes("triggers")
hooks = Routes("webhooks", prefix="")

Name = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", examples=["nightly"])]


class FireRequest(Body):
    """How to fire a trigger now."""

    input: dict[str, Any] | None = None
    """An input that takes the place of the trigger's own."""
    key: str | None = Field(default=None, max_length=80)
    """The same key is the same run."""


class BackfillRequest(Body):
    """Which times to fill in."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"start": "2026-03-01T00:00:00Z", "end": "2026-03-08T00:00:00Z"}]},
    )
    start: str = Field(max_length=60)
    """The first time that counts."""
    end: str = Field(max_length=60)
    """The end, which is not included and not later than now."""
    dry_run: bool = False
    """Only list the times."""


_EXAMPLE = {
    "name": "nightly",
    "workflow": "report",
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
    "input": {"day": "{{ fire.date }}"},
}


_ANY_KIND = {"oneOf": [{"$ref": f"#/components/schemas/{form.__name__}"} for form in FORMS.values()]}


def _triggers(service: ServerProcess, name: str | None = None) -> Triggers:
    """The triggers; 404 if there is none of this name."""
    if name is not None and reader.get_record(service.store, RECORD, name) is None:
        raise HttpProblem(404, f"there is no trigger {name[:100]!r}; GET /api/v1/triggers lists those there are")
    return (service.worker or service.engine).triggers


@routes.get("/triggers", "read")
def list_triggers(service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100) -> PageOf[TriggerRecord]:
    """The triggers, by name."""
    (rows,) = service.store.read([ListRecords(RECORD, after=paging.read(cursor, paging.Text), limit=limit)])
    triggers = _triggers(service)
    return paging.page([triggers.stored(row).to_dict() for row in rows], rows.cursor)


@routes.post(
    "/triggers",
    "author",
    status_code=201,
    responses={200: {"model": TriggerRecord, "description": "There was one of this name: this is its version now."}},
    openapi_extra=described_body(_ANY_KIND, _EXAMPLE),
)
async def add_trigger(request: Request, service: Given, response: Response) -> TriggerRecord:
    """Store a trigger, or a new version of it. A refusal lists every problem and its place."""
    trigger = await service.threads.run("check", Trigger.of, await request.json())

    def add() -> tuple[bool, StoredTrigger]:
        there = reader.get_record(service.store, RECORD, trigger.name) is not None
        return there, _triggers(service).add(trigger)

    there, stored = await service.commit(add)
    response.status_code = 200 if there else 201
    response.headers["Location"] = f"/api/v1/triggers/{trigger.name}"
    return stored.to_dict()


@routes.get("/triggers/{name}", "read")
def get_trigger(
    name: Name, service: Given, next: Annotated[int, Query(ge=0, le=100, description="So many next times.")] = 5
) -> TriggerRecord:
    """A trigger: its definition, how it stands, and when it fires next."""
    return _triggers(service, name).get(name).to_dict(next)


@routes.get("/triggers/{name}/versions", "read")
def list_trigger_versions(name: Name, service: Given) -> list[VersionRecord]:
    """The versions of its definition, oldest first."""
    triggers = _triggers(service, name)
    active = triggers.get(name).version
    return [{**version_record(row), "active": row.number == active} for row in triggers.versions(name)]


@routes.delete("/triggers/{name}", "author", status_code=204)
def remove_trigger(name: Name, service: Given) -> None:
    """Forget a trigger. Runs that it started stay."""
    _triggers(service, name).remove(name)


@routes.post("/triggers/{name}/pause", "run")
def pause_trigger(name: Name, service: Given) -> TriggerRecord:
    """Fire no more until it is resumed."""
    return _triggers(service, name).pause(name).to_dict()


@routes.post("/triggers/{name}/resume", "run")
def resume_trigger(name: Name, service: Given) -> TriggerRecord:
    """Go on from now: times that passed meanwhile are not caught up."""
    return _triggers(service, name).resume(name).to_dict()


@routes.post(
    "/triggers/{name}/fire",
    "run",
    status_code=201,
    responses={200: {"model": FiredRecord, "description": "This key came before: the run that it started then."}},
)
def fire_trigger(
    name: Name,
    service: Given,
    response: Response,
    body: FireRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> FiredRecord:
    """Start a run now, whether it is due or not. The same key, in the header or the body, is the same run."""
    given = body or FireRequest()
    key = given.key if idempotency_key is None else idempotency_key
    if given.key not in (None, key):
        raise InputError("expected one key, in the Idempotency-Key header or in the body: they differ")
    _triggers(service, name)
    is_new = True

    def begin(start: Start) -> bool:
        nonlocal is_new
        is_new = start_by(service.worker, service.engine, start)
        return is_new

    run_id = Triggers(service.store, begin).fire(name, given.input, key=key)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = f"/api/v1/runs/{run_id}"
    return {"run": run_id, "new": is_new}


@routes.post("/triggers/{name}/backfill", "run")
def backfill_trigger(name: Name, body: BackfillRequest, service: Given) -> BackfillRecord:
    """Start the runs of past times that have none. Whoever serves starts them."""
    triggers = _triggers(service, name)
    start, end = moment(body.start), moment(body.end)
    if start is None or end is None:
        raise InputError("start and end are times with their offset, as 2026-03-01T00:00:00Z")
    times = triggers.backfill(name, start, end, dry_run=body.dry_run)
    return {"times": [time_text(time - time % SECOND) for time in times], "dry_run": body.dry_run}


@hooks.open(
    "POST",
    "/hooks/{name}",
    status_code=201,
    responses={
        200: {"model": FiredRecord, "description": "This delivery came before: the run that it started then."},
        429: {"description": "Too many requests; Retry-After says when to come again."},
    },
    openapi_extra={
        "requestBody": {
            "required": False,
            "content": {
                "application/json": {"schema": {}},
                "application/x-www-form-urlencoded": {
                    "schema": {"type": "object", "additionalProperties": {"type": "string"}}
                },
                "text/plain": {"schema": {"type": "string"}},
            },
        }
    },
)
async def receive_webhook(name: str, request: Request, service: Given, response: Response) -> FiredRecord:
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
    return {"run": received.run_id, "new": received.is_new}
