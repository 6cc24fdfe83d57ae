"""The answer of `run.why()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING

from ...base.commands import command as typed_command
from ...base.ids import NodeId
from ...core.model import NodeStatus, RunRow, RunStatus
from .nodes import why_node
from .records import Facts, WhyCause
from .runs import why_run
from .words import StoreTimes, advice, heading, lines, shown

if TYPE_CHECKING:
    from ...answers.reports import WhyRecord

Command = Callable[[str], str | None]
"""Turns the words of a command into what to type; None where nothing can be typed."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a run, or one of its nodes, has its status. Printed it is a text for people; `causes` is the same as data.

    >>> print(run.why("ship"))
    ship waits for charge
      charge waits until 12:03:20 (in 14 s) for attempt 3 of 5
        attempt 2 failed at 12:02:50: TimeoutError: the bank did not answer
    """

    run: RunRow
    node: NodeId | None
    name: str | None
    status: NodeStatus | RunStatus
    causes: tuple[WhyCause, ...]
    now: int
    """When it was asked, by the store's clock."""
    counts: Mapping[NodeStatus, int] = field(default_factory=dict)
    """For a run: its nodes by status."""
    store: str | None = None
    """The URL of its store, for what to type."""

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__  # `run.why()` is read at a prompt

    def text(self, *, command: Command | None = None, zone: tzinfo | None = None) -> str:
        """The text. `command` turns the words of a command into what to type."""
        times = StoreTimes(self.now, zone)
        head = [] if self.node is not None else [heading(self.run, self.counts, times)]
        body = lines(self.causes, times, depth=len(head))
        return "\n".join(map(shown, [*head, *body, *(f"→ {line}" for line in self.advice(command))]))

    def advice(self, command: Command | None = None) -> list[str]:
        return advice(self.run, self.causes, command or (lambda typed: typed_command(typed, self.store)))

    def to_dict(self) -> WhyRecord:
        """All of it as plain JSON."""
        return {
            "run": self.run.id,
            "workflow": self.run.workflow,
            "run_status": self.run.status,
            "node": self.node,
            "name": self.name,
            "status": self.status,
            "reason": self.run.reason if self.node is None else None,
            "causes": [cause.to_dict() for cause in self.causes],
            "advice": self.advice(),
            "text": self.text(),
        }


def explain(facts: Facts, node: NodeId | None = None) -> Why:
    """From rows to causes: of one node, or of the run."""
    if node is None:
        return Why(facts.run, None, None, facts.run.status, why_run(facts), facts.now, facts.counts)
    status = facts.nodes[node].row.status
    return Why(facts.run, node, facts.name(node), status, (why_node(facts, node),), facts.now)
