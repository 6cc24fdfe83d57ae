"""Starts runs for clients: of a stored document, of a class in this process, or of one that only workers have."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import ConfigDict, Field

from ..base.ids import checked_run_id, new_run_id
from ..base.words import suggestion
from ..core.graph import from_frozen
from ..core.kernel.healing import arrange
from ..core.model import RunRow, parted
from ..core.store import reader, versions
from ..define import Definition, Workflow
from ..define.document import Document
from ..define.document.checking import with_templates_read
from ..engine import Engine
from ..engine.code import registering
from ..engine.starting import create_op
from ..errors import InputError, MissingJob
from .bodies import Body
from .problems import HttpProblem
from .service import ServerProcess


class StartRequest(Body):
    """What a run is started with."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"input": {"url": "https://example.com"}, "tags": {"customer": "7"}}]},
    )
    input: dict[str, Any] = Field(default_factory=dict)
    """The input, as the schema of the workflow asks for."""
    run_id: str | None = Field(default=None, max_length=200)
    """An id of your choice; the same id is the same run. By default one is made."""
    priority: int = Field(default=0, ge=-(2**31), lt=2**31)
    """Nodes of runs with a larger one are claimed first."""
    deadline: float | None = Field(default=None, gt=0)
    """Seconds after which the run fails if it has not ended."""
    seed: int | None = Field(default=None, ge=0, lt=2**64)
    """The seed of its random numbers; by default one is drawn."""
    tags: dict[str, str] | None = Field(default=None, examples=[{"customer": "7"}])
    """Names and values by which the run can be found."""


class StartInline(StartRequest):
    """A run of what comes with the request: a document, or the frozen form of a graph."""

    document: dict[str, Any] | None = None
    """A document."""
    graph: dict[str, Any] | None = None
    """A graph, in the form of GET /runs/{run_id}/graph/frozen."""
    workflow: str | None = Field(default=None, max_length=200)
    """With `graph`: the name of the workflow."""


class Defined(NamedTuple):
    """What is to run, and the engine that starts it."""

    engine: Engine
    definition: Definition


def start_run(service: ServerProcess, name: str, asked: StartRequest, key: str | None) -> tuple[RunRow, bool]:
    """The run, and whether it is new. `name` is that of a document, `summarise` or `summarise@3`, or of a class."""
    documents = service.engine.parts.documents
    version = versions.get_version(service.store, "document", *parted(name))
    if version is not None:
        return start_defined(service, _defined(service, documents.checked(version), asked.input), asked, key)
    if parted(name)[1] is not None and versions.get_version(service.store, "document", parted(name)[0]) is not None:
        documents.row(name)  # which says what versions there are
    for engine in (service.worker, service.engine):
        given = None if engine is None else engine.parts.code.given.get(name)
        if engine is not None and given is not None:
            definition = engine.parts.code.definition_of(_instance(given, asked.input))
            return start_defined(service, Defined(engine, definition), asked, key)
    # A class that only workers have: its input is checked against the schema they registered.
    registered = registering.registered_workflow(service.store, name)
    if registered is None:
        raise unknown_workflow(service, name)
    if not reader.get_graph_ages(service.store, registered.digest):
        missing = (
            f"the graph of {name} is not here any more: it is stored again when a worker that has the class starts"
        )
        raise HttpProblem(503, missing, headers={"Retry-After": "30"})
    definition = registering.registered_definition(service.store, registered, asked.input)
    return start_defined(service, Defined(service.engine, definition), asked, key)


def _defined(service: ServerProcess, document: Document, values: dict[str, Any]) -> Defined:
    """A document, stored or not. If its nodes need something that is not here, other workers run it."""
    worker = service.worker
    if worker is not None:
        try:
            return Defined(worker, worker.parts.code.definition_of_document(document, values, works=True))
        except MissingJob:
            pass
    definition = service.engine.parts.code.definition_of_document(document, values, works=False)
    return Defined(service.engine, definition)


def define_inline(service: ServerProcess, asked: StartInline) -> Defined:
    """What came with the request, checked. A graph names jobs: they run where they are registered, and nowhere else."""
    document, graph, workflow = asked.document, asked.graph, asked.workflow
    if (document is None) == (graph is None):
        raise InputError("expected either `document` or `graph`, which say what is to run")
    if document is not None:
        return _defined(service, Document(document, service.handlers), asked.input)
    if workflow is None or not workflow.strip() or not workflow.isprintable() or workflow.startswith("@"):
        raise InputError(
            "expected `workflow` beside `graph`: the name that runs of it have, without @ at its beginning"
        )
    if asked.input:
        raise InputError("`input` is for documents: the nodes of a graph have their arguments")
    read = with_templates_read(from_frozen(graph or {}), service.handlers)
    definition = Definition(
        workflow,
        None,
        arrange(read, read, pinned=True, trusted=False),
        {},
        "fail_fast",
        None,
        service.engine.parts.code.for_data(),
    )
    return Defined(service.engine, definition)


def start_defined(
    service: ServerProcess, defined: Defined, asked: StartRequest, key: str | None
) -> tuple[RunRow, bool]:
    """The run, and whether it is new."""
    engine, definition = defined
    chosen = new_run_id() if asked.run_id is None else checked_run_id(asked.run_id)
    known = asked.run_id is not None and reader.get_run(service.store, chosen) is not None
    options = asked.model_dump(include={"priority", "deadline", "seed", "tags"})
    create = create_op(definition, chosen, key, **options)
    started = engine.parts.starting.start(definition, create, fresh=asked.run_id is None and key is None)
    return service.row(started), started == chosen and not known


def _instance(workflow: type[Workflow], values: dict[str, Any]) -> Workflow:
    try:
        return workflow(**values)
    except TypeError as error:  # an input that it does not have
        raise InputError(f"{workflow.workflow_name}: {error}") from None


def unknown_workflow(service: ServerProcess, name: str) -> HttpProblem:
    names = [row.name for row in versions.all_names(service.store, "document")]
    names += [each.name for each in registering.registered_workflows(service.store, None, 1_000)]
    meant = suggestion(name, names, "GET /api/v1/workflows lists what there is")
    return HttpProblem(404, f"no workflow {name[:200]!r} is known here; {meant}")
