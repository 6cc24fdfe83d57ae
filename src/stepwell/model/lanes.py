"""Lanes: what READY nodes are found by."""

from __future__ import annotations

from typing import NamedTuple


class Lane(NamedTuple):
    """The READY nodes that the same workers can take for the same kind of slot."""

    queue: str
    body: str
    careful: bool = False
    """Never claimed ahead of a free slot, and interrupted, not run again, when the worker is lost."""
    suspect: bool = False
    """Several workers were lost with such a node: each is claimed alone, so that the next loss is certainly its own."""

    def __str__(self) -> str:
        return f"{self.queue}/{self.body}{'!' * self.careful}{'?' * self.suspect}"
