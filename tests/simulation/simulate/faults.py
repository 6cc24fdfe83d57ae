"""Everything that may go wrong, and which of it goes wrong in one seed."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple


class Fault(StrEnum):
    """What can happen to one call of a store."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    ERROR = "error, not applied"
    ERROR_APPLIED = "error, though applied"
    LATE = "late reply"
    TWICE = "sent twice"
    STOPPED = "stopped past its lease"
    """The whole process, after the call; others take over, and then it goes on. Random worlds pause workers instead."""


CALL_FAULTS = tuple(fault for fault in Fault if fault is not Fault.STOPPED)
"""Those that random worlds draw for each call."""


class Swarm(NamedTuple):
    """The faults of one seed, with their weights: each seed has a subset of its own."""

    workers: int
    threads: int
    call_faults: dict[Fault, float]
    """Chance, for each call, of each fault."""
    crash: float
    pause: float
    lost_hint: float
    """A hint that there may be work is lost, or comes again and too early."""
    restart: float
    """The store restarts: every call under way ends in an error, applied or not."""
    lost_tail: float
    skew: float
    leap: float
    """Chance, for each event, that time passes instead although something could be done: everybody was slow."""
    steps: int
    """How many events the phase of faults has."""


NO_FAULTS = Swarm(2, 2, {}, 0, 0, 0, 0, 0, 0, 0, 0)


def random_swarm(rng: random.Random) -> Swarm:
    def maybe(chance: float, most: float) -> float:
        return rng.uniform(0, most) if rng.random() < chance else 0.0

    return Swarm(
        workers=rng.randint(1, 3),
        threads=rng.randint(1, 3),
        call_faults={fault: weight for fault in CALL_FAULTS if (weight := maybe(0.5, 0.12)) > 0},
        crash=maybe(0.4, 0.02),
        pause=maybe(0.4, 0.03),
        lost_hint=maybe(0.3, 0.05),
        restart=maybe(0.2, 0.02),
        lost_tail=maybe(0.04, 0.03),
        skew=maybe(0.3, 3.0),
        leap=0.05,
        steps=rng.randint(20, 160),
    )
