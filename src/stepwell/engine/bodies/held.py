"""What the runner knows of the runs it works on, and of the attempts it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

from ...base.codec import decode
from ...base.ids import AttemptId, RunId
from ...core.graph import Graph, NodeSpec
from ...core.graph.graph import numbers_by_name
from ...core.model import Append, Settled
from ...core.model.lanes import LOOK_BODY
from ...define import Bodies
from ...history.effects.record import Line, clock_lines
from .log_lines import AttemptOutput

if TYPE_CHECKING:
    from .visible_state import VisibleState


QueueKey = tuple[int, int, RunId]
"""The place of a run in the order of claims: minus its priority, a number that grows with each new run, and its id."""
Lookup = tuple[Mapping[str, int], Mapping[str, Sequence[int]]]
"""The numbers of nodes by id and by name."""


@dataclass(slots=True, eq=False)
class RunFacts:
    """What a worker knows of a run: its graph, its input, where to find its bodies."""

    run_id: RunId
    workflow: str
    target: str | None
    """Where a child process imports the class of the bodies from."""
    graph: Graph
    stored_input: InitVar[bytes]
    seed: int
    bodies: Bodies
    input: Mapping[str, Any] = field(init=False)
    specs: tuple[NodeSpec, ...] = field(init=False)
    """The nodes by index, with the names that the code uses. In a replay these may differ from the names in `graph`."""
    priority: int = 0
    place: QueueKey = field(init=False)
    """Its position among the runs that this worker knows."""
    heals: int = 0
    """How often the run had switched to another graph when these facts were read."""
    visible_state: VisibleState | None = None
    """The states that nodes of this run have seen; None until one reads its state."""
    since: int = 0
    """The `seq` of the run when this worker took it up. Older news, of an end that was then retried, is ignored."""
    started_here: bool = False
    """Whether this engine started the run, and did not only take it up."""
    held: int = 0
    """How many of its nodes this worker has claimed and not settled."""
    _active: int | None = None
    _lookups: tuple[Lookup, ...] = ()

    def __post_init__(self, stored_input: bytes) -> None:
        self.input = decode(stored_input)
        self.specs = self.graph.in_order
        self.place = (0, 0, self.run_id)

    def limit_nodes(self, seconds: float) -> None:
        """Give nodes without a time limit this one, on this worker only."""
        if any(spec.timeout is None for spec in self.specs):
            self.specs = tuple(
                spec if spec.timeout is not None else spec._replace(timeout=seconds) for spec in self.specs
            )

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """How to find nodes: as the graph names them, then as the code does, which may have renamed them."""
        if not self._lookups:
            graph, specs = self.graph, self.specs
            lookups: list[Lookup] = [(graph.index, graph.named)]
            if [spec[:2] for spec in specs] != [spec[:2] for spec in graph.in_order]:
                lookups.append(({spec.id: index for index, spec in enumerate(specs)}, numbers_by_name(specs)))
            self._lookups = tuple(lookups)
        return self._lookups

    @property
    def active(self) -> int:
        """How many of its nodes were READY, RUNNING or WAITING when this worker last heard of it."""
        if self._active is None:
            self._active = sum(not parents for parents in self.graph.parents)
        return self._active

    @active.setter
    def active(self, active: int) -> None:
        self._active = active


class RecordedLines:
    """What an attempt records and its settlement stores. Nothing is cut or dropped; if the attempt is lost, so are these."""

    __slots__ = ("effects", "readings")

    def __init__(self) -> None:
        self.effects: list[Line] = []
        self.readings: list[int] = []
        """What `ctx.now()` returned."""

    def lines(self) -> tuple[Line, ...]:
        return (*clock_lines(self.readings), *self.effects) if self.readings else tuple(self.effects)


class Held:
    """An attempt this worker holds, from claim to settlement.

    Not a dataclass, because one is made for every node: what most attempts never set is an attribute of the class.
    """

    begun = False
    stop = False
    """Whether it was asked to stop."""
    over = False
    """Whether its settlement is decided; whatever its body still does is not recorded."""
    runaway = False
    """Whether its body overran its time limit and still occupies a thread."""
    interrupt: Callable[[], None] | None = None
    """Stops its body, where that is possible: cancels a task on the loop, kills a process."""
    cancel: Callable[[], None] | None = None
    """Cancels the statement of its transaction that is running, so that its body notices the stop."""
    answer: Settled | None = None
    """The store's answer to its settlement, if that was committed with the transaction of its body."""
    unstored: tuple[Append, ...] = ()
    """What its body printed, if that was not stored because its transaction was rolled back."""
    printed: AttemptOutput | None = None
    """What its body logs and prints; None until it does."""
    recorded: RecordedLines | None = None
    """The effects of its body; None until it has some."""
    child: RunFacts | None = None
    """The run to which its body has handed its node over."""
    refused = False
    """Whether the store has refused to create that run."""

    def __init__(
        self,
        attempt: AttemptId,
        facts: RunFacts,
        index: int,
        number: int,
        failures: int,
        inputs: tuple[tuple[int, bytes], ...],
        generation: int = 0,
        suspect: bool = False,
        claimed_at: int = 0,
        postponed: int = 0,
        wakes: int = 0,
    ) -> None:
        self.attempt = attempt
        self.facts = facts
        self.index = index
        self.number = number
        self.failures = failures
        self.inputs = inputs
        self.generation = generation
        self.suspect = suspect
        self.claimed_at = claimed_at
        """When its claim was answered, on the clock of the scheduler."""
        self.postponed = postponed
        """How often its node has asked to be tried again later."""
        self.wakes = wakes
        """If not 0, a run performs its node: instead of its body, that run is looked at."""
        self.spec: NodeSpec = facts.specs[index]
        self.kind = LOOK_BODY if wakes else self.spec.body
        """The kind of slot it takes."""

    def unwanted(self) -> bool:
        """Whether its body must not begin any more."""
        return self.stop or self.over

    def make_stop(self) -> None:
        """Interrupt its body, where that is possible."""
        for act in (self.interrupt, self.cancel):  # its body may end at this moment
            if act is not None:
                act()
