"""What an engine has the code of: the graphs and bodies of the workflows it was given, started or found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..codec import decode
from ..define import Bodies, Builder, Definition, Target, Workflow, bodies_for, definition_of, load_target
from ..define.workflow import check_one_name
from ..errors import DefinitionError, InputError, StoreCorrupt
from ..graph import Graph
from ..ids import Digest, RunId
from ..model import RunRow
from ..store import Store, reader
from .recent import Recent
from .work import RunFacts


class Outdated(DefinitionError):
    """A run follows another version of its workflow than this process has."""


class Code:
    def __init__(self, store: Store, workflows: Iterable[type[Workflow]]) -> None:
        self._store = store
        self._met: dict[str, type[Workflow]] = {}
        """Every class that was started or is served here, by name: two of one name are refused."""
        self.given = {workflow.workflow_name: self._meet(workflow) for workflow in workflows}
        self._graphs: Recent[str, Graph] = Recent(128)
        self._found: Recent[tuple[str, str], Bodies] = Recent(1_000)
        """By workflow and digest: a class inside a function cannot be found by its address."""
        self._latest: Recent[str, Graph] = Recent(1_000)
        """By workflow: the graph of the class that was started here last."""

    def definition_of(self, workflow: Workflow | Builder) -> Definition:
        definition = definition_of(workflow)
        if isinstance(workflow, Workflow):
            self._meet(type(workflow))
        return definition

    def _meet(self, workflow: type[Workflow]) -> type[Workflow]:
        check_one_name(workflow, self._met.setdefault(workflow.workflow_name, workflow))
        return workflow

    def remember(self, definition: Definition) -> bool:
        """What was started here; True if it is a version of a class that was not known."""
        graph = definition.graph
        self._found[definition.workflow, graph.digest] = definition.bodies
        if definition.target is None or self._latest.get(definition.workflow) is graph:
            return False
        self._latest[definition.workflow] = graph
        return True

    def introduce(self, workflows: Iterable[type[Workflow]]) -> None:
        """Classes that are here, whether there are runs of them or not."""
        for workflow in workflows:
            self._latest[workflow.workflow_name] = self._meet(workflow).graph()

    def has_version_of(self, workflow: str, target: str | None) -> bool:
        """The class of a workflow is here; True if that, or that it has changed, was not known."""
        try:
            today = self.today(workflow, target)
        except DefinitionError:
            return False
        if today is None or dict(self.versions()).get(workflow) == today.digest:
            return False
        self._latest[workflow] = today
        return True

    def stored(self, graph: Graph) -> None:
        self._graphs[graph.digest] = graph

    def known_graph(self, digest: Digest) -> Graph | None:
        """The graph, if it need not be read."""
        return self._graphs.get(digest)

    def graph(self, digest: Digest, run_id: RunId | None = None) -> Graph:
        found = self._graphs.get(digest)
        if found is None:
            document = reader.get_graph(self._store, digest)
            if document is None:
                of_run = f" of run {run_id}" if run_id else ""
                raise StoreCorrupt(f"the graph {digest}{of_run} is missing from the store")
            found = self._graphs[digest] = Graph.load(document)
        return found

    def input_for(self, row: RunRow, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The input of a run with some of it changed, checked by the class as it is now."""
        target = self.given.get(row.workflow) or (
            None if row.target is None else self._target(row.workflow, row.target)
        )
        if not (isinstance(target, type) and issubclass(target, Workflow)):
            raise InputError(f"run {row.id} is of a workflow that takes no input")
        return target(**{**decode(row.input), **changes}).input()

    def _target(self, workflow: str, target: str) -> Target:
        try:
            return load_target(target)
        except DefinitionError:  # a class inside a function is known to who started it
            if workflow not in self._met:
                raise
            return self._met[workflow]

    def today(self, workflow: str, target: str | None) -> Graph | None:
        """The graph that the class of a workflow gives now; None for a dynamic workflow, whose runs keep what they got."""
        if workflow in self.given:
            return self.given[workflow].graph()
        if target is None:
            return None
        try:
            found = load_target(target)
        except DefinitionError:
            latest = self._latest.get(workflow)
            if latest is None:
                raise
            return latest
        return found.graph() if isinstance(found, type) and issubclass(found, Workflow) else None

    def versions(self) -> list[tuple[str, Digest]]:
        """The versions of class-based workflows this process would run, for others to know."""
        latest = {workflow: graph.digest for workflow, graph in list(self._latest.items())}
        return sorted((latest | {name: given.graph().digest for name, given in self.given.items()}).items())

    def bodies(self, workflow: str, target: str | None, graph: Graph) -> Bodies:
        """What is at the address of the class now comes first: it may have been written anew, as in a notebook."""
        found = self._at_hand(workflow, graph)
        if workflow not in self.given and target is None and found is not None:
            return found
        try:
            return bodies_for(self.given.get(workflow, target), graph.state)
        except DefinitionError:
            # A run that was frozen, or got an edited graph, follows no class any more: its methods are still those.
            if found is None and workflow in self._met:
                return bodies_for(self._met[workflow])
            if found is None:
                raise
            return found

    def _at_hand(self, workflow: str, graph: Graph) -> Bodies | None:
        return self._found.get((workflow, graph.digest)) or self._found.get((workflow, graph.follows or ""))

    def facts(self, row: RunRow) -> RunFacts:
        """What a worker needs to know to run the nodes of this run; Outdated if it follows another version."""
        graph = self.graph(row.digest, row.id)
        if self.outdated(row.workflow, row.target, graph):
            raise Outdated(f"run {row.id} follows another version of {row.workflow} than this process has")
        bodies = self.bodies(row.workflow, row.target, graph)
        facts = RunFacts(row.id, row.workflow, row.target, graph, row.input, row.seed, bodies)
        facts.since, facts.heals, facts.active = row.seq, row.heals, row.active
        return facts

    def outdated(self, workflow: str, target: str | None, graph: Graph) -> bool:
        """The class has changed since a run got this graph, which follows it."""
        if graph.follows is None:
            return False
        try:
            today = self.today(workflow, target)
        except DefinitionError:
            if self._at_hand(workflow, graph) is None:
                raise
            return False
        return today is not None and today.digest != graph.follows

    def lanes_if_complete(self, workflow: str, target: str | None, graph: Graph) -> frozenset[str] | None:
        """The lanes of a graph of which every body is found here, else None."""
        try:
            bodies = self.bodies(workflow, target, graph)
            for spec in {spec.job or spec.id: spec for spec in graph}.values():
                bodies.find(spec)
        except Exception:
            return None
        self._found[workflow, graph.digest] = bodies
        return graph.lanes
