"""Hints: that something may have happened. They are sent after a commit, may be lost, repeated or late, and cost only time."""

from __future__ import annotations

from typing import NamedTuple

from ..ids import RunId, WorkerId


class Hint(NamedTuple):
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
