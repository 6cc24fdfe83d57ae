"""Wait for a condition instead of for time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(condition: Callable[[], Any], complaint: str = "", *, seconds: float = 5.0, show: Any = None) -> None:
    """Return as soon as the condition holds; fail when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{complaint or 'it never happened'}{'' if show is None else f': {show()}'}")
        time.sleep(0.002)
