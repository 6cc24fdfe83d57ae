"""Runs: listing, looking, starting."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query, Response
from pydantic import ConfigDict, Field

from ...answers.failures import FailuresRecord
from ...answers.page import PageOf
from ...answers.reports import AuditRecord, ComparisonRecord, MetricsRecord, UsualTimes, WhyDetail
from ...answers.runs import CountBy, ResultsRecord, RunCountsRecord, RunDetail, RunRecord
from ...base.clock import SECOND
from ...base.commands import DEFAULT_STORE
from ...base.ids import RunId
from ...core.model import ListRuns, RunOrder, RunRow, RunStatus
from ...core.store import reader
from ...engine.reports.counting import count_runs
from ...engine.reports.failures import failures
from ...engine.reports.ordering import in_order
from ...engine.reports.usual import usual_times
from ...engine.runs.records import audit_record, comparison_record, run_detail, run_record, why_detail
from ...engine.runs.stored import StoredRun
from ...engine.trees import with_children
from ...errors import InputError
from .. import paging
from ..bodies import Body
from ..routes import Routes
from ..service import Given, ServerProcess
from ..starting import StartInline, StartRequest, define_inline, start_defined, start_run

routes = Routes("runs")

IdempotencyKey = Annotated[str | None, Header(max_length=500, description="The same key is the same run.")]


class RunFilter(Body):
    """Which runs. All that is given must hold."""

    status: list[RunStatus] = Field(default_factory=list, max_length=10)
    """Only with one of these."""
    workflow: str | None = Field(default=None, max_length=500)
    """Only of the workflow with this name."""
    tag: list[str] = Field(default_factory=list, max_length=32, examples=[["customer=7"]])
    """NAME=VALUE; all must fit."""
    since: str | None = Field(default=None, max_length=40)
    """Created at this time (ISO 8601) or later."""
    until: str | None = Field(default=None, max_length=40)
    """Created before this time."""
    prefix: str | None = Field(default=None, max_length=200)
    """Only with an id that starts with this."""
    fork_of: str | None = Field(default=None, max_length=200)
    """Only forks of this run."""
    q: str | None = Field(default=None, max_length=200)
    """Only with this in the id, the workflow, the error or a tag as NAME=VALUE, whatever the case of ASCII letters; not in
    inputs or outputs. A page of such runs may be short, and even empty: `next` says whether there may be more."""
    error: str | None = Field(default=None, max_length=200)
    """Only runs whose first failed node had an error of this class."""
    parent: str | None = Field(default=None, max_length=200)
    """Only child runs of this run: those that perform its nodes."""
    children: bool = False
    """Child runs, too. Without it only runs that people and triggers have started are listed."""

    def query(self) -> ListRuns:
        query = ListRuns(
            workflow=self.workflow,
            statuses=tuple(self.status),
            tags=tuple(map(_tag, self.tag)),
            since=moment("since", self.since),
            until=moment("until", self.until),
            prefix=self.prefix or None,
            origin=None if self.fork_of is None else RunId(self.fork_of),
            text=self.q or None,
            error=self.error or None,
        )
        return with_children(query, self.parent, children=self.children)


class FilterQuery(RunFilter):
    model_config = ConfigDict(extra="ignore")  # as all queries do


class CountQuery(FilterQuery):
    by: CountBy = "status"
    """What to count them by."""


class RunQuery(FilterQuery):
    order: RunOrder = "created"
    """The last one created first; or, only of runs that have ended, the last one to end, or the one that took longest. A page
    in one of these orders may be short, and even empty, like one of `q`."""
    cursor: paging.Cursor = None
    limit: paging.Limit = 100


def _tag(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InputError(f"tag={text[:100]!r}: expected NAME=VALUE")
    return name, value


def moment(name: str, text: str | None) -> int | None:
    """A time of ISO 8601 as the store counts it."""
    from datetime import UTC, datetime

    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return int(found.timestamp() * SECOND)
    except (ValueError, OverflowError):
        raise InputError(f"{name}={text!r}: expected a time of ISO 8601, as in 2026-01-15T10:30:00Z") from None


def listed(service: ServerProcess, row: RunRow) -> RunRecord:
    return run_record(StoredRun(service.store, row, lambda digest: service.graph(digest, row.id)))


@routes.get("/runs", "read")
def list_runs(service: Given, asked: Annotated[RunQuery, Query()]) -> PageOf[RunRecord]:
    """Runs, the newest first, or in another order."""
    query = in_order(asked.query(), asked.order)
    query = query._replace(limit=asked.limit, before=paging.read(asked.cursor, paging.Place))
    page = reader.list_runs(service.store, query)
    items = [listed(service, row) for row in page.runs]
    return paging.page(items, page.cursor)


@routes.get("/runs/counts", "read")
def count_all_runs(service: Given, asked: Annotated[CountQuery, Query()]) -> RunCountsRecord:
    """How many runs there are by status, workflow, or the hour or day of their creation."""
    return count_runs(service.store, asked.query(), asked.by)


@routes.post(
    "/workflows/{name}/runs",
    "run",
    status_code=201,
    responses={200: {"model": RunRecord, "description": "It was there."}},
)
def start_named(
    name: str,
    service: Given,
    response: Response,
    body: StartRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> RunRecord:
    """Start a run. 201: a new one; 200: the run that this key, or this id, has started before, however it stands."""
    return _started(service, response, *start_run(service, name, body or StartRequest(), idempotency_key))


def _started(service: ServerProcess, response: Response, run: RunRow, is_new: bool) -> RunRecord:
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = f"/api/v1/runs/{run.id}"
    return listed(service, run)


@routes.post(
    "/runs",
    "author",
    status_code=201,
    responses={200: {"model": RunRecord, "description": "It was there."}},
)
async def start_inline(
    body: StartInline,
    service: Given,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> RunRecord:
    """Start a run of a document that is not stored, or of a graph. Jobs that it names run where they are registered."""
    defined = await service.threads.run("check", define_inline, service, body)
    return await service.commit(
        lambda: _started(service, response, *start_defined(service, defined, body, idempotency_key))
    )


@routes.get("/runs/{run_id}", "read")
def get_run(run_id: str, service: Given) -> RunDetail:
    """One run: how it stands, its input, and how many of its nodes stand where."""
    return run_detail(service.stored(run_id))


@routes.delete("/runs/{run_id}", "admin", status_code=204)
def delete_run(run_id: str, service: Given) -> None:
    """Forget an ended run: its rows, attempts, outputs and journal."""
    service.run(run_id).delete()


@routes.get("/runs/{run_id}/results", "read", threads="view")
def get_results(run_id: str, service: Given) -> ResultsRecord:
    """What the run is for: the output of its last node, or those of its last nodes by name."""
    run = service.stored(run_id)
    return {"run": run.row.id, "status": run.row.status, "result": run.result()}


@routes.get("/runs/{run_id}/metrics", "read", threads="view")
def get_run_metrics(run_id: str, service: Given) -> MetricsRecord:
    """The run in numbers, from its whole journal."""
    return service.stored(run_id).metrics().to_dict()


@routes.get("/runs/{run_id}/why", "read", threads="view")
def get_why(run_id: str, service: Given, node: Annotated[str | None, Query(max_length=4_000)] = None) -> WhyDetail:
    """Why the run, or one of its nodes, stands as it does, down to the root."""
    run = service.stored(run_id)
    if node is not None:
        service.index_of(run, node)
    # A client must not learn where the store is.
    return why_detail(run, node, DEFAULT_STORE)


@routes.get("/runs/{run_id}/audit", "read", threads="view")
def get_audit(run_id: str, service: Given) -> AuditRecord:
    """Every invariant of the run, recomputed from its rows; no problems means that all hold."""
    from ...engine.reports.audit import audit_run

    row = service.row(run_id)
    return audit_record(row, audit_run(service.store, row.id))


@routes.get("/runs/{run_id}/usual", "read", threads="view")
def get_usual_times(
    run_id: str, service: Given, node: Annotated[str | None, Query(max_length=4_000)] = None
) -> UsualTimes:
    """How long the latest 20 other runs of its workflow took that completed; with `node`, how long this node took in them."""
    run = service.stored(run_id)
    return usual_times(run, None if node is None else run.graph.order[service.index_of(run, node)])


@routes.get("/runs/{run_id}/failures", "read", threads="view")
def get_failures(run_id: str, service: Given) -> FailuresRecord:
    """The nodes of the run that failed, by the class and the message of their errors."""
    return failures(service.stored(run_id))


@routes.get("/runs/{run_id}/diff/{other}", "read", threads="view")
def get_diff(
    run_id: str, other: str, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 1_000
) -> ComparisonRecord:
    """Two runs side by side. The nodes that differ come first."""
    service.row(other)
    start = max(0, paging.read(cursor, paging.Number, 0))
    record = comparison_record(service.run(run_id).diff(other), slice(start, start + limit))
    more = start + limit < record["size"]
    return {**record, "next": paging.written(start + limit) if more else None}
