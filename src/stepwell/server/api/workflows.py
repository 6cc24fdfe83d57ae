"""Workflows: stored documents and their versions, classes that workers have, graphs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field
from starlette.requests import Request

from ...answers.graphs import GraphRecord
from ...answers.page import PageOf
from ...answers.workflows import CheckedDocument, SavedRecord, VersionRecord, WorkflowDetail, WorkflowRecord
from ...core.model import VersionRow
from ...core.store import versions
from ...define.document import Document
from ...define.document.text import Form
from ...engine.code.registering import registered_workflow, registered_workflows
from ...engine.documents import version_record, workflow_record
from ...engine.reports.graphs import workflow_graph
from ...errors import DocumentError, InputError
from .. import paging
from ..bodies import Body
from ..problems import HttpProblem, problem_of
from ..responses import Format, drawn
from ..routes import Routes, described_body
from ..service import Given, ServerProcess
from ..starting import unknown_workflow
from .nodes import OpenGroups

routes = Routes("workflows")

_FETCH = {"id": "fetch", "handler": "http_request", "config": {"url": "{{ input.url }}"}}
_SIZE = {"id": "size", "handler": "compute", "config": {"expression": "fetch.output.text | length"}}
_EXAMPLE = {"name": "summarise", "nodes": [_FETCH, {**_SIZE, "dependencies": ["fetch"]}]}
_ANY = {"type": "object", "additionalProperties": True}
_DOCUMENT = described_body(_ANY, _EXAMPLE, **{"application/yaml": {"schema": {"type": "string"}}})


async def _document(request: Request, service: ServerProcess) -> Document:
    """The document in the body of a request: JSON, or YAML if its type says so."""
    body = await request.body()
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind not in ("application/json", "application/yaml", "application/x-yaml", "text/yaml"):
        raise HttpProblem(415, f"a document is application/json or application/yaml, not {kind[:100]}")
    form: Form = "json" if kind == "application/json" else "yaml"
    return await service.threads.run("check", Document.parse, body, service.handlers, form=form)


@routes.get("/workflows", "read")
def list_workflows(service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100) -> PageOf[WorkflowRecord]:
    """The workflows that are known here: first the documents that are stored, by name, then the classes that workers have."""
    kind, after = paging.read(cursor, paging.Pair) or ("document", None)
    items: list[WorkflowRecord] = []
    if kind == "document":
        rows = versions.list_names(service.store, "document", after or None, limit)
        items = [workflow_record(row, "document") for row in rows]
        if rows.cursor is not None:
            return paging.page(items, ["document", rows.cursor])
        after = None
    classes = [workflow.to_dict() for workflow in registered_workflows(service.store, after, limit - len(items))]
    items += classes
    last = classes[-1]["name"] if classes else ""
    return paging.page(items, ["class", last] if len(items) == limit else None)


@routes.post(
    "/workflows",
    "author",
    status_code=201,
    responses={200: {"model": SavedRecord, "description": "This content was stored before."}},
    openapi_extra=_DOCUMENT,
)
async def save_workflow(request: Request, service: Given, response: Response) -> SavedRecord:
    """Store a document as a new version. The same content is the same version. A refusal lists every problem and its place."""
    saved = await service.commit(service.engine.save, await _document(request, service))
    response.status_code = 201 if saved.is_new else 200
    return saved.to_dict()


@routes.post("/workflows/check", "read", openapi_extra=_DOCUMENT)
async def check_workflow(request: Request, service: Given) -> CheckedDocument:
    """What is wrong with a document, without storing it. Nothing that it names is imported or executed."""
    try:
        document = await _document(request, service)
    except DocumentError as error:
        problems = problem_of(error).more["problems"]
        return {"valid": False, "name": None, "digest": None, "nodes": None, "problems": problems}
    nodes = len(document.nodes)
    return {"valid": True, "name": document.name, "digest": document.digest, "nodes": nodes, "problems": []}


@routes.get("/workflows/{name}", "read")
def get_workflow(
    name: str, service: Given, version: Annotated[int | None, Query(ge=1, lt=2**31)] = None
) -> WorkflowDetail:
    """A workflow; of a document its content in canonical form, of the active version or of another."""
    known = registered_workflow(service.store, name)
    if known is not None and versions.get_version(service.store, "document", name) is None:
        return {
            **known.to_dict(),
            "active": True,
            "description": known.description,
            "input": known.input,
            "target": known.target,
            "document": None,
        }
    return service.engine.parts.documents.detail(_version(service, name, version))


def _version(service: ServerProcess, name: str, number: int | None) -> VersionRow:
    row = versions.get_version(service.store, "document", name, number)
    if row is not None:
        return row
    if number is not None and versions.get_version(service.store, "document", name) is not None:
        raise HttpProblem(404, f"there is no version {number} of {name[:200]!r}")
    raise unknown_workflow(service, name)


@routes.get("/workflows/{name}/versions", "read")
def list_versions(
    name: str, service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100
) -> PageOf[VersionRecord]:
    """The versions of a document, oldest first."""
    _version(service, name, None)
    after = paging.read(cursor, paging.Number, 0)
    rows = [row for row in versions.all_versions(service.store, "document", name) if row.number > after][:limit]
    return paging.page([version_record(row) for row in rows], rows[-1].number if len(rows) == limit else None)


class ActivateRequest(Body):
    """Which version to make the active one."""

    version: int | None = Field(default=None, ge=1, lt=2**31)
    """Its number; null: the newest, also of those to come."""


@routes.post("/workflows/{name}/activate", "author")
def activate_workflow(name: str, body: ActivateRequest, service: Given) -> SavedRecord:
    """Choose the version that is started by the name alone."""
    _version(service, name, body.version)
    chosen = name if body.version is None else f"{name}@{body.version}"
    if "@" in name:
        raise InputError("the version is given as `version`, not in the name")
    return service.engine.parts.documents.activate(chosen).to_dict()


@routes.get(
    "/workflows/{name}/graph",
    "read",
    threads="view",
    response_model=GraphRecord,
    responses={200: {"content": {"text/plain": {}, "image/svg+xml": {}}}},
)
def get_workflow_graph(
    name: str,
    service: Given,
    version: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    format: Annotated[Format, Query(description="json, or drawn.")] = "json",
    open: OpenGroups = None,
) -> Any:
    """The graph of a workflow: as data, as text for Mermaid or Graphviz, or as a picture."""
    known = registered_workflow(service.store, name)
    if known is not None and versions.get_version(service.store, "document", name) is None:
        graph = service.graph(known.digest)
    else:
        graph = service.engine.parts.documents.document(_version(service, name, version)).graph
    if format == "json":
        return workflow_graph(name, graph.digest, service.grouping_of(graph), open or ())
    return drawn(graph, None, format)
