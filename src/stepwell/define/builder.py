"""`Builder`: a workflow built at run time, node by node. Its jobs are functions known by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar, Unpack

from ..base.clock import Duration
from ..base.ids import NodeId
from ..base.performer import Performer
from ..base.place import SourceLine, caller
from ..base.words import count, shown
from ..core.graph import NO_ARGS, Graph, GraphProblem, JobOptions, NodeSpec, SideEffects
from ..core.graph.branching import StoredCondition, perhaps_skipped
from ..core.graph.spec import OPTIONS
from ..errors import DefinitionError, GraphError
from .classes.decorators import PREVIOUS, Previous
from .code.address import address_of, find, is_address, loaded
from .code.arguments import JobParameters, arguments_of, by_type
from .code.conditions import named_condition, taken_by
from .code.jobs import NamedJob, named_job
from .options import (
    OnFailure,
    Options,
    checked_name,
    checked_options,
    checked_run_options,
    checked_workflow_name,
)
from .types.signatures import CONTEXT, STATE, parameters_of
from .types.state import StateType, checked_state

Item = TypeVar("Item")
Job: TypeAlias = "Callable[..., Any] | str"
Parents: TypeAlias = "str | Previous | Iterable[Parents] | None"

_ID_DIGITS = 8
_OWN = {CONTEXT: "context", STATE: "state"}


class FanOut(list[NodeId]):
    """The ids of the nodes of a `fan_out`. As `depends_on`, an empty one stands for its parents."""

    def __init__(self, members: Iterable[NodeId], parents: tuple[NodeId, ...]) -> None:
        super().__init__(members)
        self.parents = parents


class Builder(Performer):
    """A workflow built at run time. The same calls always give the same graph, ids included.

        w = Builder("process-mutations")
        parts = w.fan_out([4, 8, 15], job=process, name=lambda i: f"mutation_{i}", args=lambda i: {"mutation_id": i})
        w.node("aggregate", job=aggregate, args={"user_id": 7}, depends_on=parts)
        w.node("notify", job="shop.mail:notify", args={"user_id": 7})       # after the previous node: aggregate
        run = engine.start(w)

    `depends_on` takes names or ids of nodes that exist already, what `fan_out` returned, or a list of these; left out
    it means the previous node (after `fan_out`: all its members), None an entry point. A job is a function of a module,
    or its address `package.module:function`; it receives `args`, and `ctx` if it asks for it. `state` is a class that
    declares a typed state; a job that has a parameter `state` receives it. `node_timeout` and `side_effects` hold for every
    node that does not say them itself.
    """

    def __init__(
        self,
        name: str,
        *,
        on_failure: OnFailure = "fail_fast",
        deadline: Duration | None = None,
        node_timeout: Duration | None = None,
        side_effects: SideEffects | None = None,
        state: type | None = None,
    ) -> None:
        self._place = caller()
        self.workflow_name = checked_workflow_name(name, self._place)
        self._options = checked_run_options(on_failure, deadline, node_timeout, side_effects, self._place)
        self._state = None if state is None else _checked_state(state, self._place)
        self._specs: list[NodeSpec] = []
        self._places: list[SourceLine] = []
        self._previous: tuple[NodeId, ...] = ()
        self._ids: set[str] = set()
        self._named: dict[str, NodeId] = {}
        self._same_name: dict[str, int] = {}
        """How many nodes have a name, where more than one have."""
        self._jobs: dict[Job, NamedJob] = {}
        self._conditions: dict[str, Callable[..., Any]] = {}
        """By address."""
        self._named_by_text: list[range] = []
        """The positions of nodes whose jobs were not imported when they were added."""
        self._checked = 0
        """How many of these have been checked since."""
        self._graph: Graph | None = None
        self._last_rules: tuple[Options | None, bool, tuple[Any, ...]] = (None, False, ())

    def __repr__(self) -> str:
        return f"<Builder {self.workflow_name}, {count(len(self._specs), 'node')}>"

    @property
    def _functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that were given as jobs and conditions, by address; this process need not import them."""
        jobs = {job.address: job.function for job in self._jobs.values() if job.function is not None}
        return {**jobs, **self._conditions}

    def node(
        self,
        name: str,
        *,
        job: Job,
        args: Mapping[str, Any] = NO_ARGS,
        depends_on: Parents = PREVIOUS,
        **options: Unpack[JobOptions],
    ) -> NodeId:
        """Add a node and return its id, to depend on."""
        place = caller()
        checked = checked_options(place, options)
        parents = self._parents(depends_on, place)
        condition = self._condition(checked, place)
        (added,) = self._add([(name, args)], self._job(job, place), parents, checked, place, condition)
        self._previous = (added,)
        return added

    def fan_out(
        self,
        items: Iterable[Item],
        *,
        job: Job,
        name: Callable[[Item], str] | str | None = None,
        args: Callable[[Item], Mapping[str, Any]] | None = None,
        depends_on: Parents = PREVIOUS,
        **options: Unpack[JobOptions],
    ) -> FanOut:
        """Add one node per item, all with the same parents, and return their ids.

        `name` makes the name of an item, or is the prefix of `_0`, `_1`, ... (by default the name of the job); `args` makes the
        args of an item (by default `{"item": item}`).
        """
        place = caller()
        checked = checked_options(place, options)
        parents = self._parents(depends_on, place)
        known = self._job(job, place)
        if args is not None and not callable(args):
            raise DefinitionError(
                f"args={shown(args)}: expected a function that makes the args of one item", where=place
            )
        if not isinstance(items, Iterable):
            raise DefinitionError(f"fan_out({shown(items)}): expected items, one for each node", where=place)
        naming: Callable[[Item], str] | None = name if callable(name) else None
        prefix = known.short_name if name is None else name
        named = (
            (f"{prefix}_{index}" if naming is None else naming(item), {"item": item} if args is None else args(item))
            for index, item in enumerate(items)
        )
        condition = self._condition(checked, place)
        members = FanOut(self._add(named, known, parents, checked, place, condition), parents)
        self._previous = tuple(members) or parents
        return members

    def graph(self) -> Graph:
        """The graph as built so far, checked."""
        if self._graph is None:
            try:
                state = None if self._state is None else address_of(self._state.declared)
                graph = Graph(self._specs, state=state)
                if problems := self._without_defaults(graph):
                    raise GraphError(problems)
                self._graph = graph
            except GraphError as error:
                raise GraphError(self._explained(error.problems), where=self._place) from None
        return self._graph

    def _without_defaults(self, graph: Graph) -> list[GraphProblem]:
        """Parameters of conditions that have no default, and whose nodes may be skipped."""
        required: dict[int, list[int]] = {}
        positions = {spec.id: position for position, spec in enumerate(self._specs)} if self._conditions else {}
        for position, spec in enumerate(self._specs if self._conditions else ()):
            condition = None if spec.when is None else StoredCondition.read(spec.when)
            if condition is not None:
                names = parameters_of(self._conditions[condition.address]).required
                required[position] = [positions[NodeId(condition.takes[name])] for name in names]
        skipped = perhaps_skipped(self._specs, required, *graph.shape) if required else ()
        return [
            GraphProblem(
                self._specs[position].id,
                f"the parameter of its condition, {self._specs[above].name!r}, has no default, and that node may be skipped: "
                f"write {self._specs[above].name}=None",
            )
            for position, above in skipped
        ]

    def _check_named_jobs(self) -> None:
        """Import the jobs that were given as texts and check the args of their nodes, each once.

        For engines that are about to run them, which report what cannot be imported.
        """
        own = (CONTEXT,) if self._state is None else (CONTEXT, STATE)
        known = len(self._named_by_text)
        for positions in self._named_by_text[self._checked : known]:
            if (takes := self._takes(positions)) is not None:
                for position in positions:
                    spec = self._specs[position]
                    _checked_args(spec.name, spec.args, self._places[position], own, takes)
        self._checked = known  # threads that do this at once come to the same result

    def _takes(self, positions: range) -> JobParameters | None:
        """Import the job of these nodes to see what it takes; None if that is not possible."""
        try:
            function = find(self._specs[positions[0]].job or "")
        except (DefinitionError, IndexError):
            return None
        return arguments_of(function) if callable(function) else None

    def _job(self, job: Job, place: SourceLine) -> NamedJob:
        known = self._jobs.get(job) if isinstance(job, Hashable) else None
        if known is None:
            try:
                known = self._jobs[job] = named_job(job)
            except DefinitionError as error:
                raise DefinitionError(str(error), where=place) from None
        return known

    def _add(
        self,
        nodes: Iterable[tuple[str, Mapping[str, Any]]],
        job: NamedJob,
        parents: tuple[NodeId, ...],
        options: Options,
        place: SourceLine,
        condition: StoredCondition | None,
    ) -> list[NodeId]:
        """Add nodes that differ only in name and args. With 100,000 nodes, this loop is where the time goes."""
        rest = self._rules(options, job.is_async, condition)
        # Check everything before adding anything: making names and args may raise.
        own = (CONTEXT,) if self._state is None else (CONTEXT, STATE)
        function = job.function or loaded(job.address)
        takes = arguments_of(function) if callable(function) else None
        checked = [(checked_name(name, place), _checked_args(name, args, place, own, takes)) for name, args in nodes]
        if function is None:
            self._named_by_text.append(range(len(self._specs), len(self._specs) + len(checked)))
        added: list[NodeId] = []
        for name, args in checked:
            ordinal = self._same_name.get(name, int(name in self._named))
            node = self._new_id(name, ordinal)
            if ordinal:
                self._same_name[name] = ordinal + 1
            else:
                self._named[name] = node
            self._specs.append(NodeSpec._make((node, name, parents, job.address, args, *rest)))
            added.append(node)
        self._places += [place] * len(added)
        self._graph = None
        return added

    def _rules(self, options: Options, is_async: bool, condition: StoredCondition | None) -> tuple[Any, ...]:
        """The last fields of nodes with these options; the latest are remembered, since most nodes have the same."""
        known, was_async, rules = self._last_rules
        if options is not known or is_async is not was_async:
            own = options.under(self._options.nodes).of_spec(is_async)
            if condition is not None:
                needs = tuple(dict.fromkeys(map(NodeId, condition.takes.values())))
                own |= {"when": str(condition), "needs": needs}
            rules = NodeSpec(NodeId(""), "", **own)[OPTIONS:]
            self._last_rules = options, is_async, rules
        return rules

    def _condition(self, options: Options, place: SourceLine) -> StoredCondition | None:
        """The condition of a node, and the nodes whose outputs its parameters receive."""
        if options.when is None:
            return None
        try:
            address, function = named_condition(options.when)
            names = taken_by(function, {*self._named, *self._ids}, f"when={address}")
        except DefinitionError as error:
            raise DefinitionError(str(error), where=place) from None
        stored = StoredCondition(address, {name: self._id(name, place, "when") for name in names})
        self._conditions[address] = function
        return stored

    def _new_id(self, name: str, ordinal: int) -> NodeId:
        """An id from the name and how many nodes had it before, as short as possible: 32 bits are too few for 100,000."""
        digits = sha256(f"{name}\0{ordinal}".encode("utf-8", "surrogatepass")).hexdigest()
        length = _ID_DIGITS
        while (node := f"n_{digits[:length]}") in self._ids:
            length += 1
        self._ids.add(node)
        return NodeId(node)

    def _id(self, text: str, place: SourceLine, option: str = "depends_on") -> NodeId:
        """The id that a name or an id means."""
        if text in self._ids:
            return NodeId(text)
        if text not in self._named:
            raise DefinitionError(
                f"{option}={text!r}: {self.workflow_name} has no node of this name yet; add it first", where=place
            )
        if text in self._same_name:
            raise DefinitionError(
                f"{option}={text!r}: {self._same_name[text]} nodes have this name; use the id that node() or "
                f"fan_out() returned",
                where=place,
            )
        return self._named[text]

    def _parents(self, given: Parents, place: SourceLine) -> tuple[NodeId, ...]:
        """The ids that `depends_on` means, each once."""
        parents: dict[NodeId, None] = {}
        waiting: list[Any] = [] if given is None else [given]
        while waiting:
            each = waiting.pop()
            if isinstance(each, Previous):
                parents.update(dict.fromkeys(self._previous))
            elif isinstance(each, str):
                parents[self._id(each, place)] = None
            elif isinstance(each, Iterable):
                waiting += reversed(each.parents if isinstance(each, FanOut) and not each else list(each))
            else:
                raise DefinitionError(
                    f"depends_on={shown(each)}: expected names, ids, what fan_out returned, or a list of these",
                    where=place,
                )
        return tuple(parents)

    def _explained(self, problems: Iterable[Any]) -> list[GraphProblem]:
        """Problems with names and lines: people never saw the ids."""
        positions = {spec.id: position for position, spec in enumerate(self._specs)}
        explained = []
        for problem in problems:
            position = positions.get(problem.where)
            if position is not None:
                where = f"{self._specs[position].name} ({problem.where})"
                problem = problem._replace(where=where, message=f"{problem.message} ({self._places[position]})")
            explained.append(problem)
        return explained


def _checked_state(declared: object, place: SourceLine) -> StateType:
    if not isinstance(declared, type):
        raise DefinitionError(f"state={shown(declared)}: expected a class that declares a state", where=place)
    if not is_address(address_of(declared)):
        raise DefinitionError(
            f"state={declared.__qualname__}: only its name is stored, and no other process finds a class inside a function "
            f"by its name; move it to the top level of its module",
            where=place,
        )
    return checked_state(declared, f"state={declared.__qualname__}", str(place))


def _checked_args(
    name: str, args: Mapping[str, Any], place: SourceLine, own: tuple[str, ...], takes: JobParameters | None
) -> Mapping[str, Any]:
    """A copy of the args as JSON, which later changes by the caller do not affect."""
    if not isinstance(args, Mapping):
        raise DefinitionError(f"the args of {name!r}: expected a dict, got {shown(args)}", where=place)
    for word in own:
        if word in args:
            raise DefinitionError(
                f"the args of {name!r} contain {word!r}, which is the {_OWN[word]} that a job gets by itself",
                where=place,
            )
    if takes is None:
        return {each: by_type(value) for each, value in args.items()} if args else NO_ARGS
    try:
        return takes.stored(name, args, own) or NO_ARGS
    except DefinitionError as error:
        raise DefinitionError(str(error), where=place) from None
