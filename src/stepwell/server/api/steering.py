"""Requests to one run, or to many by a filter. `RUN_VERBS` is the table of them; with `dry_run` each says what it would do."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Path, Response
from pydantic import Field, create_model

from ...answers.runs import BulkRecord, PreviewedRun, RunRecord, SteeredRun
from ...base.ids import checked_run_id, new_run_id
from ...core.model import RUN_VERBS, RunStatus
from ...core.store import reader
from ...engine.runs.bulk import BULK_VERBS, MAX_BULK, BulkVerb, apply_bulk, bulk_verb, preview_bulk
from ...engine.runs.records import steered_run
from ...errors import InputError
from .. import paging
from ..bodies import Body
from ..routes import Routes
from ..service import Given, ServerProcess
from .nodes import Node
from .runs import IdempotencyKey, RunFilter, listed

routes = Routes("steering")

Verb: TypeAlias = Literal[BULK_VERBS]  # type: ignore[valid-type]  # the table is the one list of them


class VerbOptions(Body):
    """The options of all verbs."""

    dry_run: bool = False
    """Only say which nodes would change, and into what."""
    accept: bool = False
    """No node was renamed when the class lost some and gained others."""
    input: dict[str, Any] | None = None
    """Values for inputs that the class has gained since; of fork, what changes of the input of what is not shared."""
    grace_seconds: float = Field(default=5.0, ge=0, le=86_400)
    """How long running bodies may take to stop."""
    cascade: bool = False
    """Run again what completed below the node, too."""
    at: int | Annotated[str, Field(max_length=4_000)] | None = None
    """A `seq`, a label or a node; null: all that the run has done."""


def _options_of(verb: str) -> type[Body]:
    """The body of a request: the options of this verb."""
    own = ("dry_run", *(RUN_VERBS[verb].options or ()))
    fields: dict[str, Any] = {
        name: (field.annotation, field) for name, field in VerbOptions.model_fields.items() if name in own
    }
    return create_model(f"{verb.title()}VerbOptions", __base__=Body, __doc__=f"The options of {verb}.", **fields)


class ForkRequest(_options_of("fork")):  # type: ignore[misc]
    """The options of fork."""

    run_id: str | None = Field(default=None, max_length=200)
    """An id of your choice for the new run; the same id is the same run. By default one is made."""


class RunOfPreview(Body):
    """A run as a preview found it: nothing is requested of one that is another by now."""

    run: str = Field(max_length=200)
    """The id of the run."""
    created_at: str = Field(max_length=40)
    """When it was created."""
    status: RunStatus
    """Its status."""
    seq: int = Field(ge=0, lt=2**62)
    """How many entries its journal had."""

    def record(self) -> PreviewedRun:
        return {"run": self.run, "created_at": self.created_at, "status": self.status, "seq": self.seq}


class BulkRequest(VerbOptions):
    """With `dry_run`, which runs it would be about; then its `preview`. Options of other verbs are ignored."""

    filter: RunFilter = RunFilter()
    """With `dry_run`: which runs; all of those that the verb is for, by default."""
    limit: int = Field(default=100, ge=1, le=MAX_BULK)
    """With `dry_run`: at most this many runs, and fewer if they have very many nodes."""
    cursor: str | None = Field(default=None, max_length=500)
    """With `dry_run`: `next` of the answer before, to go on after it."""
    preview: list[RunOfPreview] | None = Field(default=None, max_length=MAX_BULK)
    """Without `dry_run`: the runs, as the dry run answered them, or some of them. No other run is touched."""
    node: str | None = Field(default=None, max_length=4_000)
    """Of reattempt: which node of each run."""
    key: str | None = Field(default=None, max_length=40, pattern="^[A-Za-z0-9_.-]+$")
    """Of fork: the forks are called RUN-KEY, so that a repeated request makes no more of them."""

    def verb(self, verb: str) -> BulkVerb:
        """The request, without the options of other verbs."""
        options = {name: getattr(self, name) for name in RUN_VERBS[verb].options or ()}
        if self.node is not None:
            options["node"] = self.node
        return bulk_verb(verb, options | ({"key": self.key} if verb == "fork" and self.key is not None else {}))


def _request(service: ServerProcess, run_id: str, verb: str, options: dict[str, Any], *node: str) -> SteeredRun:
    run = service.run(run_id)
    touched = getattr(run, verb)(*node, **options)
    return steered_run(run.row, verb, touched if options["dry_run"] else None)


def _add_route(verb: str) -> None:
    """The route of a verb that is about the whole run."""
    model = _options_of(verb)

    def steer(run_id: str, service: Given, body: Any = None) -> SteeredRun:
        return _request(service, run_id, verb, (body or model()).model_dump())

    steer.__name__, steer.__doc__ = f"{verb}_run", RUN_VERBS[verb].summary
    steer.__annotations__["body"] = model | None
    routes.post(f"/runs/{{run_id}}/{verb}", "run")(steer)


for _verb in BULK_VERBS:
    if _verb not in ("reattempt", "fork"):
        _add_route(_verb)


class ReattemptOptions(_options_of("reattempt")):  # type: ignore[misc]
    """The options of reattempt."""


@routes.post("/runs/{run_id}/nodes/{node}/reattempt", "run")
def reattempt_node(run_id: str, node: Node, service: Given, body: ReattemptOptions | None = None) -> SteeredRun:
    """Run an ended node again, even one that completed, with what failed or was cancelled below it."""
    service.index_of(service.stored(run_id), node)
    return _request(service, run_id, "reattempt", (body or ReattemptOptions()).model_dump(), node)


@routes.post(
    "/runs/{run_id}/fork",
    "run",
    status_code=201,
    response_model=RunRecord,
    responses={
        200: {
            "model": SteeredRun | RunRecord,
            "description": "With dry_run: the nodes that it would run. Otherwise it was there: the run.",
        }
    },
)
def fork_run(
    run_id: str,
    service: Given,
    response: Response,
    body: ForkRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Any:
    """A new run that begins with what this one has done. 200: the fork that this key, or this id, has made before."""
    options = (body or ForkRequest()).model_dump()
    run = service.run(run_id)
    if isinstance(options["at"], str) and run._step_of(options["at"]) is None:
        service.index_of(service.stored(run_id), options["at"])
    if options["dry_run"]:
        response.status_code = 200
        return _request(service, run_id, "fork", options)
    chosen = new_run_id() if options["run_id"] is None else checked_run_id(options["run_id"])
    known = options["run_id"] is not None and reader.get_run(service.store, chosen) is not None
    fork = run.fork(options["at"], input=options["input"], run_id=chosen, idempotency_key=idempotency_key)
    response.status_code = 201 if fork.id == chosen and not known else 200
    response.headers["Location"] = f"/api/v1/runs/{fork.id}"
    return listed(service, fork.row)


@routes.post("/runs/{run_id}/freeze", "author")
def freeze_run(run_id: str, service: Given) -> SteeredRun:
    """Have a run keep the graph it has: it no longer follows its class."""
    run = service.run(run_id).freeze()
    return steered_run(run.row, "freeze", None)


@routes.post("/bulk/{verb}", "run")
def steer_many(verb: Annotated[Verb, Path()], body: BulkRequest, service: Given) -> BulkRecord:
    """Request the same of many runs: first with `dry_run`, then of the runs of its `preview`. Each stands or falls alone; what
    is refused says why."""
    asked, parts = body.verb(verb), service.engine.parts
    if body.dry_run == (body.preview is not None):
        raise InputError(
            "expected either `dry_run`, which says what would be done to the runs of a filter, or the `preview` that such a "
            "request answered, which has it done"
        )
    if body.preview is not None:
        return apply_bulk(parts, asked, [each.record() for each in body.preview])
    query = body.filter.query()._replace(limit=body.limit, before=paging.read(body.cursor, paging.Place))
    record, cursor = preview_bulk(parts, asked, query)
    return {**record, "next": paging.written(cursor)}
