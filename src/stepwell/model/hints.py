"""Hints: that something may have happened. They are sent after a commit, may be lost, repeated or late, and cost only time."""

from __future__ import annotations

from typing import NamedTuple

from ..ids import RunId, WorkerId


class Hint(NamedTuple):
    queues: tuple[str, ...] = ()
    """In which there is more READY than the sender takes."""
    runs: tuple[RunId, ...] = ()
    """That ended, paused or wait for somebody."""
    workers: tuple[WorkerId, ...] = ()
    """That should stop attempts."""
    started: tuple[RunId, ...] = ()
    """What is READY in the queues is of these runs; empty: of any."""
    taken: tuple[RunId, ...] = ()
    """Started elsewhere, and now worked on by the sender, who has room for more: nobody else need look for them."""
    senders: tuple[WorkerId, ...] = ()
    """Need not be told: it comes from them."""
