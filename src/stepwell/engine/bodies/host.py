"""What `ctx` is built on: what a body is told about its attempt, and who answers the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...base.codec import decode
from ...base.ids import NodeId, RunId
from ...core.graph import NodeSpec
from ...core.model import Settle
from ...core.model.outputs import output_of
from ...core.store.port import Transactions
from ...define import Bodies, Performer
from ...errors import DefinitionError
from ...history.effects.recorder import Recorder
from ...history.effects.repeatable import Outside
from .held import Held
from .log_lines import AttemptOutput, BodyOutput, UnstoredLines
from .outputs import Outputs, StoredOutputs
from .recording import AttemptSink, Ledger
from .visible_state import ReadOutputs, VisibleState


class AttemptInfo(NamedTuple):
    """What a body is told about its attempt. Plain data, so it can be sent to a child process."""

    run_id: RunId
    workflow: str
    input: Mapping[str, Any]
    node_id: NodeId
    node_name: str
    attempt: int
    generation: int
    identity: str
    """The permanent name of the node, which survives a rename."""
    seed: int
    order_key: int


class Host(ABC):
    """Answers `ctx`: the engine of this process, the parent process, or in a replay the record."""

    __slots__ = ()
    replays = False
    """Whether this is a replay, answered from the record."""

    @property
    @abstractmethod
    def info(self) -> AttemptInfo: ...

    @property
    @abstractmethod
    def spec(self) -> NodeSpec: ...

    @property
    @abstractmethod
    def bodies(self) -> Bodies:
        """Where to find the body, and the declaration of the workflow's state."""

    @abstractmethod
    def arguments(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """The input of the run, and the outputs that the body takes, by node. Skipped nodes have none."""

    @abstractmethod
    def outputs(self) -> Outputs:
        """The outputs of all ancestors."""

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """The values of the state, as the node sees it."""

    @abstractmethod
    def outside(self) -> Outside:
        """What reads the clock, and calls effects or answers them from the record."""

    @abstractmethod
    def output(self) -> BodyOutput | None:
        """Where the body's logs and prints go; None when they are not kept."""

    def db(self) -> Any:
        """The connection of the body's transaction."""
        raise DefinitionError(f"node {self.spec.name!r} has no ctx.db: declare it with transaction=True")

    @abstractmethod
    def stopping(self) -> bool:
        """Whether the attempt was asked to stop, or its result would no longer be recorded."""


def cannot_hand_over(node: str, why: str) -> DefinitionError:
    return DefinitionError(
        f"the body of node {node!r} returned a workflow, and cannot hand its node over to a run: {why}"
    )


class Services(NamedTuple):
    """What a worker provides to its attempts."""

    read: ReadOutputs
    lines: UnstoredLines
    ledger: Ledger | None = None
    transactions: Transactions | None = None
    hand_over: Callable[[Held, Performer], Settle] | None = None
    """Has the node of an attempt performed by a run of a workflow, which its body has returned."""


class EngineHost(Host):
    """Answers `ctx` from the engine of this process."""

    __slots__ = ("_info", "_services", "held", "spec")
    spec: NodeSpec

    def __init__(self, held: Held, services: Services) -> None:
        self.held = held
        self.spec = held.spec
        self._services = services
        self._info: AttemptInfo | None = None

    @property
    def info(self) -> AttemptInfo:
        if self._info is None:
            held, facts = self.held, self.held.facts
            graph, index = facts.graph, held.index
            node = graph.order[index]
            self._info = AttemptInfo(
                facts.run_id,
                facts.workflow,
                facts.input,
                node,
                graph.in_order[index].name,
                held.number,
                held.generation,
                graph.identity(index),
                facts.seed,
                0 if index in graph.removed else graph.order_key(node),
            )
        return self._info

    def hand_over(self, workflow: Performer) -> Settle:
        if self._services.hand_over is None or self.spec.transaction:
            raise cannot_hand_over(self.spec.name, "its completion is committed in a transaction of its body")
        return self._services.hand_over(self.held, workflow)

    @property
    def bodies(self) -> Bodies:
        return self.held.facts.bodies

    def arguments(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        held = self.held
        facts, needs = held.facts, self.spec.needs
        outputs: dict[str, Any] = {}
        if needs:
            specs = facts.specs
            for index, output in held.inputs:
                outputs[specs[index].id] = decode(output_of(output))
        return facts.input, outputs

    def outputs(self) -> Outputs:
        return StoredOutputs(self.held, self._services.read)

    def state(self) -> Mapping[str, Any]:
        facts = self.held.facts
        if facts.visible_state is None:
            assert facts.bodies.state is not None, "ctx checks this first"
            facts.visible_state = VisibleState(facts.run_id, facts.graph, facts.bodies.state, self._services.read)
        return facts.visible_state.by(self.held.index, self.held.number)

    def outside(self) -> Outside:
        return Recorder(self.info.node_name, self.info.attempt, self.sink())

    def sink(self) -> AttemptSink:
        return AttemptSink(self.held, self._services.lines, self._services.ledger)

    def output(self) -> AttemptOutput | None:
        return self.held.printed or self._services.lines.of(self.held)

    def stopping(self) -> bool:
        return self.held.stop or self.held.over
