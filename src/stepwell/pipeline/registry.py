"""Which pipelines this process has, so that a node that only names one finds it.

A pipeline enters when it is made and leaves when nobody holds it any more.
"""

from __future__ import annotations

import weakref
from typing import Protocol


class Named(Protocol):
    """A pipeline, as far as it is found by its name."""

    name: str
    home: str


_living: dict[tuple[str, str], list[weakref.ref[Named]]] = {}
"""The one that was made or built last is the last."""


def enter(pipeline: Named) -> None:
    """From now on a node that names this pipeline and its root gets this object, not an older one with other code."""
    known = _living.get((pipeline.home, pipeline.name), ())
    others = [each for each in known if (there := each()) is not None and there is not pipeline]
    _living[pipeline.home, pipeline.name] = [*others, weakref.ref(pipeline)]


def homes() -> set[str]:
    """The modules and documents of all pipelines there are."""
    return {home for (home, _), known in _living.items() if any(each() is not None for each in known)}


def living(home: str, name: str) -> list[Named]:
    """The pipelines of this name, written in the module `home`; the one that was made or built last comes first."""
    return [there for each in reversed(_living.get((home, name), ())) if (there := each()) is not None]
