"""Pipelines by name: `module:name`, a module that has one, or the file of a document."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..errors import DefinitionError
from ..words import shown
from .pipeline import Pipeline

if TYPE_CHECKING:
    from ..handlers import Handlers
    from ..store import Store


DOCUMENTS = (".json", ".yaml", ".yml")


def load_pipeline(
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    handlers: Handlers | None = None,
    jobs: Iterable[str] = (),
    check_handlers: bool = False,
) -> Pipeline:
    """The pipeline in a file. `root` stands for its `stateRoot`; functions it names must be in modules of `jobs`.

    Handlers are looked for when they are needed; with `check_handlers`, one that is not here is a problem of the document.
    """
    from .document.load import read_pipeline

    return read_pipeline(Pipeline, path, root=root, handlers=handlers, jobs=jobs, check_handlers=check_handlers)


def stored_pipeline(
    store: Store, text: str, *, handlers: Handlers | None = None, jobs: tuple[str, ...] = ()
) -> Pipeline:
    """The saved pipeline that `auto-blog`, or `auto-blog@3`, means."""
    from .document.stored import read_stored

    return read_stored(Pipeline, store, text, handlers=handlers, jobs=jobs)


def is_stored_name(target: str) -> bool:
    """Whether somebody means a pipeline that was saved: `auto-blog@2`, or a name that no module has."""
    if ":" in target or target.endswith(DOCUMENTS):
        return False
    try:
        return "@" in target or importlib.util.find_spec(target) is None
    except (ImportError, ValueError):
        return not all(map(str.isidentifier, target.split(".")))


def find_target(target: str, *, handlers: Callable[[], Handlers] | None = None, jobs: Iterable[str] = ()) -> Pipeline:
    """The pipeline that a command line or a setting names."""
    if target.endswith(DOCUMENTS):
        return load_pipeline(target, handlers=None if handlers is None else handlers(), jobs=jobs)
    if ":" in target:
        home, _, name = target.partition(":")
        try:
            found = getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            from ..define.code.address import find

            found = find(target)  # which says what is wrong
        if not isinstance(found, Pipeline):
            raise DefinitionError(f"{target} is {shown(found)}, and no Pipeline")
        return found
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError as error:
        raise DefinitionError(
            f"{target}: there is no module {error.name!r} to import from here ({os.getcwd()})"
        ) from None
    alike = {id(each): (name, each) for name, each in vars(module).items() if isinstance(each, Pipeline)}
    if len(alike) == 1:
        return next(iter(alike.values()))[1]
    names = ", ".join(f"{target}:{name}" for name, _ in alike.values()) or "none"
    raise DefinitionError(f"{target} has {len(alike)} pipelines ({names}); name one")
