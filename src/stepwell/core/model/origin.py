"""Where a fork comes from, as it is kept in its run."""

from __future__ import annotations

from typing import NamedTuple

from ...base.codec import decode
from ...base.ids import RunId
from .rows import RunRow


class ForkOrigin(NamedTuple):
    """The run that a fork was made from, and how far that one was."""

    run_id: RunId
    seq: int
    before: int | None
    """The number of the node that the fork begins with, if it was forked at one."""

    def __str__(self) -> str:
        return f"{self.run_id} at {self.seq}"


def origin_of(row: RunRow) -> ForkOrigin | None:
    """None if the run is no fork."""
    if row.fork is None:
        return None
    fork = decode(row.fork)
    return ForkOrigin(fork["origin"], fork["seq"], fork["before"])


def made_from(fork: RunRow, origin: RunId, created_at: int) -> bool:
    """Whether a fork was made from this run, and not from one that had its id before and was deleted."""
    if fork.fork is None:
        return False
    source = decode(fork.fork)
    return bool(source["origin"] == origin and source["created_at"] == created_at)


def is_origin(row: RunRow, fork: RunRow) -> bool:
    return made_from(fork, row.id, row.created_at)
