"""Nodes, attempts and lines of a run, as its user sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..clock import SECOND
from ..codec import decode
from ..ids import NodeId
from ..kernel.ancestry import Ancestry
from ..model import SATISFIED_NODES, AttemptRow, AttemptStatus, NodeRow, NodeStatus
from ..model.lines import Mark, Progress


class NodeError(NamedTuple):
    type: str
    message: str
    traceback: str | None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


class AttemptView(NamedTuple):
    """One try at a node."""

    id: str
    number: int
    status: AttemptStatus
    worker: str
    started_at: float
    ended_at: float | None
    error: NodeError | None
    outcome: dict[str, Any]
    ancestry: str | None = None
    """A hash of what it stands on: its node, its number, and the attempts its parents completed with."""

    @property
    def seconds(self) -> float | None:
        return None if self.ended_at is None else self.ended_at - self.started_at


class NodeView(NamedTuple):
    """A node of a run, as it stood when it was read."""

    id: NodeId
    name: str
    status: NodeStatus
    reason: str | None
    due_at: float | None
    attempts: tuple[AttemptView, ...]
    progress: Progress | None = None
    """How far its latest attempt said it was: `done`, `total`, `message` and `fraction`."""

    @property
    def error(self) -> NodeError | None:
        """What keeps the node from being completed. Errors that a later attempt made good are those of `attempts`."""
        if self.status in SATISFIED_NODES:
            return None
        return next((attempt.error for attempt in reversed(self.attempts) if attempt.error), None)


class LogRecord(NamedTuple):
    """A line that a body logged or printed."""

    time: float
    node: str
    attempt: int
    level: str
    logger: str
    """The name of the logger; `stdout` or `stderr` of what was printed."""
    message: str


def node_view(
    row: NodeRow,
    name: str,
    attempts: Sequence[AttemptRow],
    marks: Mapping[int, Mark] = MappingProxyType({}),
    ancestry: Ancestry | None = None,
) -> NodeView:
    due_at = None if row.due_at is None else row.due_at / SECOND
    mark = marks.get(row.index)
    progress = mark.progress if mark is not None and mark.attempt == row.attempt else None
    views = tuple(
        _attempt(each, None if ancestry is None else ancestry.of(each.index, each.number)) for each in attempts
    )
    return NodeView(row.id, name, row.status, row.reason, due_at, views, progress)


def _attempt(row: AttemptRow, ancestry: str | None) -> AttemptView:
    record = decode(row.error) if row.error else None
    return AttemptView(
        row.id,
        row.number,
        row.status,
        row.worker,
        row.started_at / SECOND,
        None if row.ended_at is None else row.ended_at / SECOND,
        None if record is None else NodeError(record["type"], record["message"], record.get("traceback")),
        decode(row.outcome) if row.outcome else {},
        ancestry,
    )
