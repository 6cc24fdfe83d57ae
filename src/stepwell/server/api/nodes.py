"""Nodes of a run, their attempts, outputs, logs and recorded effects; the journal, checkpoints and the graph."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from starlette.requests import Request

from ...base.clock import SECOND
from ...base.codec import decode, encode, sha256
from ...base.words import iso
from ...core.graph import Graph, to_frozen
from ...core.model import ListJournal, ListLines, ListNodes, NodeRow, NodeStatus
from ...core.model.lines import LOG, in_order_of_time
from ...core.store import reader
from ...engine.reports.effects import page_of_effects
from ...engine.runs.records import graph_record, line_record
from ...engine.runs.stored import StoredRun
from ...engine.runs.views import AttemptView
from ...errors import InputError
from ...history.replay.checkpoint import effect_data
from .. import paging
from ..models import AttemptModel, GraphModel, JournalEntry, LogLine, NodeDetail, NodeModel, OutputModel, Page
from ..problems import HttpProblem
from ..report_models import CheckpointModel, EffectModel, FrozenGraph, LabelModel
from ..responses import Format, drawn, ranged
from ..routes import Routes
from ..service import Given, ServerProcess

routes = Routes("nodes")

INLINE = 16 * 1024
"""Bytes of an output up to which lists have it."""
LinePlace = tuple[paging.Text, paging.Number]
"""The attempt and the number of a line."""
Node = Annotated[str, Path(max_length=4_000, description="A node by id or name.")]


def _node(run: StoredRun, row: NodeRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": run.graph.in_order[row.index].name,
        "index": row.index,
        "status": row.status,
        "reason": row.reason,
        "attempts": row.attempt,
        "failures": row.failures,
        "queue": row.lane.queue,
        "due_at": iso(row.due_at),
    }


@routes.get("/runs/{run_id}/nodes", "read")
def list_nodes(
    run_id: str,
    service: Given,
    status: Annotated[list[NodeStatus] | None, Query()] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> Page[NodeModel]:
    """The nodes of a run, in order; those that only earlier versions of its graph had are left out."""
    run = service.stored(run_id)
    after = paging.read(cursor, paging.Number, -1)
    (rows,) = service.store.read([ListNodes(run.row.id, after, limit, tuple(status or ()))])
    removed = run.graph.removed
    items = [_node(run, row) for row in rows if row.index not in removed]
    return paging.page(items, rows.cursor)


@routes.get("/runs/{run_id}/nodes/{node}", "read")
def get_node(run_id: str, node: Node, service: Given) -> NodeDetail:
    """A node: its attempts, its config as it is written and as it was rendered, and where its output is."""
    run = service.stored(run_id)
    index = service.index_of(run, node)
    (view,) = run.nodes(index, ancestry=True)
    spec = run.graph.in_order[index]
    error, progress = view.error, view.progress
    return NodeDetail.model_validate(
        {
            **_node(run, view.row),
            "job": spec.job,
            "depends_on": list(spec.depends_on),
            "level": run.graph.level(spec.id),
            "config": dict(spec.args),
            "progress": None if progress is None else {**progress._asdict(), "fraction": progress.fraction},
            "error": None if error is None else error._asdict(),
            "attempt_list": [_attempt(each) for each in view.attempts],
            "output": next(iter(_outputs(service, run, (index,))), None),
        }
    )


@routes.get("/runs/{run_id}/nodes/{node}/attempts", "read")
def list_attempts(run_id: str, node: Node, service: Given) -> list[AttemptModel]:
    """All attempts of a node, the first one first."""
    run = service.stored(run_id)
    (view,) = run.nodes(service.index_of(run, node), ancestry=True)
    return [AttemptModel.model_validate(_attempt(each)) for each in view.attempts]


def _attempt(attempt: AttemptView) -> dict[str, Any]:
    error, outcome = attempt.error, attempt.outcome
    return {
        "id": attempt.id,
        "number": attempt.number,
        "status": attempt.status,
        "worker": attempt.worker,
        "started_at": iso(attempt.row.started_at),
        "ended_at": iso(attempt.row.ended_at),
        "seconds": attempt.seconds,
        "ancestry": attempt.ancestry,
        "config": outcome.pop("config", None),
        "outcome": outcome,
        "error": None if error is None else error._asdict(),
    }


def _outputs(service: ServerProcess, run: StoredRun, indexes: tuple[int, ...]) -> list[dict[str, Any]]:
    found = reader.get_outputs(service.store, run.row.id, indexes)
    specs = run.graph.in_order
    return [
        {
            "node": specs[index].id,
            "name": specs[index].name,
            "size": len(data),
            "sha256": sha256(data),
            "href": f"/api/v1/runs/{run.row.id}/nodes/{specs[index].id}/output",
            "value": decode(data) if len(data) <= INLINE else None,
            "inline": len(data) <= INLINE,
        }
        for index, data in ((index, found[index]) for index in indexes if index in found)
    ]


@routes.get("/runs/{run_id}/outputs", "read")
def list_outputs(
    run_id: str, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100
) -> Page[OutputModel]:
    """What the nodes of a run returned; large outputs by hash and address."""
    run = service.stored(run_id)
    after = paging.read(cursor, paging.Number, -1)
    (rows,) = service.store.read([ListNodes(run.row.id, after, limit, (NodeStatus.COMPLETED,))])
    items = _outputs(service, run, tuple(row.index for row in rows))
    return paging.page(items, rows.cursor)


@routes.get(
    "/runs/{run_id}/nodes/{node}/output",
    "read",
    response_class=Response,
    responses={
        200: {"description": "The output as JSON; its ETag is its SHA-256.", "content": {"application/json": {}}},
        206: {"description": "The bytes that Range asks for.", "content": {"application/json": {}}},
        304: {"description": "It is the one that If-None-Match names."},
        416: {"description": "There are not so many bytes."},
    },
)
def get_output(run_id: str, node: Node, service: Given, request: Request) -> Response:
    """The output of a node: its bytes, whole or those of one range. It never changes while its hash is the same."""
    run = service.stored(run_id)
    index = service.index_of(run, node)
    found = reader.get_outputs(service.store, run.row.id, (index,))
    if index not in found:
        raise HttpProblem(404, f"node {node[:200]!r} of run {run.row.id} has not completed", run_id=run.row.id)
    return ranged(found[index], request.headers)


@routes.get("/runs/{run_id}/journal", "read")
def list_journal(
    run_id: str,
    service: Given,
    kind: Annotated[list[str] | None, Query(max_length=20)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> Page[JournalEntry]:
    """The history of a run: every transition, by its number."""
    run = service.stored(run_id)
    after = paging.read(cursor, paging.Number, 0)
    (rows,) = service.store.read([ListJournal(run.row.id, after, limit, tuple(kind or ()))])
    order = run.graph.order
    items = [journal_entry(row, order) for row in rows]
    return paging.page(items, rows.cursor)


def journal_entry(row: Any, order: Any) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "at": iso(row.at),
        "kind": row.kind,
        "node": None if row.index is None or row.index >= len(order) else order[row.index],
        "attempt": row.attempt,
        "status": row.status,
    }


@routes.get("/runs/{run_id}/logs", "read")
def list_logs(
    run_id: str,
    service: Given,
    node: Annotated[str | None, Query(max_length=4_000)] = None,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 1_000,
) -> Page[LogLine]:
    """What the bodies of a run logged and printed, attempt by attempt; `events` follows it."""
    run = service.stored(run_id)
    index = None if node is None else service.index_of(run, node)
    asked = ListLines(run.row.id, index, limit, paging.read(cursor, LinePlace), attempt, LOG)
    (rows,) = service.store.read([asked])
    items = [line_record(run, row, line) for row, line in in_order_of_time(rows)]
    return paging.page(items, rows.cursor)


@routes.get("/runs/{run_id}/effects", "read")
def list_effects(
    run_id: str,
    service: Given,
    node: Annotated[str | None, Query(max_length=4_000)] = None,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> Page[EffectModel]:
    """What bodies asked of the outside world and were answered, as it was recorded; by attempt, as it was stored."""
    run = service.stored(run_id)
    index = None if node is None else service.index_of(run, node)
    found, following = page_of_effects(
        service.store,
        run.row.id,
        run.graph.order,
        index=index,
        number=attempt,
        after=paging.read(cursor, LinePlace),
        limit=limit,
    )
    return paging.page(list(map(effect_data, found)), following)


@routes.get("/runs/{run_id}/checkpoints", "read")
def list_checkpoints(run_id: str, service: Given) -> list[LabelModel]:
    """The checkpoints that bodies gave names to, in order."""
    return [LabelModel.model_validate(label._asdict()) for label in service.run(run_id).checkpoints()]


@routes.get("/runs/{run_id}/checkpoints/{at}", "read")
def get_checkpoint(run_id: str, at: Annotated[str, Path(max_length=500)], service: Given) -> CheckpointModel:
    """How the run stood at a `seq` of its journal, at a label, or at the checkpoint with a key."""
    run = service.run(run_id)
    step: int | str = int(at) if at.isascii() and at.isdigit() and len(at) < 19 and run.step_of(at) is None else at
    return CheckpointModel.model_validate(run.checkpoint(step).data())


@routes.get(
    "/runs/{run_id}/graph",
    "read",
    response_model=GraphModel,
    responses={200: {"content": {"text/plain": {}, "image/svg+xml": {}}}},
)
def get_run_graph(run_id: str, service: Given, format: Annotated[Format, Query()] = "json") -> Any:
    """The graph of a run with the status of each node."""
    run = service.stored(run_id)
    graph, statuses = run.present_graph()
    return graph_record(run.row.workflow, graph, statuses) if format == "json" else drawn(graph, statuses, format)


_FROZEN: dict[int | str, dict[str, Any]] = {200: {"model": FrozenGraph}}


@routes.get("/runs/{run_id}/graph/frozen", "read", response_class=Response, responses=_FROZEN)
def get_frozen_graph(run_id: str, service: Given) -> Response:
    """The graph of a run in the form that can be edited and put back."""
    run = service.stored(run_id)
    return _frozen(run.graph, run.row.created_at)


def _frozen(graph: Graph, created_at: int) -> Response:
    """The frozen form as it is; options at their default are left out."""
    return Response(encode(to_frozen(graph, created_at / SECOND)), media_type="application/json")


@routes.put("/runs/{run_id}/graph/frozen", "author", response_class=Response, responses=_FROZEN)
def put_frozen_graph(run_id: str, body: dict[str, Any], service: Given) -> Response:
    """Have a run go on with an edited graph. Everything is checked first; what has completed must stay as it was."""
    if not body:
        raise InputError("the body is the form that GET gives, edited")
    run = service.run(run_id).import_graph(body)
    return _frozen(run.graph, run.row.created_at)
