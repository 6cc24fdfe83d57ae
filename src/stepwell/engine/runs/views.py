"""Nodes, attempts and log lines of a run, as users see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ...base.clock import SECOND
from ...base.codec import decode
from ...base.ids import NodeId, RunId
from ...base.words import count
from ...core.kernel.children import handed_to
from ...core.model import SATISFIED_NODES, AttemptRow, AttemptStatus, NodeRow, NodeStatus
from ...core.model.lines import Progress


class NodeError(NamedTuple):
    type: str
    message: str
    traceback: str | None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True, repr=False)
class AttemptView:
    """One try at a node."""

    row: AttemptRow
    """As the store has it, for code that builds on it."""
    _hash_of: Callable[[int, int], str | None] = field(compare=False)
    _key_of: Callable[[AttemptRow, int], str | None] = field(compare=False)
    _generation: int = 0
    """How many completions of its node had been superseded before it."""

    def __repr__(self) -> str:
        failed = f" {self.error.type}" if self.error else ""
        return f"<Attempt {self.number} {self.status}{failed}>"

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def number(self) -> int:
        return self.row.number

    @property
    def status(self) -> AttemptStatus:
        return self.row.status

    @property
    def worker(self) -> str:
        return self.row.worker

    @property
    def started_at(self) -> float:
        return self.row.started_at / SECOND

    @property
    def ended_at(self) -> float | None:
        return None if self.row.ended_at is None else self.row.ended_at / SECOND

    @property
    def seconds(self) -> float | None:
        return None if self.row.ended_at is None else (self.row.ended_at - self.row.started_at) / SECOND

    @property
    def error(self) -> NodeError | None:
        if not self.row.error:
            return None
        record = decode(self.row.error)
        return NodeError(record["type"], record["message"], record.get("traceback"))

    @property
    def ancestry(self) -> str | None:
        """A hash of its node, its number, and the attempts with which its parents completed; None while a parent has not.

        All ancestors are read for it, once for the nodes that were read together.
        """
        return self._hash_of(self.row.index, self.row.number)

    @property
    def idempotency_key(self) -> str | None:
        """What `ctx.idempotency_key` gave its body; None if a function of the node made it, `idempotency_key=`, or if this is
        an attempt of another run, which a fork shares.
        """
        return self._key_of(self.row, self._generation)

    @property
    def outcome(self) -> dict[str, Any]:
        found: dict[str, Any] = decode(self.row.outcome) if self.row.outcome else {}
        return found


@dataclass(frozen=True, slots=True, repr=False)
class NodeView:
    """A node of a run, as it stood when it was read."""

    row: NodeRow
    """As the store has it, for code that builds on it."""
    name: str
    attempts: tuple[AttemptView, ...] = ()
    progress: Progress | None = None
    """The latest progress it reported: `done`, `total`, `message` and `fraction`."""

    def __repr__(self) -> str:
        named = self.name if self.name == self.id else f"{self.name} ({self.id})"
        return f"<Node {named} {self.status}, {count(len(self.attempts), 'attempt')}>"

    @property
    def id(self) -> NodeId:
        return self.row.id

    @property
    def status(self) -> NodeStatus:
        return self.row.status

    @property
    def reason(self) -> str | None:
        return self.row.reason

    @property
    def due_at(self) -> float | None:
        return None if self.row.due_at is None else self.row.due_at / SECOND

    @property
    def child(self) -> RunId | None:
        """The id of the run that performs it: the one to which an attempt handed it over last."""
        return handed_to([attempt.row for attempt in self.attempts]) if self.row.wakes else None

    @property
    def seconds(self) -> float | None:
        """The total time of its ended attempts."""
        ended = [
            attempt.row.ended_at - attempt.row.started_at
            for attempt in self.attempts
            if attempt.row.ended_at is not None
        ]
        return sum(ended) / SECOND if ended else None

    @property
    def error(self) -> NodeError | None:
        """Why the node has not completed. Errors of earlier attempts of a completed node are in `attempts`."""
        if self.status in SATISFIED_NODES:
            return None
        return next((attempt.error for attempt in reversed(self.attempts) if attempt.row.error), None)


class RunProgress(NamedTuple):
    """How many nodes of a run there are, and in which phase."""

    nodes: int
    ended: int
    """In whatever status."""
    active: int
    """READY, RUNNING or WAITING; the rest of those that have not ended waits for its parents."""
    failed: int
    """FAILED or INTERRUPTED."""

    @property
    def fraction(self) -> float:
        """From 0 to 1."""
        return self.ended / self.nodes if self.nodes else 1.0


class LogRecord(NamedTuple):
    """A line that a body logged or printed."""

    time: float
    node: str
    attempt: int
    level: str
    logger: str
    """The name of the logger; `stdout` or `stderr` of what was printed."""
    message: str

    def __str__(self) -> str:
        """As `stepwell logs` prints it: a line to read."""
        at = datetime.fromtimestamp(self.time).isoformat(" ", "milliseconds")
        return f"{at}  {self.node} #{self.attempt}  {self.level}  {self.logger}: {self.message}"
