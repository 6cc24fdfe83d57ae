"""Which pipelines this process has, so that a node that only names one finds it.

A pipeline enters when it is made and leaves when nobody holds it any more. A worker that has not got it imports the module it
was written in, which makes it.
"""

from __future__ import annotations

import importlib
import weakref
from typing import TYPE_CHECKING

from ..errors import DefinitionError, OtherRoot
from ..importable import loaded_module

if TYPE_CHECKING:
    from .pipeline import Pipeline

_loaded: dict[str, Pipeline] = {}
"""Pipelines that were read from files for a node: nobody else holds them."""
_living: dict[tuple[str, str], list[weakref.ref[Pipeline]]] = {}
"""The one that was made or built last is the last."""


def enter(pipeline: Pipeline) -> None:
    """From now on a node that names this pipeline and its root gets this object, not an older one with other code."""
    known = _living.get((pipeline.home, pipeline.name), ())
    others = [each for each in known if (there := each()) is not None and there is not pipeline]
    _living[pipeline.home, pipeline.name] = [*others, weakref.ref(pipeline)]


def find_pipeline(home: str, name: str, root_id: str) -> Pipeline:
    """The pipeline of this name, written in the module `home`, whose root is the one that is meant."""
    alike = _alive(home, name)
    if not alike:
        _load(home)
        alike = _alive(home, name)
    if not alike:
        raise DefinitionError(
            f"there is no pipeline {name!r} in {home}; was it renamed, or is it made only when {home} is run as a program?"
        )
    for pipeline in alike:
        if pipeline.store.root_id == root_id:
            return pipeline
    raise OtherRoot(
        f"pipeline {name!r}: the root here, {alike[0].store.url}, is not the one that the work was planned for; mount the same "
        f"folder at the root, or plan the work here",
        pipeline=name,
    )


def _alive(home: str, name: str) -> list[Pipeline]:
    """The one that was made or built last comes first."""
    return [there for each in reversed(_living.get((home, name), ())) if (there := each()) is not None]


def _load(home: str) -> None:
    """Make the pipelines of a module or document; they enter by themselves."""
    if home.endswith((".json", ".yaml", ".yml")):
        from .document.load import load_pipeline

        _loaded[home] = load_pipeline(home)
    elif home.startswith("stored:"):
        from .document.stored import load_home

        _loaded[home] = load_home(home)
    elif loaded_module(home) is None:
        importlib.import_module(home)
