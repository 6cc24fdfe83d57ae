"""Limits of processor time that hold on every machine: they count the rounds of a plain loop that could have run meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECOND = 20_000_000
"""The rounds that take about a second on a machine of 2023 with nothing else to do."""

_MEASURED_ROUNDS = 1_000_000
_FASTEST_ROUND_SECONDS = 1e-9


@contextmanager
def at_most(rounds: float) -> Iterator[None]:
    """Fail if the block takes more processor time than so many rounds, which are as slow as the block on a busy machine."""
    start = time.process_time()
    yield
    taken = time.process_time() - start
    if taken > rounds * _FASTEST_ROUND_SECONDS:
        allowed = _seconds_of_a_round() * rounds
        assert taken <= allowed, f"it took {taken:.3f} s, and a loop of {rounds:,.0f} rounds takes {allowed:.3f} s"


def _seconds_of_a_round() -> float:
    start = time.process_time()
    sum(i * i for i in range(_MEASURED_ROUNDS))
    return (time.process_time() - start) / _MEASURED_ROUNDS
