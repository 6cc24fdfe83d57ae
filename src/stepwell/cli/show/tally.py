"""How far a run is, in numbers, and what can show it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...model.lines import Progress
from .words import duration

NAMES_UP_TO = 12


class Tally(NamedTuple):
    """The progress of a run. The numbers need not add up: cancelled nodes are in none of them."""

    total: int
    done: int
    running: int
    waiting: int
    failed: int
    at_work: tuple[str, ...]
    """Some of those that run or wait for a time."""
    bars: tuple[tuple[str, Progress], ...] = ()
    """Nodes that say how far they are; these are not in `at_work`."""
    paused: bool = False


class Display(Protocol):
    def __enter__(self) -> Display: ...

    def __exit__(self, *raised: object) -> None: ...

    def update(self, tally: Tally) -> None: ...


def elapsed(seconds: float) -> str:
    """In tenths while it is short, so that it does not change its width all the time."""
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)
