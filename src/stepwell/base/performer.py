"""What a body may return to have its node performed by a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Performer:
    """A workflow with its input: an instance of a class, a Builder, or Saved."""

    __slots__ = ()


@dataclass(frozen=True)
class Saved(Performer):
    """A stored document by name, in its active version or in one that is named, with its input.

    return Saved("nightly-report", {"day": "2026-11-19"})
    return Saved("nightly-report@3", {"day": "2026-11-19"})
    """

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
