"""What the lines of an attempt hold: something it logged or printed, how far it is, an effect and its payloads, a label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...base.codec import decode, encode_checked
from .rows import LineRow

LOG = "log"
PROGRESS = "progress"
EFFECT = "effect"
"""The record of an outside interaction; see `history/effects/record.py`."""
PAYLOAD = "payload"
"""A large request or response of an effect, so that equal ones are stored once."""

CHECKPOINT = "checkpoint"
"""A label for the state of the run after its body has completed: a JSON string."""
KEY_BEGINS = "sha256:"
"""The prefix of checkpoint keys, which distinguishes them from labels."""


class LogLine(NamedTuple):
    """A line that a body logged or printed. `at` is the worker's wall clock, in microseconds: when it was said, for people.

    A printed line has the name of its stream as its logger.
    """

    at: int
    level: str
    severity: int
    """The number of the level, as `logging` counts: 20 is INFO."""
    logger: str
    text: str

    def encoded(self) -> bytes:
        return encode_checked(list(self))

    @classmethod
    def of(cls, data: bytes) -> LogLine:
        return cls(*decode(data))


class Progress(NamedTuple):
    """How far a body says it is."""

    done: float
    total: float | None = None
    message: str | None = None

    @property
    def fraction(self) -> float | None:
        """Between 0 and 1; None without a total."""
        if not self.total or self.total < 0:
            return None
        return min(1.0, max(0.0, self.done / self.total))

    def encoded(self) -> bytes:
        return encode_checked(list(self))

    @classmethod
    def of(cls, data: bytes) -> Progress:
        return cls(*decode(data))


class LatestProgress(NamedTuple):
    """How far the latest attempt of a node that said so is."""

    attempt: int
    progress: Progress


def in_order_of_time(rows: Iterable[LineRow]) -> list[tuple[LineRow, LogLine]]:
    """Log lines by time; lines of the same moment or the same attempt in stored order."""
    lines = [(row, LogLine.of(row.data)) for row in rows]
    latest: dict[str, int] = {}
    keys: list[int] = []
    for row, line in lines:
        # A clock that is set back must not mix up the lines of one attempt.
        latest[row.attempt] = max(line.at, latest.get(row.attempt, 0))
        keys.append(latest[row.attempt])
    return [lines[place] for place in sorted(range(len(lines)), key=keys.__getitem__)]


def latest_progress(marks: Iterable[LineRow]) -> dict[int, LatestProgress]:
    """By the index of the node. Marks come in the order of claims, so that of the latest attempt comes last."""
    return {row.node: LatestProgress(row.number, Progress.of(row.data)) for row in marks}
