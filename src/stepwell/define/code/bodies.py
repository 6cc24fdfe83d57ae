"""What the runner needs of a workflow: its definition, and the callable behind each node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ...base.ids import NodeId
from ...base.templates import compile_condition
from ...base.types.shapes import Shape
from ...base.words import shown
from ...core.graph import Graph, NodeSpec, Retry
from ...core.graph.branching import StoredCondition
from ...core.graph.retry import RetryOn
from ...errors import DefinitionError, MissingJob
from ...handlers import Handlers
from ..builder import Builder
from ..classes.workflow import Workflow, call_of
from ..options import OnFailure
from ..types.inputs import Input
from ..types.state import StateType, checked_state
from .address import loaded, predicate_at
from .conditions import AnyCondition, Condition, ConditionalBody, found_condition
from .handled import ExpressionCondition, HandledBody, function_handler
from .invoke import AnyBody, Job, JobBody, MethodBody, said_to_return
from .jobs import refuse_workflow
from .registry import ANYTHING, Finder, OwnJobs, is_own

if TYPE_CHECKING:
    from ..document import Document

Target: TypeAlias = "type[Workflow] | Callable[..., Builder]"
Body: TypeAlias = MethodBody | JobBody | HandledBody
Predicate: TypeAlias = Callable[[Any], bool]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Bodies:
    """Finds the callable of a node: a method of the workflow's class, a job given as a function, or one by address."""

    def __init__(
        self,
        workflow: str | None = None,
        methods: Mapping[str, MethodBody] = _NOTHING,
        jobs: Mapping[str, Callable[..., Any]] = _NOTHING,
        state: StateType | str | None = None,
        finder: Finder = ANYTHING,
        inputs: Mapping[str, Input] = _NOTHING,
        handlers: Handlers | None = None,
        predicates: Mapping[tuple[NodeId, str], Predicate] | None = None,
        own_jobs: Callable[[], OwnJobs] | None = None,
        conditions: Mapping[str, Condition] = _NOTHING,
    ) -> None:
        self._finder = finder
        self.own_jobs = own_jobs
        """Finds jobs of Stepwell itself; None for what came from elsewhere, which never reaches them."""
        self._predicates = predicates or {}
        """Functions in `retry_on` of nodes of the class, by node and name."""
        self._conditions = conditions
        """Conditions of nodes of the class, by node."""
        self._known_conditions: dict[tuple[str, str | None, tuple[NodeId, ...]], AnyCondition] = {}
        self._handlers = handlers
        self._handled: dict[str, HandledBody] = {}
        """By node id, so that their templates are compiled once."""
        self.inputs = inputs
        """The inputs of the class."""
        self._workflow = workflow
        self._methods = methods
        self._functions = jobs
        self._jobs: dict[str, Job] = {}
        self._state = state
        self.has_state = state is not None

    @property
    def state(self) -> StateType | None:
        """The typed state of the workflow, imported when it is first asked for; None when it has none."""
        if isinstance(self._state, str):
            address, declared = self._state, self._finder.find(self._state)
            if not isinstance(declared, type):
                raise DefinitionError(f"{address}: expected a class that declares a state, got {declared!r}")
            self._state = checked_state(declared, address)
        return self._state

    @property
    def restricted(self) -> bool:
        """Whether only registered code is found."""
        return self._finder is not ANYTHING

    def by(self, finder: Finder, own_jobs: Callable[[], OwnJobs] | None = None) -> Bodies:
        """The same bodies with another finder for names."""
        bodies = copy(self)
        bodies._finder, bodies.own_jobs, bodies._handled, bodies._jobs = finder, own_jobs, {}, {}
        bodies._known_conditions = {}
        return bodies

    def for_data(self, finder: Finder) -> Bodies:
        """The same bodies for a graph that came from elsewhere: its author chose the arguments of jobs, so it gets only
        those that the finder finds.
        """
        bodies = self.by(finder)
        bodies._functions = _NOTHING
        return bodies

    def find(self, spec: NodeSpec) -> AnyBody:
        """The body of a node; MissingJob says what is missing and what to do."""
        body = self.unconditional(spec)
        return body if spec.when is None else ConditionalBody(body, self._condition(spec))

    def unconditional(self, spec: NodeSpec) -> Body:
        """The body of a node without its condition."""
        if spec.templated:
            known = self._handled.get(spec.id)
            if known is None or known.args is not spec.args or known.needs != spec.needs:
                known = self._handled[spec.id] = self._handled_body(spec)
            return known
        if spec.job is not None:
            job = self._jobs.get(spec.job) or self._found(spec, spec.job)
            needs = spec.needs if spec.when is None else job.taken_from(spec.needs, spec.args)
            return JobBody(job, spec.args, needs, self.has_state)
        body = self._methods.get(spec.id)
        if body is None:
            where = f"{self._workflow} has no step or task" if self._workflow else "no class of this run has a method"
            raise _missing(spec, f"{where} {spec.name!r}")
        return body if body.needs == spec.needs else body.taking(spec.needs)

    def _condition(self, spec: NodeSpec) -> AnyCondition:
        """The condition of a node: that of its class, an expression, or the function that its graph names."""
        key = (spec.id, spec.when, spec.needs)
        known = self._known_conditions.get(key)
        if known is None:
            known = self._known_conditions[key] = self._found_condition(spec, spec.when or "")
        return known

    def _found_condition(self, spec: NodeSpec, when: str) -> AnyCondition:
        if spec.templated:
            return ExpressionCondition(spec.needs, compile_condition(when))
        own, stored = self._conditions.get(spec.id), StoredCondition.read(when)
        if stored is None:
            if own is None or own.name != when:
                raise _missing(spec, f"the class of this run has no condition {when} of node {spec.name!r}")
            return own
        try:
            return found_condition(stored, self._condition_function)
        except DefinitionError as error:
            raise _missing(spec, str(error)) from error

    def _condition_function(self, address: str) -> Any:
        function = self._functions.get(address)
        return self._finder.find(address) if function is None else function

    def returns_of(self, spec: NodeSpec) -> Shape | None:
        """The return type of a node; None if it has none, or its code is not imported. Imports nothing."""
        if spec.job is None:
            body = self._methods.get(spec.id)
            return None if body is None else body.returns
        job = self._jobs.get(spec.job)
        if job is None:  # it is not remembered: whether it may run is another question
            function = self._functions.get(spec.job) or loaded(spec.job)
            return said_to_return(function) if callable(function) else None
        return job.signature.returns

    def _handled_body(self, spec: NodeSpec) -> HandledBody:
        name = spec.job or spec.name
        if ":" in name:
            job = self._jobs.get(name) or self._found(spec, name)
            returns = job.signature.returns
            return HandledBody.of(spec, function_handler(name, job), self.handlers, is_function=True, returns=returns)
        if name not in self.handlers:
            raise _missing(spec, self.handlers.missing(name, {})[0])
        return HandledBody.of(spec, self.handlers[name], self.handlers, is_function=False)

    @property
    def handlers(self) -> Handlers:
        if self._handlers is None:
            self._handlers = Handlers()
        return self._handlers

    def _found(self, spec: NodeSpec, address: str) -> Job:
        function = self._functions.get(address)
        if function is None:
            try:
                if is_own(address) and self.own_jobs is not None:
                    function = self.own_jobs().job(address, spec.args)
                else:
                    function = self._finder.find(address)
                refuse_workflow(function)
            except DefinitionError as error:
                raise _missing(spec, str(error)) from error
        if not callable(function):
            raise _missing(spec, f"{address} is {function!r}, which cannot be called")
        return self._jobs.setdefault(address, Job.of(function))

    def missing(self, specs: Iterable[NodeSpec], *, is_data: bool = False) -> list[MissingJob]:
        """What these nodes name and cannot be found, each once: the state, jobs, methods, handlers, services and secrets.

        With `is_data`, for a graph that somebody wrote as data, also exceptions in `retry_on`, which nobody has looked up.
        """
        missing_jobs: list[MissingJob] = []
        try:
            self.state  # noqa: B018  # it is imported when it is asked for
        except DefinitionError as error:
            missing = MissingJob(str(error), job=self._state if isinstance(self._state, str) else None)
            missing.__cause__ = error
            missing_jobs.append(missing)
        known: dict[str, RetryOn] = {}
        named = {(spec.job or spec.id, spec.retry, spec.when, spec.templated and spec.id): spec for spec in specs}
        for spec in named.values():
            try:
                if spec.templated:
                    self._look_for_handler(spec)
                elif spec.job not in self._jobs or spec.when is not None:
                    self.find(spec)
                if is_data:
                    self._look_up(spec, known)
            except MissingJob as error:
                missing_jobs.append(error)
        return list({missing.reason: missing for missing in missing_jobs}.values())

    def _look_for_handler(self, spec: NodeSpec) -> None:
        name = spec.job or spec.name
        if ":" in name:
            if name not in self._jobs:
                self._found(spec, name)
        elif name not in self.handlers:
            raise _missing(spec, self.handlers.missing(name, {})[0])
        reasons = self.handlers.missing(name, spec.args)
        if reasons:
            raise _missing(spec, "; ".join(reasons), lacking=name in self.handlers or ":" in name)

    def retrying(self, specs: tuple[NodeSpec, ...]) -> tuple[NodeSpec, ...]:
        """The same nodes with the exceptions in `retry_on` under the names of their classes.

        A class that cannot be found, because it is made at run time, is matched by its name as given.
        """
        known: dict[str, RetryOn] = {}
        written = {spec.retry: spec for spec in specs if spec.retry is not None and spec.retry.unchecked}
        for spec in written.values():
            with suppress(MissingJob):
                self._look_up(spec, known)
        named = [(retry, retry.looked_up(known)) for retry in written if retry is not None]
        other: dict[Retry | None, Retry] = {retry: meant for retry, meant in named if meant != retry}
        return tuple(spec._replace(retry=other.get(spec.retry, spec.retry)) for spec in specs) if other else specs

    def predicate(self, spec: NodeSpec, name: str) -> Predicate:
        """The function in `retry_on` that decides whether to try again; DefinitionError says why there is none.

        Only its name is stored; one that cannot be found by it, such as a lambda, is found in the class.
        """
        own = () if spec.retry is None else spec.retry.functions
        given = dict(own).get(name) or self._predicates.get((spec.id, name))
        return predicate_at(name, self._finder.find) if given is None else given

    def _look_up(self, spec: NodeSpec, known: dict[str, RetryOn]) -> None:
        """Find what `retry_on` of a node names; `known` has what was found before."""
        for name in () if spec.retry is None else spec.retry.unchecked:
            if name not in known and "<locals>" not in name:
                try:
                    if ":" in name:
                        self.predicate(spec, name)
                        continue  # it is called what it is called
                    known[name] = self._finder.find_exception(name)
                except DefinitionError as error:
                    message = str(error)
                    raise _missing(
                        spec, message if message.startswith("retry_on=") else f"retry_on={message}"
                    ) from error


def _missing(spec: NodeSpec, reason: str, *, lacking: bool = False) -> MissingJob:
    return MissingJob(reason, node=spec.name, node_id=spec.id, job=spec.job, lacking=lacking)


class Definition(NamedTuple):
    """What a run needs of a workflow, however that was written."""

    workflow: str
    target: str | None
    """The address of the class; None for a Builder, whose nodes name their jobs."""
    graph: Graph
    input: Mapping[str, Any]
    on_failure: OnFailure
    deadline: float | None
    """Seconds that a run may take."""
    bodies: Bodies
    tags: Mapping[str, str] = _NOTHING
    """The tags of its runs, besides those given when one is started."""


def definition_of(thing: Workflow | Builder) -> Definition:
    """What to run for an instance of a workflow class, or for a Builder."""
    if isinstance(thing, Workflow):
        cls = type(thing)
        graph, (on_failure, deadline, _) = cls.workflow_graph(), cls._compiled.options
        bodies = _class_bodies(cls)
        return Definition(
            cls.workflow_name, cls.workflow_target, graph, thing.workflow_input(), on_failure, deadline, bodies
        )
    if isinstance(thing, Builder):
        on_failure, deadline, _ = thing._options
        bodies = Bodies(jobs=thing._functions, state=thing._state)
        return Definition(thing.workflow_name, None, thing.graph(), {}, on_failure, deadline, bodies)
    raise _cannot_run(thing)


def definition_of_document(document: Document, input: Mapping[str, Any], bodies: Bodies) -> Definition:
    """What to run for a document and an input, which is checked by its schema."""
    given = document.checked_input(input)
    return Definition(
        document.name, None, document.graph, given, document.on_failure, document.deadline, bodies, document.run_tags
    )


def _cannot_run(thing: object) -> TypeError:
    if isinstance(thing, type) and issubclass(thing, Workflow):
        return TypeError(f"{thing.__name__} is a class; what is run is an instance with its input: {call_of(thing)}")
    return TypeError(f"{shown(thing)} cannot be run: give an instance of a Workflow class, or a Builder")


def load_target(target: str, finder: Finder = ANYTHING) -> Target:
    """The workflow class, or the function that makes a Builder, at `package.module:Name`."""
    target_object = finder.find(target)
    if isinstance(target_object, type) and issubclass(target_object, Workflow):
        return target_object
    if callable(target_object) and not isinstance(target_object, type):
        made: Callable[..., Builder] = target_object
        return made
    raise DefinitionError(
        f"{target}: expected a Workflow class or a function that returns a Builder, got {target_object!r}"
    )


def load_class(target: str, finder: Finder = ANYTHING) -> type[Workflow]:
    """The workflow class at `package.module:Name`, whose methods are the nodes of a stored run."""
    loaded_class = load_target(target, finder)
    if isinstance(loaded_class, type):
        return loaded_class
    raise DefinitionError(f"{target} is a function, but the nodes of its run are methods of a Workflow class")


def bodies_for(
    target: str | type[Workflow] | None,
    state: str | None = None,
    finder: Finder = ANYTHING,
    handlers: Handlers | None = None,
    own_jobs: Callable[[], OwnJobs] | None = None,
) -> Bodies:
    """The bodies of a stored run: those of the class at `target`, or without one the jobs that its nodes name.

    `state` is the address of the state of a dynamic workflow; a class has its own.
    """
    if target is None:
        return Bodies(state=state, finder=finder, handlers=handlers, own_jobs=own_jobs)
    workflow = load_class(target, finder) if isinstance(target, str) else target
    return _class_bodies(workflow).by(finder)


def _class_bodies(cls: type[Workflow]) -> Bodies:
    compiled = cls._compiled
    predicates = {
        (spec.id, name): function
        for spec in compiled.graph or ()
        if spec.retry is not None
        for name, function in spec.retry.functions
    }
    return Bodies(
        cls.__name__,
        compiled.methods,
        compiled.jobs,
        compiled.state,
        inputs=compiled.inputs,
        predicates=predicates,
        conditions=compiled.conditions,
    )
