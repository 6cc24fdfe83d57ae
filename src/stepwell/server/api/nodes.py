"""Nodes of a run, their attempts, outputs, logs and recorded effects; the journal, checkpoints and the graph."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field
from starlette.requests import Request
from starlette.responses import StreamingResponse

from ...answers.attempts import AttemptTable
from ...answers.graphs import GraphRecord
from ...answers.nodes import (
    AttemptDetail,
    FrozenGraph,
    JournalRecord,
    LinePage,
    NodeDetail,
    NodePage,
    NodeProgress,
    OutputRecord,
)
from ...answers.page import PageOf
from ...answers.reports import CheckpointRecord, EffectRecord, LabelRecord
from ...base.clock import SECOND
from ...base.codec import encode
from ...core.graph import Graph, from_frozen, to_frozen
from ...core.model import JournalKind, ListJournal, ListNodes, NodeStatus
from ...core.store import reader
from ...define.document.checking import with_templates_read
from ...engine.reports.effects import page_of_effects
from ...engine.reports.graphs import run_graph
from ...engine.runs.attempt_table import attempt_table
from ...engine.runs.log_search import Level, LogSearch, safe_since
from ...engine.runs.node_list import NodeFilter
from ...engine.runs.records import (
    INLINE_BYTES,
    attempt_detail,
    journal_record,
    line_record,
    node_detail,
    output_records,
    progress_record,
)
from ...errors import InputError
from ...history.replay.checkpoint import effect_data
from .. import paging
from ..problems import HttpProblem
from ..responses import Format, drawn, ranged
from ..routes import Routes
from ..service import Given

routes = Routes("nodes")

LinePlace = tuple[paging.Text, paging.Number]
"""The attempt and the number of a line."""
AttemptPlace = tuple[paging.Number, paging.Number]
"""The node and the number of an attempt."""
OpenGroups = Annotated[
    list[Annotated[str, Field(max_length=4_000)]] | None,
    Query(max_length=200, description="Show what is in these groups, as long as there is room."),
]
AtEntry = Annotated[int | None, Query(ge=0, lt=2**53, description="As it was after this entry of the journal.")]
MAX_ATTEMPTS = 10_000
"""Attempts on one page of columns."""
Node = Annotated[str, Path(max_length=4_000, description="A node by id or name.")]


@routes.get("/runs/{run_id}/nodes", "read")
def list_nodes(
    run_id: str,
    service: Given,
    status: Annotated[list[NodeStatus] | None, Query()] = None,
    q: Annotated[
        str | None, Query(max_length=200, description="Only nodes with this in their names, or with this id.")
    ] = None,
    at: AtEntry = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> NodePage:
    """The nodes of a run, in order; those that only other versions of its graph have are left out. With `at`, no node has a
    `reason` or `due_at`: the journal has none. With `q` a page may be short: `next` says whether there may be more."""
    run = service.stored(run_id)
    search = NodeFilter(tuple(status or ()), q or None, at)
    items, last = search.page(run, paging.read(cursor, paging.Number, -1), limit)
    return {**paging.page(items, last), "seq": run.row.seq if at is None else at}


@routes.get("/runs/{run_id}/nodes/{node}", "read")
def get_node(run_id: str, node: Node, service: Given) -> NodeDetail:
    """A node: its attempts, its config as it is written and as it was rendered, and where its output is."""
    run = service.stored(run_id)
    return node_detail(run, service.index_of(run, node), inline_bytes=INLINE_BYTES)


@routes.get("/runs/{run_id}/progress", "read")
def list_progress(run_id: str, service: Given) -> list[NodeProgress]:
    """How far RUNNING nodes are that report it, at most a thousand. It is not in the journal, so no stream sends it."""
    reported = service.stored(run_id).running_progress(paging.MAX_PAGE)
    return [{"node": node, "progress": progress_record(progress)} for node, progress in reported.items()]


@routes.get("/runs/{run_id}/nodes/{node}/inputs", "read")
def list_inputs(
    run_id: str, node: Node, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100
) -> PageOf[OutputRecord]:
    """What the parents of a node returned; large outputs by hash and address. Those that have not completed are left out."""
    run = service.stored(run_id)
    after = paging.read(cursor, paging.Number, -1)
    parents = [index for index in sorted(run.graph.parents[service.index_of(run, node)]) if index > after]
    some = tuple(parents[:limit])
    items = output_records(run, some, inline_bytes=INLINE_BYTES)
    return paging.page(items, some[-1] if len(parents) > limit else None)


@routes.get("/runs/{run_id}/nodes/{node}/attempts", "read")
def list_attempts(run_id: str, node: Node, service: Given) -> list[AttemptDetail]:
    """All attempts of a node, the first one first, with their ancestry hashes, for which all ancestors are read."""
    run = service.stored(run_id)
    (view,) = run.nodes(service.index_of(run, node))
    return [attempt_detail(attempt) for attempt in view.attempts]


@routes.get("/runs/{run_id}/attempts", "read", threads="view")
def list_attempt_columns(
    run_id: str,
    service: Given,
    cursor: paging.Cursor = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ATTEMPTS, description="At most so many on this page.")] = MAX_ATTEMPTS,
) -> AttemptTable:
    """All attempts of a run as columns, for a timeline."""
    run = service.stored(run_id)
    after = paging.read(cursor, AttemptPlace, (-1, 0))
    table, last = attempt_table(run, service.grouping, after, limit)
    return {**table, "next": paging.written(last)}


@routes.get("/runs/{run_id}/outputs", "read")
def list_outputs(
    run_id: str, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100
) -> PageOf[OutputRecord]:
    """What the nodes of a run returned; large outputs by hash and address."""
    run = service.stored(run_id)
    after = paging.read(cursor, paging.Number, -1)
    (rows,) = service.store.read([ListNodes(run.row.id, after, limit, (NodeStatus.COMPLETED,))])
    items = output_records(run, tuple(row.index for row in rows), inline_bytes=INLINE_BYTES)
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
    kind: Annotated[list[JournalKind] | None, Query(max_length=20)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> PageOf[JournalRecord]:
    """The history of a run: every transition, by its number."""
    run = service.stored(run_id)
    after = paging.read(cursor, paging.Number, 0)
    (rows,) = service.store.read([ListJournal(run.row.id, after, limit, tuple(kind or ()))])
    order = run.graph.order
    items = [journal_record(row, order) for row in rows]
    return paging.page(items, rows.cursor)


@routes.get(
    "/runs/{run_id}/logs",
    "read",
    threads="view",
    response_model=LinePage,
    responses={200: {"content": {"text/plain": {}}}},
)
def list_logs(
    run_id: str,
    service: Given,
    node: Annotated[str | None, Query(max_length=4_000)] = None,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    level: Annotated[Level | None, Query(description="Only lines of this level or a higher one.")] = None,
    q: Annotated[
        str | None, Query(max_length=200, description="Only lines with this in them, or in the name of their logger.")
    ] = None,
    format: Annotated[Literal["json", "text"], Query(description="text: all such lines, to keep in a file.")] = "json",
    tail: Annotated[int | None, Query(ge=1, le=paging.MAX_PAGE, description="The last so many lines.")] = None,
    before: Annotated[str | None, Query(max_length=2_000, description="The lines before those of this page.")] = None,
    since: Annotated[
        str | None, Query(max_length=2_000, description="What was stored since this page was read.")
    ] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 1_000,
) -> Any:
    """What the bodies of a run logged and printed, attempt by attempt; `events` follows it. With `level` or `q` a page may be
    short, and even empty: `next`, or `before`, says whether there may be more."""
    run = service.stored(run_id)
    index = None if node is None else service.index_of(run, node)
    search = LogSearch(index, attempt, level, q or None, paging.read(since, paging.Number))
    if format == "text":
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", run_id)[:100]
        headers = {"Content-Disposition": f'attachment; filename="{name}.log"'}
        return StreamingResponse(search.as_text(run), headers=headers, media_type="text/plain; charset=utf-8")
    now = safe_since(service.store)
    backwards = tail is not None or before is not None
    place = paging.read(before if backwards else cursor, LinePlace)
    lines, further = search.page(run, place, tail or limit, newest_first=backwards)
    return {
        "items": [line_record(run, row, line) for row, line in lines],
        "next": None if backwards else paging.written(further),
        "before": paging.written(further) if backwards else None,
        "since": paging.written(now),
    }


@routes.get("/runs/{run_id}/effects", "read")
def list_effects(
    run_id: str,
    service: Given,
    node: Annotated[str | None, Query(max_length=4_000)] = None,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    cursor: paging.Cursor = None,
    limit: paging.Limit = 100,
) -> PageOf[EffectRecord]:
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


@routes.get("/runs/{run_id}/checkpoints", "read", threads="view")
def list_checkpoints(run_id: str, service: Given) -> list[LabelRecord]:
    """The checkpoints that bodies gave names to, in order."""
    return [label.to_dict() for label in service.run(run_id).checkpoints()]


@routes.get("/runs/{run_id}/checkpoints/{at}", "read", threads="view")
def get_checkpoint(run_id: str, at: Annotated[str, Path(max_length=500)], service: Given) -> CheckpointRecord:
    """How the run stood at a `seq` of its journal, at a label, or at the checkpoint with a key."""
    run = service.run(run_id)
    return run.checkpoint(service.step_of(run, at)).data()


@routes.get(
    "/runs/{run_id}/graph",
    "read",
    threads="view",
    response_model=GraphRecord,
    responses={200: {"content": {"text/plain": {}, "image/svg+xml": {}}}},
)
def get_run_graph(
    run_id: str,
    service: Given,
    format: Annotated[Format, Query()] = "json",
    open: OpenGroups = None,
    at: AtEntry = None,
    show: Annotated[
        str | None, Query(max_length=4_000, description="The id of a node: open the groups that it is in.")
    ] = None,
) -> Any:
    """The graph of a run with the status of each node, in groups where there are many. Drawn, it has all as they are now."""
    run = service.stored(run_id)
    if format == "json":
        return run_graph(run, service.grouping, open or (), at, show)
    return drawn(*run.present_graph(), format)


_FROZEN: dict[int | str, dict[str, Any]] = {200: {"model": FrozenGraph}}


@routes.get("/runs/{run_id}/graph/frozen", "read", threads="view", response_class=Response, responses=_FROZEN)
def get_frozen_graph(run_id: str, service: Given) -> Response:
    """The graph of a run in the form that can be edited and put back."""
    run = service.stored(run_id)
    return _frozen(run.graph, run.row.created_at)


def _frozen(graph: Graph, created_at: int) -> Response:
    """The frozen form as it is; options at their default are left out."""
    return Response(encode(to_frozen(graph, created_at / SECOND)), media_type="application/json")


@routes.put("/runs/{run_id}/graph/frozen", "author", response_class=Response, responses=_FROZEN)
async def put_frozen_graph(run_id: str, body: dict[str, Any], service: Given) -> Response:
    """Have a run go on with an edited graph. Everything is checked first; what has completed must stay as it was."""
    if not body:
        raise InputError("the body is the form that GET gives, edited")
    run = await service.threads.run("read", service.run, run_id)
    handlers = service.engine.parts.code.handlers
    graph = await service.threads.run("check", lambda: with_templates_read(from_frozen(body), handlers))

    def put() -> Response:
        run._import_graph(graph)
        return _frozen(run.graph, run.row.created_at)

    return await service.commit(put)
