"""What a body is told about its attempt, and what it may say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...codec import decode
from ...define import check_unchanged
from ...define.code.invoke import copied_values
from ...errors import DefinitionError, InputError, StateError, Stopped
from ...graph import NodeSpec
from ...ids import NodeId, RunId
from ...kernel.folding import ancestors, in_order
from ...model.outputs import output_of
from ...replay.effects.recorder import Recorder
from ...replay.effects.repeatable import Outside, Repeatable
from .held import Held
from .log_lines import Lines
from .recording import AttemptSink, Ledger
from .visible_state import ReadOutputs, Seen


class Outputs(Mapping[str, Any]):
    """The outputs of the ancestors of a node, read when they are asked for. A node is named by its name or id.

    It never shows a node that is not an ancestor: whether that had finished would depend on timing.
    """

    def __init__(self, held: Held, read: ReadOutputs) -> None:
        self._held = held
        self._read = read
        self._known: dict[int, Any] = {index: decode(output_of(output)) for index, output in held.inputs}
        self._ancestors: dict[str, int] | None = None

    def __getitem__(self, name: str) -> Any:
        index = self._index(name)
        if index not in self._known:
            self._fetch((index,))
        return self._known[index]

    def __iter__(self) -> Iterator[str]:
        graph = self._held.facts.graph
        return iter([graph.order[index] for index in self._in_order()])

    def __len__(self) -> int:
        return len(set(self._by_name().values()))

    def all(self) -> dict[str, Any]:
        """Every ancestor's output at once, by node id: one read instead of many."""
        indexes = self._in_order()
        self._fetch(indexes)
        graph = self._held.facts.graph
        return {graph.order[index]: self._known[index] for index in indexes}

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        """The outputs of these ancestors, by the names given: one read instead of many."""
        indexes = {name: self._index(name) for name in names}
        unknown = tuple(index for index in indexes.values() if index not in self._known)
        if unknown:
            self._fetch(unknown)
        return {name: self._known[index] for name, index in indexes.items()}

    def _fetch(self, indexes: tuple[int, ...]) -> None:
        found = self._read(self._held.facts.run_id, indexes)
        self._known.update(
            {index: decode(output_of(found[index].output)) if index in found else None for index in indexes}
        )

    def _index(self, name: str) -> int:
        index = self._by_name().get(name)
        if index is None:
            raise KeyError(
                f"{name!r} is not an ancestor of node {self._held.spec.name!r}: add it to depends_on, "
                f"directly or through another node, to use its output"
            )
        return index

    def _in_order(self) -> tuple[int, ...]:
        return in_order(self._held.facts.graph, set(self._by_name().values()))

    def _by_name(self) -> dict[str, int]:
        """Ancestors by id and by name; a name that several have stands for none of them."""
        if self._ancestors is None:
            facts = self._held.facts
            above = ancestors(facts.graph, self._held.index)
            # Code of today asks for nodes that were renamed since by the names they have now.
            self._ancestors = {} if facts.specs is facts.graph.in_order else _by_name(facts.specs, above)
            self._ancestors |= _by_name(facts.graph.in_order, above)
        return self._ancestors


def _by_name(specs: Sequence[NodeSpec], indexes: Sequence[int]) -> dict[str, int]:
    named: dict[str, list[int]] = {}
    for index in indexes:
        named.setdefault(specs[index].name, []).append(index)
    return {name: found[0] for name, found in named.items() if len(found) == 1} | {
        specs[index].id: index for index in indexes
    }


class RunInfo(NamedTuple):
    """What a body is told about its run."""

    id: str
    workflow: str
    input: Mapping[str, Any]


class Context(Repeatable):
    """`ctx`: a body that has a parameter of this name receives it."""

    __slots__ = ("_held", "_key", "_ledger", "_lines", "_outputs", "_read", "_state", "outcome")

    def __init__(self, held: Held, read: ReadOutputs, lines: Lines, ledger: Ledger | None = None) -> None:
        super().__init__()
        self._held = held
        self._ledger = ledger
        self._key: str | None = None
        self._lines = lines
        self._read = read
        self._outputs: Outputs | None = None
        self._state: Any = None
        self.outcome: dict[str, Any] = {}
        """Metadata for the attempt: shown to people, not data for other nodes."""

    @property
    def run(self) -> RunInfo:
        return RunInfo(self.run_id, self.workflow, self.input)

    @property
    def run_id(self) -> RunId:
        return self._held.facts.run_id

    @property
    def workflow(self) -> str:
        return self._held.facts.workflow

    @property
    def input(self) -> Mapping[str, Any]:
        """The input of the run. A copy: what one attempt does to it, no other sees."""
        return copied_values(self._held.facts.input)

    @property
    def node_id(self) -> NodeId:
        return self._held.facts.graph.order[self._held.index]

    @property
    def node_name(self) -> str:
        return self._held.facts.graph.in_order[self._held.index].name

    @property
    def parents(self) -> tuple[NodeId, ...]:
        """The ids of the nodes that this one depends on, in the order they were written in."""
        return self._held.facts.graph.in_order[self._held.index].depends_on

    @property
    def attempt(self) -> int:
        """1 for the first try at this node."""
        return self._held.number

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this node in this run: hand it to services that can tell repeats apart.

        Another one only when somebody asks for the node again although it had completed. A node may have its own:
        `@step(idempotency_key=lambda self: f"order-{self.order_id}")`.
        """
        held = self._held
        key = self._key or f"{held.facts.run_id}:{self._identity}"
        return f"{key}:{held.generation}" if held.generation else key

    def use_key(self, key: str) -> None:
        """The node has a key of its own."""
        self._key = checked_key(key, self.node_name)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._held.facts.seed

    @property
    def order_key(self) -> int:
        """Where the node stands among those of its level, in everything that needs an order; 0 if it was removed."""
        graph = self._held.facts.graph
        return graph.order_key(self.node_id) if self._held.index not in graph.removed else 0

    @property
    def _identity(self) -> str:
        return self._held.facts.graph.identity(self._held.index)

    def _open_outside(self) -> Outside:
        return Recorder(self.node_name, self.attempt, AttemptSink(self._held, self._lines, self._ledger))

    def _check_effects_allowed(self, name: str) -> None:
        check_effects_allowed(self._held.spec, name)

    @property
    def outputs(self) -> Outputs:
        if self._outputs is None:
            self._outputs = Outputs(self._held, self._read)
        return self._outputs

    @property
    def state(self) -> Any:
        """The state of the workflow as this node sees it: what its ancestors returned, whatever else has finished.

        An instance of the workflow's State that cannot be changed; a body returns what it changes, `Delta(notes=[...])`.
        """
        if self._state is None:
            values, declared = self.state_values(), self._held.facts.bodies.state
            assert declared is not None
            self._state = declared.view(values)
        return self._state

    def state_values(self) -> Mapping[str, Any]:
        """The same as data, folded when it is first asked for."""
        facts = self._held.facts
        if facts.seen is None:
            if facts.bodies.state is None:
                raise no_state(self.workflow)
            facts.seen = Seen(facts.run_id, facts.graph, facts.bodies.state, self._read)
        return facts.seen.by(self._held.index, self._held.number)

    def check_state(self) -> None:
        """Raise StateError if the body has changed what it was given of the state, which would be lost."""
        if self._state is not None:
            check_unchanged(self._state, self.node_name)

    @property
    def stopping(self) -> bool:
        """Somebody asked this attempt to stop, or its result would no longer be recorded."""
        return self._held.stop or self._held.over

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far this body is. Call it as often as you like: the latest is stored, about twice a second.

        for number, row in enumerate(rows):
            ctx.progress(number, len(rows))
        """
        said = self._held.printed or self._lines.of(self._held)
        if said is not None:
            said.progress(done, total, message)

    def check(self) -> None:
        """Raise Stopped if this attempt should stop. Call it now and then in long loops."""
        if self.stopping:
            raise Stopped(f"node {self.node_name!r} of run {self.run_id} was asked to stop")


def no_state(workflow: str) -> StateError:
    return StateError(
        f"{workflow} declares no state: write `class State:` with its fields in the workflow, or Builder(..., state=...)"
    )


def check_effects_allowed(spec: NodeSpec, name: str) -> None:
    if spec.side_effects == "pure":
        raise DefinitionError(
            f'node {spec.name!r} is declared side_effects="pure" and asks for effect {name!r}: declare it "recordable"'
        )


def checked_key(key: object, node: str) -> str:
    """What a node's own `idempotency_key` gave."""
    if not isinstance(key, str) or not key:
        raise InputError(f"the idempotency_key of node {node!r} gave {key!r}; some text is needed")
    return key
