"""How the runs begin to which bodies hand their nodes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..base.ids import RunId
from ..core.model import Create
from ..define import Builder, Definition, Performer, Saved, Workflow
from .bodies.held import RunFacts
from .code.code import Code
from .documents import Documents
from .starting import create_op, facts_of


class ChildStarts:
    def __init__(self, code: Code, documents: Documents, announce: Callable[[], None]) -> None:
        self._code, self._documents, self._announce = code, documents, announce

    def definition(self, workflow: Performer) -> Definition:
        assert isinstance(workflow, Workflow | Builder | Saved)
        if isinstance(workflow, Saved):
            definition = self._code.definition_of_document(
                self._documents.find(workflow.name), workflow.input, works=True
            )
        else:
            definition = self._code.definition_of(workflow)
        if isinstance(workflow, Builder):
            workflow._check_named_jobs()
        self._code.graphs.recall(definition.graph)
        if self._code.remember(definition):
            self._announce()
        return definition

    def create(
        self, definition: Definition, run_id: RunId, *, seed: int, priority: int, tags: Mapping[str, str]
    ) -> Create:
        # Not as an id that people choose, which is shorter: it begins with one.
        return create_op(definition, seed=seed, priority=priority, tags=tags)._replace(run_id=run_id)

    def facts(self, definition: Definition, create: Create) -> RunFacts:
        facts = facts_of(definition, create)
        facts.started_here = False
        return facts
