"""Wait for a condition instead of for time, and judge time by what the code needs, not by what else the machine does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepwell import Engine


def eventually(condition: Callable[[], Any], complaint: str = "", *, seconds: float = 30.0, show: Any = None) -> None:
    """Return as soon as the condition holds; fail when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{complaint or 'it never happened'}{'' if show is None else f': {show()}'}")
        time.sleep(0.002)


def in_time(limit: float, measure: Callable[[], float], *, tries: int = 8) -> None:
    """One of a few tries takes less than the limit, in seconds.

    A busy machine makes some of them late; code that is too slow, or waits for the wrong thing, makes all of them late.
    """
    taken: list[float] = []
    while not taken or taken[-1] >= limit:
        assert len(taken) < tries, f"never within {limit} s: {', '.join(f'{seconds:.3f}' for seconds in taken)}"
        taken.append(measure())


@contextmanager
def housekeeping_stopped(engine: Engine) -> Iterator[None]:
    """The housekeeper asks for a commit several times a second, which would hide that nobody else does."""
    house, there, over = engine.parts.work._follower, threading.Event(), threading.Event()
    timetable = house.do

    def blocked(due: Any) -> Any:
        there.set()
        over.wait(60)
        return timetable(due)

    house.do = blocked  # type: ignore[method-assign]
    try:
        assert there.wait(30)
        yield
    finally:
        over.set()
