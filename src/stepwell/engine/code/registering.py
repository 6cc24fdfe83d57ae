"""Workers register their classes (name, graph, input schema) and their handlers (name, config schema), kept as records.

So a server without the code can list and draw classes, check an input, and check and start documents that name handlers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ...base.codec import decode, encode
from ...base.ids import Digest
from ...base.words import iso
from ...core.graph import Graph
from ...core.model import ListRecords, Op, PutRecord, RecordRow, Refused
from ...core.store import Store, reader
from ...core.store.living import served
from ...define import Bodies, Definition, Workflow
from ...define.document.inputs import checked_input
from ...define.types.input_schema import input_schema
from ...errors import InputError
from ...handlers import Handler, Handlers
from ...handlers.described import from_data, to_data
from .graphs import commit_graph

if TYPE_CHECKING:
    from ...answers.workflows import WorkflowRecord
    from ...define.options import OnFailure

KIND = "workflow"
HANDLER = "handler"
LOOK_SECONDS = 1.0
"""For how long the registered handlers are remembered: a document may name thousands that are nowhere."""
_TRIES = 10


class RegisteredWorkflow(NamedTuple):
    """A class that workers have, or had, the code of."""

    name: str
    target: str
    digest: Digest
    input: dict[str, Any]
    """The JSON Schema of its input."""
    on_failure: str
    deadline: float | None
    description: str | None
    registered_at: int
    """Microseconds of the store's clock."""

    def to_dict(self) -> WorkflowRecord:
        return {
            "name": self.name,
            "kind": "class",
            "version": None,
            "versions": None,
            "digest": self.digest,
            "saved_at": iso(self.registered_at),
        }


def register_workflows(store: Store, workflows: Iterable[type[Workflow]]) -> None:
    """Register these classes, unless they are known, or a live worker serves newer code."""
    for workflow in workflows:
        for _ in range(_TRIES):
            there = reader.get_record(store, KIND, workflow.workflow_name)
            if there is not None and _leave(store, _read(there), workflow.workflow_graph()):
                break
            if _put(store, workflow, there):
                break


def registered_workflow(store: Store, name: str) -> RegisteredWorkflow | None:
    row = reader.get_record(store, KIND, name)
    return None if row is None else _read(row)


def registered_workflows(store: Store, after: str | None, limit: int) -> Iterator[RegisteredWorkflow]:
    (rows,) = store.read([ListRecords(KIND, after, limit)])
    return map(_read, rows)


def registered_by_target(store: Store, target: str) -> RegisteredWorkflow | None:
    """The class at this address."""
    found = (_read(row) for row in reader.all_records(store, KIND))
    return next((each for each in found if each.target == target), None)


def registered_definition(store: Store, workflow: RegisteredWorkflow, values: dict[str, Any]) -> Definition:
    """The definition of a run whose code only workers have. The input is checked by the registered schema."""
    document = reader.get_graph(store, workflow.digest)
    if document is None:
        raise InputError(
            f"the graph of {workflow.name} is not here any more: a worker that has the class stores it again"
        )
    checked = checked_input(workflow.name, workflow.input, values)
    failing = cast("OnFailure", workflow.on_failure)
    return Definition(
        workflow.name, workflow.target, Graph.load(document), checked, failing, workflow.deadline, Bodies()
    )


def _leave(store: Store, there: RegisteredWorkflow, graph: Graph) -> bool:
    """Whether this version is registered, or a live worker has a newer one: in a rolling deploy the newest counts."""
    ages = reader.get_graph_ages(store, there.digest, graph.digest)
    if there.digest == graph.digest:
        return there.digest in ages
    if ages.get(graph.digest, 2**62) > ages.get(there.digest, -1):
        return False
    return (there.name, there.digest) in served(store)


def _put(store: Store, workflow: type[Workflow], there: RecordRow | None) -> bool:
    """False if somebody else has just registered the same class."""
    graph, options = workflow.workflow_graph(), workflow._compiled.options
    value = {
        "target": workflow.workflow_target,
        "digest": graph.digest,
        "input": input_schema(workflow),
        "on_failure": options.on_failure,
        "deadline": options.deadline,
        "description": (workflow.__doc__ or "").strip()[:2_000] or None,
    }
    last = commit_graph(store, graph, workflow.workflow_name)
    put = PutRecord(KIND, workflow.workflow_name, encode(value), 0 if there is None else there.version)
    receipts = store.commit([last, put])
    return not isinstance(receipts[-1], Refused)


def _read(row: RecordRow) -> RegisteredWorkflow:
    value: dict[str, Any] = decode(row.value)
    known = {name: value.get(name) for name in RegisteredWorkflow._fields if name not in ("name", "registered_at")}
    return RegisteredWorkflow(name=row.key, registered_at=row.version, **known)  # type: ignore[arg-type]


def register_handlers(store: Store, handlers: Handlers) -> None:
    """Register the handlers of this process that are not built in. Who starts last counts."""
    puts: list[Op] = []
    for handler in handlers.own():
        value = encode(to_data(handler))
        there = reader.get_record(store, HANDLER, handler.name)
        if there is None or there.value != value:
            puts.append(PutRecord(HANDLER, handler.name, value))
    if puts:
        store.commit(puts)


class KnownHandlers(Handlers):
    """The handlers of this process, and those that workers have registered: enough to check documents, not to run them."""

    def __init__(self, here: Handlers, store: Store) -> None:
        super().__init__(access=here.access)
        self._here = here
        self._store = store
        self._registered: dict[str, Handler] = {}
        self._look_at = 0.0

    def __getitem__(self, name: str) -> Handler:
        try:
            return self._here[name]
        except KeyError:
            return self._of_workers()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._here or name in self._of_workers()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._here, *self._of_workers()}))

    def _of_workers(self) -> dict[str, Handler]:
        if time.monotonic() >= self._look_at:
            rows = reader.all_records(self._store, HANDLER)
            self._registered = {row.key: from_data(row.key, decode(row.value)) for row in rows}
            self._look_at = time.monotonic() + LOOK_SECONDS
        return self._registered
