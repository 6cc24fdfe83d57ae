"""What can be asked of runs: one by one, or many by a filter. Everything can say first what it would do."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Path, Response
from pydantic import Field

from ...core.model import RUN_VERBS, RunRow
from ...core.store import reader
from ...engine import Run
from ...engine.runs.control import Touched
from ...errors import InputError, RunConflict, StepwellError
from .. import paging
from ..models import Body, RunModel, Steered, SteeredMany, SteeredOne
from ..problems import HttpProblem, problem_of
from ..routes import Routes
from ..service import Given, ServerProcess
from .nodes import Node
from .runs import RunFilter, listed

routes = Routes("steering")

MAX_BULK = 1_000
Verb: TypeAlias = Literal["retry", "reattempt", "cancel", "pause", "resume", "fork"]


class Ask(Body):
    dry_run: bool = Field(default=False, description="Only say which nodes would change, and into what.")


class GoOn(Ask):
    accept: bool = Field(
        default=False, description="What the class has lost and gained since is no node under a new name."
    )
    input: dict[str, Any] | None = Field(default=None, description="Values for inputs that its class has got since.")


class Cancel(Ask):
    grace_seconds: float = Field(default=5.0, ge=0, le=86_400, description="How long what runs may take to stop.")


class Reattempt(Ask):
    cascade: bool = Field(default=False, description="Run again what completed below it, too.")


class Fork(Ask):
    at: int | str | None = Field(default=None, description="A seq, a label or a node; null: all that it has done.")
    input: dict[str, Any] | None = Field(default=None, description="What changes of the input, for what is not shared.")
    run_id: str | None = Field(default=None, max_length=200)


class Bulk(Body):
    """Which runs, and what is asked of them."""

    filter: RunFilter = RunFilter()
    limit: int = Field(default=100, ge=1, le=MAX_BULK, description="At most so many runs.")
    cursor: str | None = Field(default=None, max_length=500, description="`next` of the answer before: go on after it.")
    dry_run: bool = False
    grace_seconds: float = Field(default=5.0, ge=0, le=86_400, description="Of cancel.")
    node: str | None = Field(default=None, max_length=4_000, description="Of reattempt: which node of each run.")
    cascade: bool = Field(default=False, description="Of reattempt: run again what completed below it, too.")
    at: str | None = Field(
        default=None, max_length=4_000, description="Of fork: a label or a node; null: all it has done."
    )
    input: dict[str, Any] | None = Field(default=None, description="Of fork: what changes of the input.")
    key: str | None = Field(
        default=None,
        max_length=40,
        pattern="^[A-Za-z0-9_.-]+$",
        description="Of fork: the forks are called RUN-KEY, so asking again makes no more of them.",
    )


def _asked(service: ServerProcess, run_id: str, verb: Verb, body: Ask, *given: str) -> Steered:
    """Ask a run for what a body says: its fields are the options of the verb."""
    run = service.run(run_id)
    touched: list[Touched] = getattr(run, verb)(*given, **body.model_dump())
    nodes = [each._asdict() for each in touched] if body.dry_run else []
    return Steered.model_validate({"run": run.id, "status": run.status, "dry_run": body.dry_run, "nodes": nodes})


@routes.post("/runs/{run_id}/retry", "run")
def retry_run(run_id: str, service: Given, body: GoOn | None = None) -> Steered:
    """Run again only what did not complete."""
    return _asked(service, run_id, "retry", body or GoOn())


@routes.post("/runs/{run_id}/resume", "run")
def resume_run(run_id: str, service: Given, body: GoOn | None = None) -> Steered:
    """Go on with a paused run."""
    return _asked(service, run_id, "resume", body or GoOn())


@routes.post("/runs/{run_id}/pause", "run")
def pause_run(run_id: str, service: Given, body: Ask | None = None) -> Steered:
    """Start nothing more until it is resumed. What runs may end, and is recorded."""
    return _asked(service, run_id, "pause", body or Ask())


@routes.post("/runs/{run_id}/cancel", "run")
def cancel_run(run_id: str, service: Given, body: Cancel | None = None) -> Steered:
    """Start nothing more, ask what runs to stop, and fence it after the grace."""
    return _asked(service, run_id, "cancel", body or Cancel())


@routes.post("/runs/{run_id}/nodes/{node}/reattempt", "run")
def reattempt_node(run_id: str, node: Node, service: Given, body: Reattempt | None = None) -> Steered:
    """Run one node again that has ended, even one that completed, with what failed or was cancelled below it."""
    service.index_of(service.stored(run_id), node)
    return _asked(service, run_id, "reattempt", body or Reattempt(), node)


@routes.post(
    "/runs/{run_id}/fork",
    "run",
    status_code=201,
    response_model=RunModel,
    responses={200: {"model": Steered, "description": "With dry_run: the nodes that it would run."}},
)
def fork_run(run_id: str, service: Given, response: Response, body: Fork | None = None) -> Any:
    """A new run that begins with what this one had done."""
    given = body or Fork()
    run = service.run(run_id)
    if isinstance(given.at, str) and run.step_of(given.at) is None:
        service.index_of(service.stored(run_id), given.at)
    if given.dry_run:
        response.status_code = 200
        return _asked(service, run_id, "fork", given)
    made = run.fork(given.at, input=given.input, run_id=given.run_id)
    response.headers["Location"] = f"/api/v1/runs/{made.id}"
    return RunModel.model_validate(listed(service, made.row))


@routes.post("/runs/{run_id}/freeze", "author")
def freeze_run(run_id: str, service: Given) -> Steered:
    """Have a run keep the graph it has: it no longer follows its class."""
    run = service.run(run_id).freeze()
    return Steered(run=run.id, status=run.status, dry_run=False)


@routes.post("/bulk/{verb}", "run")
def steer_many(verb: Annotated[Verb, Path()], body: Bulk, service: Given) -> SteeredMany:
    """Ask the same of many runs. Each stands or falls alone; what is refused says why."""
    if (verb == "reattempt") != (body.node is not None):
        raise InputError("`node` is needed to reattempt, which is done to one node of each run, and for nothing else")
    asked = body.filter.query()
    allowed = RUN_VERBS[verb].allowed
    statuses = tuple(status for status in asked.statuses if status in allowed) if asked.statuses else allowed
    if not statuses:
        raise HttpProblem(422, f"{verb} is for runs that are {', '.join(allowed)}; the filter asks for others")
    before = paging.read(body.cursor, paging.Number, -1)
    asked = asked._replace(statuses=statuses, limit=body.limit, before=None if before < 0 else before)
    page = reader.list_runs(service.store, asked)
    told = [_steer(service, row, verb, body) for row in page.runs]
    done = sum(each.done for each in told)
    return SteeredMany(
        verb=verb,
        dry_run=body.dry_run,
        matched=len(told),
        done=done,
        refused=len(told) - done,
        runs=told,
        more=page.cursor is not None,
        next=paging.written(page.cursor),
    )


def _steer(service: ServerProcess, row: RunRow, verb: Verb, body: Bulk) -> SteeredOne:
    run = Run(service.engine, row.id)
    try:
        if body.dry_run:
            touched = _ask_of(run, verb, body, dry_run=True)
            return SteeredOne(run=row.id, status=row.status, done=True, detail=f"{len(touched)} nodes would change")
        made = _ask_of(run, verb, body)
        return SteeredOne(run=row.id, status=run.status, done=True, fork=made.id if verb == "fork" else None)
    except StepwellError as error:
        return SteeredOne(run=row.id, status=row.status, done=False, detail=problem_of(error).detail)


def _ask_of(run: Run, verb: Verb, body: Bulk, **options: Any) -> Any:
    match verb:
        case "cancel":
            return run.cancel(grace_seconds=body.grace_seconds, **options)
        case "reattempt":
            _check_node(run, body.node or "")
            return run.reattempt(body.node or "", cascade=body.cascade, **options)
        case "fork":
            if body.at is not None and run.step_of(body.at) is None:
                _check_node(run, body.at)
            named = None if body.key is None else f"{run.id}-{body.key}"
            return run.fork(body.at, input=body.input, run_id=named, **options)
        case _:
            return getattr(run, verb)(**options)


def _check_node(run: Run, node: str) -> None:
    try:
        run.index_of(node)
    except KeyError as error:
        raise RunConflict(str(error.args[0]), run_id=run.id) from None
