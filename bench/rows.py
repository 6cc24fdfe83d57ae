"""A row of the table of results, and how what it says is timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    work: str
    bar: str
    measured: str
    met: bool | None
    """None: it has no bar, and is only reported."""


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
