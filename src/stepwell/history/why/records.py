"""Causes as data, and the rows they are derived from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...answers.causes import CauseKind
from ...base.ids import NodeId, RunId, WorkerId
from ...base.words import iso
from ...core.graph import Graph, NodeSpec, Outline
from ...core.kernel.children import handed_to
from ...core.model import AttemptRow, JournalRow, NodeRow, NodeStatus, RunRow, WorkerRow

if TYPE_CHECKING:
    from ...answers.reports import CauseRecord

BEGINNINGS = (CauseKind.PARENTS_DONE, CauseKind.RUN_STARTED)
"""What makes every node run once. Shown only for the node in question, not for those that block it."""


@dataclass(frozen=True, slots=True)
class WhyCause:
    """One reason, and the reasons behind it: `because` leads to the root."""

    kind: CauseKind
    node: NodeId | None = None
    name: str | None = None
    attempt: int | None = None
    at: int | None = None
    """When it happened or is due: microseconds since 1970, by the clock of the store."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON; which keys there are depends on the kind."""
    because: tuple[WhyCause, ...] = ()

    def without(self, *kinds: CauseKind) -> WhyCause:
        """The same cause, with none of these kinds behind it."""
        causes = tuple(cause.without(*kinds) for cause in self.because if cause.kind not in kinds)
        return replace(self, because=causes)

    def to_dict(self) -> CauseRecord:
        return {
            "kind": self.kind,
            "node": self.node,
            "name": self.name,
            "attempt": self.attempt,
            "at": iso(self.at),
            "detail": dict(self.detail),
            "because": [cause.to_dict() for cause in self.because],
        }


class KnownNode(NamedTuple):
    """A node that was read, with its attempts, oldest first."""

    row: NodeRow
    attempts: tuple[AttemptRow, ...] = ()

    @property
    def child(self) -> RunId | None:
        """The run that performs it."""
        return handed_to(self.attempts) if self.row.wakes else None


class ChildRun(NamedTuple):
    """The run that performs a node, and why it has its status."""

    row: RunRow
    causes: tuple[WhyCause, ...]


class Worker(NamedTuple):
    """A worker that is alive, and what it announces."""

    id: WorkerId
    host: str | None = None
    pid: int | None = None
    serves: frozenset[tuple[str, str]] | None = None
    """The (workflow, digest) pairs it works for; None when it does not announce them."""
    queues: frozenset[str] | None = None
    """The queues it takes nodes from; None: all of them."""
    lacks: Mapping[tuple[str, str], str] = {}
    """By workflow and digest: what is missing there to work on such runs."""

    @classmethod
    def of(cls, row: WorkerRow) -> Worker:
        """What a worker, perhaps of another version, announced, as far as it can be understood."""
        announced = row.said
        host, pid, queues = announced.get("host"), announced.get("pid"), announced.get("queues")
        return cls(
            row.id,
            host if isinstance(host, str) else None,
            pid if isinstance(pid, int) else None,
            frozenset((a, b) for a, b in _lists(announced, "serves", 2))
            if isinstance(announced.get("serves"), list)
            else None,
            frozenset(map(str, queues)) if isinstance(queues, list) else None,
            {(workflow, digest): reason for workflow, digest, reason in _lists(announced, "lacks", 3)},
        )


def _lists(announced: Mapping[str, Any], name: str, size: int) -> list[list[str]]:
    """The lists of `size` texts that are announced under a name."""
    value = announced.get(name)
    lists = value if isinstance(value, list) else []
    return [[*map(str, item)] for item in lists if isinstance(item, list) and len(item) == size]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read to explain a run or one of its nodes: never all of a large one."""

    run: RunRow
    load_graph: Callable[[], Graph | Outline]
    """The graph of a large run takes longer to read than all the rest, and an ended run is mostly explained without it."""
    now: int
    workers: tuple[Worker, ...] = ()
    """Those that are alive."""
    gates: tuple[JournalRow, ...] = ()
    """Its journal entries of kind `gate` and `run`: what the gate was held for, and the status afterwards."""
    nodes: Mapping[str, KnownNode] = field(default_factory=dict)
    """By id, what was read."""
    blockers: tuple[NodeId, ...] = ()
    """Nodes that did not complete and block others, the most informative first."""
    skipped_last: tuple[NodeId, ...] = ()
    """The first of the last nodes of a run that completed, if all of them were skipped."""
    history: tuple[JournalRow, ...] = ()
    """When the node in question was rewritten or woken."""
    ended: Mapping[str, int] = field(default_factory=dict)
    """By id, when parents of the node in question completed."""
    counts: Mapping[NodeStatus, int] = field(default_factory=dict)
    """For a run: its nodes by status."""
    children: Mapping[str, ChildRun] = field(default_factory=dict)
    """By the id of the node, the runs that perform nodes which wait for them or have failed with them."""

    @property
    def graph(self) -> Graph | Outline:
        return self.load_graph()

    def spec(self, node: str) -> NodeSpec | None:
        """None for a node that is no longer part of the graph."""
        return self.graph.nodes.get(node)

    def name(self, node: str) -> str:
        """Its name, followed by its id when another node has the same name."""
        spec = self.spec(node)
        if spec is None or spec.name == node:
            return node
        return spec.name if self.graph.alike(spec.name) == 1 else f"{spec.name} ({node})"

    def parents(self, node: str) -> tuple[NodeId, ...]:
        spec = self.spec(node)
        return () if spec is None else spec.depends_on
