"""A row of the table of results."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    work: str
    bar: str
    measured: str
    met: bool | None
    """None: it has no bar, and is only reported."""
