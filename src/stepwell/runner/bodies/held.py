"""What the runner knows of the runs it works on, and of the attempts it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...codec import decode
from ...define import Bodies
from ...graph import Graph, NodeSpec
from ...ids import AttemptId, RunId
from ...replay.effects.record import Line, clock_lines
from .log_lines import AttemptOutput
from .run_queue import QueueKey

if TYPE_CHECKING:
    from .visible_state import Seen


class RunFacts:
    """What stays the same about a run: its graph, its input, where its bodies are found."""

    __slots__ = (
        "_active",
        "bodies",
        "graph",
        "heals",
        "held",
        "input",
        "place",
        "priority",
        "run_id",
        "seed",
        "seen",
        "since",
        "specs",
        "target",
        "workflow",
    )

    def __init__(
        self, run_id: RunId, workflow: str, target: str | None, graph: Graph, input: bytes, seed: int, bodies: Bodies
    ) -> None:
        self.run_id = run_id
        self.workflow = workflow
        self.target = target
        """Where a process of its own imports the class of the bodies."""
        self.graph = graph
        self.input: Mapping[str, Any] = decode(input)
        self.seed = seed
        self.bodies = bodies
        self.specs: tuple[NodeSpec, ...] = graph.in_order
        """The nodes by number, under the names that the code knows them by: in a replay perhaps other ones than in `graph`."""
        self.priority = 0
        self.place: QueueKey = (0, 0, run_id)
        """Where it stands among the runs that this worker knows."""
        self.heals = 0
        """How often the run had switched to another graph when this was true of it."""
        self.seen: Seen | None = None
        """The states that nodes of this run have seen, once one has looked."""
        self.since = 0
        """The `seq` of the run when this worker took it up: news from before, of an end that was retried, are old."""
        self.held = 0
        """How many of its nodes this worker has claimed and not settled."""
        self._active: int | None = None

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
    """What is recorded of an attempt and stored when it ends: never cut or dropped, and lost with an attempt that is lost."""

    __slots__ = ("effects", "readings")

    def __init__(self) -> None:
        self.effects: list[Line] = []
        self.readings: list[int] = []
        """What `ctx.now()` gave."""

    def lines(self) -> tuple[Line, ...]:
        return (*clock_lines(self.readings), *self.effects) if self.readings else tuple(self.effects)


@dataclass(slots=True, eq=False)
class Held:
    """An attempt this worker holds, from its claim to its settlement."""

    attempt: AttemptId
    facts: RunFacts
    index: int
    number: int
    failures: int
    inputs: tuple[tuple[int, bytes], ...]
    generation: int = 0
    suspect: bool = False
    claimed_at: int = 0
    """When its claim was answered, on the clock of the scheduler."""
    begun: bool = False
    stop: bool = False
    """It was asked to stop."""
    over: bool = False
    """Its settlement is decided; whatever its body still does is not recorded."""
    runaway: bool = False
    """Its body did not end in time and still occupies a thread."""
    interrupt: Callable[[], None] | None = None
    """How its body is made to stop, where that is possible: a task on the loop is cancelled, a process killed."""
    printed: AttemptOutput | None = None
    """What its body logs and prints, once it does."""
    recorded: RecordedLines | None = None
    """The effects of its body, once it has some."""
    postponed: int = 0
    """How often its node has asked to be tried again later."""

    def unwanted(self) -> bool:
        """Its body need not begin."""
        return self.stop or self.over

    def make_stop(self) -> None:
        """Interrupt its body, where that is possible."""
        interrupt = self.interrupt  # its body may end at this moment
        if interrupt is not None:
            interrupt()

    @property
    def spec(self) -> NodeSpec:
        return self.facts.specs[self.index]

    @property
    def pool(self) -> str:
        """Where a body of its kind waits for room; one that must not be claimed ahead has a pool of its own."""
        spec = self.spec
        return f"{spec.body}!" if spec.on_lost == "interrupt" else spec.body
