"""How an attempt that ended should be settled: completed, tried again after a delay, or failed for good."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from ...base.clock import MAX_SECONDS, microseconds
from ..graph import NodeSpec, Retry
from ..model import PARENT_SKIPPED, PARENTS_SKIPPED, AttemptStatus, NodeStatus


class Failure(NamedTuple):
    """What the runner saw: the names of the exception's class and its bases, and what the body asked for."""

    names: Sequence[str]
    timed_out: bool = False
    later: Later | None = None
    permanent: bool = False
    """The body said that trying again would not help."""
    retry_after: float | None = None
    """The seconds after which the other side said it will answer again."""


class Later(NamedTuple):
    """A body asked to be tried again in `seconds`, at most `limit` times."""

    seconds: float
    limit: int


class Verdict(NamedTuple):
    status: AttemptStatus
    node: NodeStatus
    delay: int | None = None
    postponed: bool = False
    reason: str | None = None
    """Why the node is skipped."""


COMPLETED = Verdict(AttemptStatus.COMPLETED, NodeStatus.COMPLETED)
FAILED = Verdict(AttemptStatus.FAILED, NodeStatus.FAILED)
CANCELLED = Verdict(AttemptStatus.CANCELLED, NodeStatus.CANCELLED)
PARKED = Verdict(AttemptStatus.PARKED, NodeStatus.WAITING)
RELEASED = Verdict(AttemptStatus.RELEASED, NodeStatus.READY)


def skipped(reason: str) -> Verdict:
    """The body is not called, and the children of the node go on without it."""
    return Verdict(AttemptStatus.RELEASED, NodeStatus.SKIPPED, reason=reason)


def after_parents(spec: NodeSpec, parents: int, skipped_parents: int) -> Verdict | None:
    """The verdict on a node of whose parents some were skipped; None if it runs all the same.

    It runs if any of its parents ran, with `join="all"` only if all did.
    """
    if skipped_parents == parents:
        return skipped(PARENTS_SKIPPED)
    return skipped(PARENT_SKIPPED) if spec.join == "all" else None


def after_failure(spec: NodeSpec, failure: Failure, *, failures: int, postponed: int, seed: int) -> Verdict:
    """What becomes of a failed attempt. `failures` counts the earlier ones since the node was last asked for; `postponed` those
    that asked to be tried later, which has its own limit and does not depend on the node's retry."""
    status = AttemptStatus.TIMED_OUT if failure.timed_out else AttemptStatus.FAILED
    if failure.timed_out and spec.on_lost == "interrupt":
        return Verdict(status, NodeStatus.INTERRUPTED)  # the body may still be at work, or half done
    if failure.later is not None:
        if postponed >= failure.later.limit:
            return Verdict(status, NodeStatus.FAILED)
        return Verdict(status, NodeStatus.WAITING, _delay(failure.later.seconds), postponed=True)
    attempt, retry = failures + 1, spec.retry
    if retry is None or failure.permanent or attempt >= retry.max_attempts:
        return Verdict(status, NodeStatus.FAILED)
    names = retry.names()
    if names is not None and set(names).isdisjoint(failure.names):
        return Verdict(status, NodeStatus.FAILED)
    seconds = delay_seconds(retry, attempt, seed=seed, node=spec.id)
    return Verdict(status, NodeStatus.WAITING, _delay(max(seconds, failure.retry_after or 0.0)))


def _delay(seconds: float) -> int:
    return microseconds(min(max(0.0, seconds), MAX_SECONDS))


def stopped(spec: NodeSpec) -> Verdict:
    """A body was asked to stop, and did. One that promised to run at most once may be half done."""
    return Verdict(AttemptStatus.CANCELLED, NodeStatus.INTERRUPTED) if spec.on_lost == "interrupt" else CANCELLED


UNFIT_DELAY = 1_000_000
"""Microseconds until a node is tried again whose stored data does not fit; its run should be paused by then."""


def unfit() -> Verdict:
    """The body could not begin because stored data does not fit its annotations: that is not its failure."""
    return Verdict(AttemptStatus.FAILED, NodeStatus.WAITING, UNFIT_DELAY, postponed=True)


def lost(spec: NodeSpec) -> Verdict:
    """The engine closes and this body does not end: do at once what the sweeper would do later."""
    return Verdict(AttemptStatus.LOST, NodeStatus.INTERRUPTED if spec.on_lost == "interrupt" else NodeStatus.READY)


def delay_seconds(retry: Retry, attempt: int, *, seed: int, node: str) -> float:
    """The delay after failed attempt number `attempt`. The same seed gives the same schedule.

    >>> delay_seconds(Retry(5, base_delay=1.0, max_delay=3.0), 3, seed=1, node="charge")
    3.0
    """
    base, longest = retry.delays()
    drawn = sha256(f"{seed}:{node}:{attempt}".encode()).digest()[:7]
    jitter = base * int.from_bytes(drawn, "big") / 2**56
    return min(base * 2.0 ** min(attempt - 1, 62) + jitter, longest)
