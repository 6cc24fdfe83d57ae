"""The stored output of an attempt: what its body returned, and its delta to the state, if there is one.

Without a delta it is the canonical JSON of the output. With one it is two lines, output and delta, each ended by a newline.
Canonical JSON contains no newline (in a string it is `\\n`), so the last byte tells which it is.
"""

from __future__ import annotations

from typing import NamedTuple

_END = b"\n"


class Completion(NamedTuple):
    """The completed attempt of a node: its number, and the output as it is stored."""

    number: int
    output: bytes


def with_delta(output: bytes, delta: bytes) -> bytes:
    """The stored form of an output that came with a delta."""
    return output + _END + delta + _END


def output_of(stored: bytes) -> bytes:
    """The canonical JSON of what the body returned for others to use."""
    return stored[: stored.index(_END)] if stored.endswith(_END) else stored


def delta_of(stored: bytes) -> bytes | None:
    """The canonical JSON of what the body changes in the state; None when it changes nothing."""
    return stored[stored.index(_END) + 1 : -1] if stored.endswith(_END) else None
