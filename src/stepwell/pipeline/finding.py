"""Finding a pipeline by `module:name`, by a module that has one, or by the file of a document."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..base.words import shown
from ..errors import DefinitionError, DocumentError
from .pipeline import Pipeline

if TYPE_CHECKING:
    from ..core.store import Store
    from ..handlers import Handlers

DOCUMENTS = (".json", ".yaml", ".yml")


def load_pipeline(
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    handlers: Handlers | None = None,
    jobs: Iterable[str] = (),
    strict: bool = False,
    beside: Iterable[Pipeline] = (),
) -> Pipeline:
    """Read the pipeline in a file. `root` replaces its `stateRoot`; functions that it names must be in modules of `jobs`.

    Handlers are looked up at their first use; `strict` also refuses what cannot work here as it is: a
    handler that is missing, a trigger that starts nothing. It finds states by type also of the pipelines `beside` it.
    """
    from .document.load import read_pipeline

    own = {"root": root, "handlers": handlers, "jobs": jobs, "strict": strict, "beside": beside}
    return read_pipeline(Pipeline, path, **own)


def load_together(loads: Sequence[Callable[[list[Pipeline]], Pipeline]]) -> list[Pipeline | DocumentError]:
    """Load pipelines that are given together, each beside those that are there already. A document with problems is read again
    once others are there: it may name states that they make.
    """
    loaded: list[Pipeline | DocumentError | None] = [None] * len(loads)
    waiting = list(range(len(loads)))
    while waiting:
        for number in waiting:
            try:
                loaded[number] = loads[number]([each for each in loaded if isinstance(each, Pipeline)])
            except DocumentError as error:
                loaded[number] = error
        wrong = [number for number in waiting if isinstance(loaded[number], DocumentError)]
        if wrong == waiting:
            break
        waiting = wrong
    return [each for each in loaded if each is not None]


def stored_pipeline(
    store: Store,
    text: str,
    *,
    handlers: Handlers | None = None,
    jobs: tuple[str, ...] = (),
    beside: Iterable[Pipeline] = (),
) -> Pipeline:
    """Read a saved pipeline: the active version, `auto-blog`, or another one, `auto-blog@3`."""
    from .document.stored import read_stored

    return read_stored(Pipeline, store, text, handlers=handlers, jobs=jobs, beside=beside)


def is_stored_name(target: str) -> bool:
    """Whether this names a saved pipeline: `auto-blog@2`, or a name that no module has."""
    if ":" in target or target.endswith(DOCUMENTS):
        return False
    try:
        return "@" in target or importlib.util.find_spec(target) is None
    except (ImportError, ValueError):
        return not all(map(str.isidentifier, target.split(".")))


def find_target(
    target: str,
    *,
    handlers: Callable[[], Handlers] | None = None,
    jobs: Iterable[str] = (),
    beside: Iterable[Pipeline] = (),
) -> Pipeline:
    """Find the pipeline that a command line or a setting names."""
    if target.endswith(DOCUMENTS):
        return load_pipeline(target, handlers=None if handlers is None else handlers(), jobs=jobs, beside=beside)
    if ":" in target:
        home, _, name = target.partition(":")
        try:
            found = getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            from ..define.code.address import find

            found = find(target)  # its error says what is wrong
        if not isinstance(found, Pipeline):
            raise DefinitionError(f"{target} is {shown(found)}, not a Pipeline")
        return found
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError as error:
        message = f"{target}: there is no module {error.name!r} to import from here ({os.getcwd()})"
        raise DefinitionError(message) from None
    alike = {id(each): (name, each) for name, each in vars(module).items() if isinstance(each, Pipeline)}
    if len(alike) == 1:
        return next(iter(alike.values()))[1]
    names = ", ".join(f"{target}:{name}" for name, _ in alike.values()) or "none"
    raise DefinitionError(f"{target} has {len(alike)} pipelines ({names}); name one")
