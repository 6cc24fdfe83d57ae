"""Lanes: what READY nodes are found by. Hints: that something may have happened."""

from __future__ import annotations

from typing import NamedTuple

from ...base.ids import RunId, WorkerId

LOOK_BODY = "thread"
"""The kind of slot in which a worker looks at the run that performs a node, whatever the body of the node takes."""


class Lane(NamedTuple):
    """The READY nodes that the same workers can take for the same kind of slot."""

    queue: str
    body: str
    careful: bool = False
    """Never claimed ahead of a free slot, and interrupted, not run again, when the worker is lost."""
    suspect: bool = False
    """Several workers were lost with such a node: each is claimed alone, so that the next loss is certainly its own."""

    def __str__(self) -> str:
        return f"{self.queue}/{self.body}{'!' * self.careful}{'?' * self.suspect}"


class Hint(NamedTuple):
    """Sent after a commit. It may be lost, repeated or late, which costs only time."""

    queues: tuple[str, ...] = ()
    """Queues with more READY nodes than the sender takes."""
    runs: tuple[RunId, ...] = ()
    """Runs that ended, paused or need a decision."""
    workers: tuple[WorkerId, ...] = ()
    """Workers that should stop attempts."""
    started: tuple[RunId, ...] = ()
    """The READY nodes in the queues belong to these runs; empty: to any."""
    taken: tuple[RunId, ...] = ()
    """Runs started elsewhere that the sender has taken on: no other worker need look for them."""
    senders: tuple[WorkerId, ...] = ()
    """Workers that sent the hint and need not get it."""
