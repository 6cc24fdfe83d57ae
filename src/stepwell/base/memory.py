"""Memory that is free, but that the allocator keeps: how to give it back to the system."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import cast

LARGE = 32 * 1024 * 1024
"""Bytes that a thread has read, from which on `give_back` is worth the time: some 50 us for each megabyte."""


def give_back() -> None:
    """Give back what is free.

    glibc has an arena for each thread, and keeps what is free in one below the last thing that is in use, however small. So
    threads that read large values in turn would together keep many times what one of them needs. Other allocators give it
    back by themselves.
    """
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # few programs need it

    return cast("Callable[[int], int] | None", getattr(ctypes.CDLL(None), "malloc_trim", None))
