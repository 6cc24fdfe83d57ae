"""Shell completion: ids of runs, names of nodes and workflows, targets that were run before.

Nothing here imports user code, creates a store or raises.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TypeAlias

import typer

if TYPE_CHECKING:
    from ..core.model import RunRow
    from ..core.store import Store

OFFERED_UP_TO = 50
LOOKED_AT_UP_TO = 1_000
"""Runs that are searched for a prefix."""

NODES_UP_TO = 5_000
"""Reading the graph of a larger run would take too long for a completion."""

Offers: TypeAlias = Iterable[tuple[str, str]]
"""Completions, each with a short description."""

_VARIABLE = "_STEPWELL_COMPLETE"
_SAFE = re.compile(r"[\w.:/@+,=-]+\Z")
_UNSAFE_IN_HELP = re.compile(r"[^\w .,/@+=-]+")


def _offered(
    find: Callable[[Store, typer.Context, str], Offers],
) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    """The completer that typer calls: quiet, quick and safe.

    Shells evaluate what is offered to them, so only words of harmless characters are: a name may hold anything.
    """

    def complete(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        words: dict[str, str] = {}
        try:
            with _store(context) as store:
                for word, about in find(store, context, incomplete):
                    if word.startswith(incomplete) and _SAFE.match(word):
                        words.setdefault(word, _UNSAFE_IN_HELP.sub(" ", about))
                    if len(words) == OFFERED_UP_TO:
                        break
        except Exception:  # the command itself will report a broken store or setting
            return []
        return list(words.items())

    return complete


@contextmanager
def _store(context: typer.Context) -> Iterator[Store]:
    from .connect import Connection

    given = [each.params.get("store") for each in (context, context.parent) if each is not None]
    with Connection(next((store for store in given if store), None)).store() as store:
        yield store


@_offered
def nodes(store: Store, context: typer.Context, incomplete: str) -> Offers:
    """Names of the nodes of the run in the argument `run`."""
    from ..core.store import reader
    from ..engine.runs.stored import StoredRun
    from .find import find_run

    row = find_run(store, str(context.params.get("run") or ""))
    if row.nodes > NODES_UP_TO:
        return
    statuses = {node.id: node.status for node in reader.all_nodes(store, row.id)}
    for spec in StoredRun(store, row).graph:
        yield spec.name, statuses.get(spec.id, "")


@_offered
def workflows(store: Store, context: typer.Context, incomplete: str) -> Offers:
    """Names of workflows that were run."""
    for row in _newest(store):
        yield row.workflow, row.target or ""


def _runs(store: Store) -> Offers:
    """Ids of runs, the newest first."""
    return ((row.id, f"{row.status} {row.workflow}") for row in _newest(store))


def _documents(store: Store) -> Offers:
    from ..core.store import versions

    return ((row.name, f"document, version {row.active}") for row in versions.all_names(store, "document"))


def _targets(store: Store) -> Offers:
    """Targets that were run. Finding others would mean importing code."""
    yield from _documents(store)
    yield from ((row.target, row.workflow) for row in _newest(store) if row.target is not None)


runs = _offered(lambda store, *_: _runs(store))
documents = _offered(lambda store, *_: _documents(store))
targets = _offered(lambda store, *_: _targets(store))
targets_and_runs = _offered(lambda store, *_: (*_targets(store), *_runs(store)))


@_offered
def statuses(store: Store, context: typer.Context, incomplete: str) -> Offers:
    from ..core.model import RunStatus

    for status in RunStatus:
        yield (status.lower() if incomplete[:1].islower() else str(status)), ""


def _newest(store: Store) -> Iterator[RunRow]:
    from itertools import islice

    from ..core.store import reader

    return islice((row for row in reader.all_runs(store) if row.parent is None), LOOKED_AT_UP_TO)


@contextmanager
def shell_completion() -> Iterator[None]:
    """Wraps the whole command: adapts the input and output of shell completion, and does nothing otherwise."""
    asked = os.environ.get(_VARIABLE, "")
    if not asked.startswith("complete_"):
        yield
        return
    # Typer would load Rich only to take markup out of help texts, which have none. It takes longer than all the rest.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    if asked != "complete_bash":
        yield
        return
    before = _join_at_colons()
    heard = io.StringIO()
    try:
        with redirect_stdout(heard):
            yield
    finally:
        for line in heard.getvalue().splitlines():
            print(line.removeprefix(before))


def _join_at_colons() -> str:
    """Bash splits words at colons: join them again, and return the part it already has.

    >>> os.environ.update(COMP_WORDS="stepwell\\nrun\\nshop\\n:\\nOr", COMP_CWORD="4")
    >>> _join_at_colons(), os.environ["COMP_WORDS"].split(), os.environ["COMP_CWORD"]
    ('shop:', ['stepwell', 'run', 'shop:Or'], '2')
    """
    words: list[str] = []
    at = int(os.environ.get("COMP_CWORD", "0") or 0)
    place = at
    for number, word in enumerate(os.environ.get("COMP_WORDS", "").split("\n")):
        goes_on = bool(words) and (set(word) == {":"} or words[-1].endswith(":"))
        if goes_on:
            words[-1] += word
        else:
            words.append(word)
        if number == at:
            place = len(words) - 1
    os.environ["COMP_WORDS"] = "\n".join(words)
    os.environ["COMP_CWORD"] = str(place)
    word = words[place] if place < len(words) else ""
    return word[: word.rfind(":") + 1]
