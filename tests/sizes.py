"""How large things are in tests which show that a cost grows with the size of a graph and no faster.

A fifth of what is promised shows it every day; `make prove WHAT=load` runs these tests, marked `full_size`, at full size.
Limits shrink as the sizes do, so that what grows faster misses them at both. They are of processor time, which is not others'.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

SHARE = 1 if os.environ.get("STEPWELL_FULL_SIZE") == "1" else 5


def sized(full: int) -> int:
    return full // SHARE


@contextmanager
def in_seconds(full: float, what: str = "it") -> Iterator[None]:
    """What is done within takes no longer than this, of processor time, at full size."""
    began = time.process_time()
    yield
    taken = time.process_time() - began
    assert taken < full / SHARE, f"{what} took {taken:.1f} s"
