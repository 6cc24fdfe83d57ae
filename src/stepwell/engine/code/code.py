"""The code that an engine has: the graphs and bodies of the workflows it was given, started or found.

Names in graphs and rows are looked up by one of two finders (`define.registry`): `ANYTHING` for what a program of the user
stored, otherwise the registry of the engine, which finds only what is registered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

from ...base.clock import SECOND
from ...base.codec import decode
from ...base.ids import Digest
from ...core.graph import Graph, NodeSpec
from ...core.model import INTERNAL_WORKFLOW, SATISFIED_NODES, Lane, NodeStatus, RunRow
from ...core.store import Store, reader
from ...define import ANYTHING, Bodies, Builder, Definition, Finder, NotRegistered, Registry, Target, Workflow
from ...define.classes.workflow import check_one_name
from ...define.code.address import loaded
from ...define.code.bodies import bodies_for, definition_of, definition_of_document, load_class, load_target
from ...define.code.registry import OwnJobs, calls_in, names_in
from ...define.document import Document
from ...define.document.inputs import checked_input
from ...define.types.inputs import misfits
from ...errors import DefinitionError, InputError, MissingJob
from ...handlers import Handlers
from ..bodies.held import RunFacts
from ..recent import Recent
from .graphs import Graphs

Found = TypeVar("Found")


class Outdated(DefinitionError):
    """A run follows another version of its workflow than this process has."""


FindInternal: TypeAlias = "Callable[[Store, Code, Graph], Bodies]"
"""The bodies of an internal run; a DefinitionError says what of its code is not here."""

_MAY_RUN = tuple(status for status in NodeStatus if status not in SATISFIED_NODES)


class Code:
    def __init__(
        self,
        store: Store,
        workflows: Iterable[type[Workflow]],
        jobs: Iterable[str] = (),
        handlers: Handlers | None = None,
        pipelines: Iterable[Any] = (),
        internal: FindInternal | None = None,
    ) -> None:
        self._store = store
        self._internal = internal
        self._pipelines = pipelines
        self._own_jobs: OwnJobs | None = None
        self._finding_own_jobs = threading.Lock()
        self.handlers = Handlers() if handlers is None else handlers
        self._registry = Registry(jobs)
        self._rows: Finder = ANYTHING if store.embedded else self._registry
        """Finds what rows of the store name."""
        self._added: dict[str, type[Workflow]] = {}
        """Every class that was started or is served here, by name; two classes of one name are refused."""
        self.given = {workflow.workflow_name: self._add(workflow) for workflow in workflows}
        self.graphs = Graphs(store)
        self._found: Recent[tuple[str, str], Bodies] = Recent(1_000)
        """Bodies by workflow and digest: a class inside a function cannot be found by its address."""
        self._latest: Recent[str, Graph] = Recent(1_000)
        """By workflow, the graph of the class that was started here last."""
        self._complete: Recent[tuple[str, str], tuple[NodeSpec, ...]] = Recent(128)
        """By workflow and digest, the nodes of graphs whose code is all here."""

    def definition_of_document(self, document: Document, input: Mapping[str, Any], *, works: bool) -> Definition:
        """A checked document with its input. If this engine `works` on it, all that its nodes need must be here."""
        known = self._found.get((document.name, document.graph.digest))  # its templates are compiled
        definition = definition_of_document(
            document, input, known or Bodies(finder=self._registry.for_data, handlers=self.handlers)
        )
        if works:
            self._refuse_if(definition.bodies.missing(definition.graph, is_data=True))
        return definition

    def definition_of(self, workflow: Workflow | Builder, *, works: bool = True) -> Definition:
        """What to run. If this engine `works` on it, all that its nodes name must be here, and on a server registered."""
        definition = definition_of(workflow)
        if isinstance(workflow, Workflow):
            self._add(type(workflow))
        else:
            self._registry.add_functions(workflow._functions)
            if workflow._state is not None:
                self._registry.add_state(workflow._state.declared)
        bodies = definition.bodies.by(self._rows, self.own_jobs)
        if self._rows is ANYTHING:
            return definition._replace(bodies=bodies)
        missing = bodies.missing(definition.graph) if works else []
        for each in missing:
            if isinstance(each.__cause__, NotRegistered):
                each.reason = each.__cause__.named_by_builder
        self._refuse_if(missing)
        return definition._replace(bodies=bodies)

    def _add(self, workflow: type[Workflow]) -> type[Workflow]:
        check_one_name(workflow, self._added.setdefault(workflow.workflow_name, workflow))
        self._registry.add_workflow(workflow)
        return workflow

    def remember(self, definition: Definition) -> bool:
        """Remember what was started here; whether it is a new version of a class."""
        graph = definition.graph
        self._found[definition.workflow, graph.digest] = definition.bodies
        if definition.target is None or self._latest.get(definition.workflow) is graph:
            return False
        self._latest[definition.workflow] = graph
        return True

    def introduce(self, workflows: Iterable[type[Workflow]]) -> None:
        """Remember classes of which there may be no runs yet."""
        for workflow in workflows:
            self._latest[workflow.workflow_name] = self._add(workflow).workflow_graph()

    def has_version_of(self, workflow: str, target: str | None) -> bool:
        """Whether the class of a workflow is here and is new, or has changed."""
        try:
            today = self.today(workflow, target)
        except DefinitionError:
            return False
        if today is None or dict(self.versions()).get(workflow) == today.digest:
            return False
        self._latest[workflow] = today
        return True

    def bodies_of(self, row: RunRow) -> Bodies:
        """The code of a run, imported if need be."""
        return self.bodies(row.workflow, row.target, self.graphs.of(row))

    def input_for(self, row: RunRow, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The input of a run with changes, checked by the present class."""
        target, source = self.target_of(row), self.graphs.of(row).source
        if source is not None:
            return checked_input(row.workflow, source.input, {**decode(row.input), **changes})
        if not (isinstance(target, type) and issubclass(target, Workflow)):
            raise InputError(f"run {row.id} is of a workflow that takes no input")
        stored = {name: value for name, value in decode(row.input).items() if name in target._compiled.inputs}
        return target(**{**stored, **changes}).workflow_input()

    def misfits(self, row: RunRow) -> dict[str, list[str]]:
        """By input: why the present class refuses the stored value, or misses one. Inputs it no longer has do not matter."""
        return misfits(self.bodies_of(row).inputs, decode(row.input))

    def filled_input(self, row: RunRow, values: Mapping[str, Any]) -> dict[str, Any]:
        """The input of a run with values for what its class misses or refuses. The rest stays: nodes ran with it."""
        needed = self.misfits(row)
        for name in values:
            if name not in needed:
                wanted = f"needed are {', '.join(needed)}" if needed else "its input fits its class"
                raise InputError(
                    f"{name}: resume and retry take only what the class of run {row.id} misses or refuses ({wanted}); "
                    f"`run.fork(..., input={{...}})` begins a run with another input"
                )
        return self.input_for(row, values)

    def target_of(self, row: RunRow) -> Target | None:
        """The class of a run; None for a dynamic workflow."""
        if row.workflow in self.given or row.target is None:
            return self.given.get(row.workflow)
        try:
            return self._load(row.target, load_target)
        except DefinitionError:  # a class inside a function is known only where it was started
            if row.workflow not in self._added:
                raise
            return self._added[row.workflow]

    def classes(self) -> list[type[Workflow]]:
        """The classes that were given, served or started here."""
        return list(self._added.values())

    def known_class(self, named: str) -> type[Workflow] | None:
        """The class of this name or address, if it was given or started here."""
        found = self.given.get(named) or self._added.get(named)
        return found or next((each for each in self._added.values() if each.workflow_target == named), None)

    def is_registered(self, target: str) -> bool:
        """Whether code may run from this address: it is registered, or its module allowed. Imports nothing."""
        return self._registry.for_data.allows(target)

    def registered(self, target: str) -> Target:
        """What is at this address, if it is registered or its module allowed: whoever may write a trigger must not choose
        among everything that can be imported."""
        return load_target(target, self._registry.for_data)

    def _load(self, target: str, load: Callable[[str, Finder], Found]) -> Found:
        """Load what a row names; MissingJob if it is not registered and the store is a server."""
        try:
            return load(target, self._rows)
        except NotRegistered as error:
            raise MissingJob(str(error), job=target, attempted=False) from None

    def today(self, workflow: str, target: str | None) -> Graph | None:
        """The graph of the present class; None for a dynamic workflow, whose runs keep their graphs."""
        if workflow in self.given:
            return self.given[workflow].workflow_graph()
        if target is None:
            return None
        try:
            found = self._load(target, load_target)
        except DefinitionError:
            latest = self._latest.get(workflow)
            if latest is None:
                raise
            return latest
        return found.workflow_graph() if isinstance(found, type) and issubclass(found, Workflow) else None

    def versions(self) -> list[tuple[str, Digest]]:
        """The versions of class-based workflows that this process would run, to announce."""
        latest = {workflow: graph.digest for workflow, graph in list(self._latest.items())}
        return sorted((latest | {name: given.workflow_graph().digest for name, given in self.given.items()}).items())

    def bodies(self, workflow: str, target: str | None, graph: Graph) -> Bodies:
        """The bodies of a run. The class now at its address goes first: it may have been rewritten, as in a notebook."""
        if workflow == INTERNAL_WORKFLOW:
            if self._internal is None:
                raise DefinitionError(f"runs of {workflow} are not for this process")
            return self._internal(self._store, self, graph)
        found = self._at_hand(workflow, graph)
        if workflow not in self.given and target is None and found is not None:
            return found
        try:
            known = self.given.get(workflow) or (None if target is None else self._load(target, load_class))
            if known is not None:
                self._registry.add_workflow(known)
            return self._with_finder(bodies_for(known, graph.state, handlers=self.handlers), graph)
        except DefinitionError:
            # A run with a frozen or edited graph follows no class, but its methods are still those of one.
            if found is None and workflow in self._added:
                return self._with_finder(bodies_for(self._added[workflow]), graph)
            if found is None:
                raise
            return found

    def _with_finder(self, bodies: Bodies, graph: Graph) -> Bodies:
        """The bodies for a graph, which find what it may name."""
        if graph.trusted:
            return bodies.by(self._rows, self.own_jobs)
        return bodies.for_data(self._registry.for_data)

    def for_data(self) -> Bodies:
        """The bodies of a graph that came from elsewhere."""
        return Bodies(finder=self._registry.for_data, handlers=self.handlers)

    def own_jobs(self) -> Any:
        """The jobs of pipelines that this engine was given: by an object, or by a module that is allowed.

        Pipelines are above the runner, so their jobs are loaded when a graph names one.
        """
        with self._finding_own_jobs:
            if self._own_jobs is None:
                jobs = import_module("stepwell.pipeline.building.jobs")
                self._own_jobs = jobs.PipelineJobs(self._pipelines, self._registry.allows_module)
            return self._own_jobs

    def class_at_hand(self, row: RunRow) -> type[Workflow] | None:
        """The class of a run, if it is imported. Imports nothing."""
        found: object = self.given.get(row.workflow) or self._added.get(row.workflow)
        if found is None and row.target is not None:
            found = loaded(row.target)
        return found if isinstance(found, type) and issubclass(found, Workflow) else None

    def at_hand(self, row: RunRow) -> Bodies:
        """The code of a run as far as it is imported."""
        cls = self.class_at_hand(row)
        if cls is not None:
            return bodies_for(cls)
        return self._at_hand(row.workflow, self.graphs.of(row)) or Bodies()

    def may_trust(self, current: Graph, new: Graph) -> bool:
        """Whether an imported graph calls only what the graph of the run calls, with the same arguments, or what is
        registered for data. Imports nothing.
        """
        knows, names, calls = self._registry.for_data.knows, names_in(current), calls_in(current)
        return (
            current.trusted
            and all(name in names or knows(name) for name in names_in(new))
            and all(call in calls or knows(call[0]) for call in calls_in(new))
        )

    def _at_hand(self, workflow: str, graph: Graph) -> Bodies | None:
        return self._found.get((workflow, graph.digest)) or self._found.get((workflow, graph.follows or ""))

    def facts(self, row: RunRow, again: Collection[int] = ()) -> RunFacts:
        """What a worker needs to run the nodes of this run; Outdated if the run follows another version.

        MissingJob if the code of a node that may run is not here: one that has not completed, or is to run `again`.
        """
        graph = self.graphs.of(row)
        if self.outdated(row.workflow, row.target, graph):
            raise Outdated(f"run {row.id} follows another version of {row.workflow} than this process has")
        bodies = self.bodies(row.workflow, row.target, graph)
        specs = self._complete.get((row.workflow, row.digest))
        if specs is None:
            specs = self._checked(row, graph, bodies, again)
        given = self.given.get(row.workflow)
        target = row.target if given is None else given.workflow_target  # the class may have moved to another module
        facts = RunFacts(row.id, row.workflow, target, graph, row.input, row.seed, bodies)
        facts.specs = specs
        facts.since, facts.heals, facts.active, facts.priority = row.seq, row.heals, row.active, row.priority
        return facts

    def outdated(self, workflow: str, target: str | None, graph: Graph) -> bool:
        """Whether the class that this graph follows has changed since."""
        if graph.follows is None:
            return False
        try:
            today = self.today(workflow, target)
        except DefinitionError:
            if self._at_hand(workflow, graph) is None:
                raise
            return False
        return today is not None and today.digest != graph.follows

    def _checked(self, row: RunRow, graph: Graph, bodies: Bodies, again: Collection[int]) -> tuple[NodeSpec, ...]:
        """The nodes of a graph by number; MissingJob if the code of one that may run is not here."""
        is_data = graph.follows is None
        missing = bodies.missing(graph, is_data=is_data)
        if missing and graph.trusted:
            nodes = reader.all_nodes(self._store, row.id, *_MAY_RUN)
            may_run = {*again, *(node.index for node in nodes)} - graph.removed
            self._refuse_if(bodies.missing([graph.in_order[index] for index in may_run], is_data=is_data), row)
            return bodies.retrying(graph.in_order)
        self._refuse_if(missing, row)
        specs = self._complete[row.workflow, row.digest] = bodies.retrying(graph.in_order)
        return specs

    def _refuse_if(self, missing: list[MissingJob], row: RunRow | None = None) -> None:
        if missing:
            facts = {} if row is None else {"run_id": row.id, "frozen_at": row.created_at / SECOND}
            others = [each.job or str(each.node) for each in missing[1:]]
            raise missing[0].with_facts(**facts, attempted=False, others=others)

    def lanes_if_complete(self, workflow: str, target: str | None, graph: Graph) -> frozenset[Lane] | None:
        """The lanes of a graph if all its code is here, else None."""
        try:
            if self.absent(workflow, target, graph) is not None:
                return None
        except Exception:
            return None
        bodies = self._found[workflow, graph.digest] = self.bodies(workflow, target, graph)
        # Ordering a wide graph takes a while: better now than when its first node is claimed.
        self._complete[workflow, graph.digest] = bodies.retrying(graph.in_order)
        return graph.lanes

    def absent(self, workflow: str, target: str | None, graph: Graph) -> str | None:
        """The first thing that is missing here to run this graph; None if nothing is."""
        try:
            missing = self.bodies(workflow, target, graph).missing(graph, is_data=graph.follows is None)
        except DefinitionError as error:
            return str(error)
        return missing[0].reason if missing else None
