"""The pipelines of this process, so that a node that only names one finds it.

A pipeline is entered when it is made, and removed when nobody holds it any more.
"""

from __future__ import annotations

import weakref
from typing import Protocol


class Named(Protocol):
    """What the registry needs to know of a pipeline."""

    name: str
    home: str


_living: dict[tuple[str, str], list[weakref.ref[Named]]] = {}
"""By home and name; the last is the one that was made or built last."""


def enter(pipeline: Named) -> None:
    """Enter a pipeline. Nodes that name it and its root now find this object, not an older one with other code."""
    known = _living.get((pipeline.home, pipeline.name), ())
    others = [each for each in known if (there := each()) is not None and there is not pipeline]
    _living[pipeline.home, pipeline.name] = [*others, weakref.ref(pipeline)]


def homes() -> set[str]:
    """The modules and documents of all pipelines."""
    return {home for (home, _), known in _living.items() if any(each() is not None for each in known)}


def living(home: str, name: str) -> list[Named]:
    """The pipelines with this name and home, first the one that was made or built last."""
    return [there for each in reversed(_living.get((home, name), ())) if (there := each()) is not None]
