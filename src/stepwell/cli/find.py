"""Finds what was named on the command line: a run, a node, a point of a history, a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.commands import DEFAULT_STORE
from ..core.model import RunRow
from ..core.store import Store, reader
from ..errors import InputError, RunNotFound
from .show.words import plain

if TYPE_CHECKING:
    from ..engine import Run
    from ..engine.runs.stored import StoredRun

LONGEST_SEQ = 18
"""The longest text of digits that is read as a `seq`."""
SHORTEST_PREFIX = 4
_FEW = 5


def find_run(store: Store, text: str) -> RunRow:
    """The run with this id, or the only run whose id has this prefix."""
    row = reader.get_run(store, text)
    if row is not None:
        return row
    # An empty store in memory takes the place of a default store that does not exist yet.
    looked_at = DEFAULT_STORE if store.url == "memory://" else store.url
    if len(text) < SHORTEST_PREFIX:
        raise RunNotFound(text, f"the beginning of an id needs at least {SHORTEST_PREFIX} characters", store=looked_at)
    rows = list(reader.all_runs(store, prefix=text))
    rows = [row for row in rows if row.parent is None] or rows  # the ids of child runs begin with that of their root
    if not rows:
        raise RunNotFound(text, store=looked_at)
    if len(rows) > 1:
        shown = "".join(f"\n  {row.id}  {plain(row.workflow)} {row.status}" for row in rows[:_FEW])
        more = f"\n  and {len(rows) - _FEW:,} more" if len(rows) > _FEW else ""
        raise InputError(f"{text!r} begins the ids of {len(rows):,} runs; give more of it:{shown}{more}")
    return rows[0]


def tag_of(typed: str) -> tuple[str, str]:
    """
    >>> tag_of("customer=7")
    ('customer', '7')
    """
    name, equals, value = typed.partition("=")
    if not (name and equals and value):
        raise InputError(f"--tag {typed}: expected NAME=VALUE, as in --tag customer=7")
    return name, value


def find_step(run: Run, at: str | None) -> int | str | None:
    """A point in the history of a run. Digits are a `seq`, unless a checkpoint has this label."""
    if at is None or not (at.isascii() and at.isdigit()) or len(at) > LONGEST_SEQ or run._step_of(at) is not None:
        return at
    return int(at)


def find_fork_point(run: Run, at: str | None) -> int | str | None:
    """Where to fork: a `seq`, a label, or a node of the run."""
    where = find_step(run, at)
    if isinstance(where, str) and run._step_of(where) is None:
        find_node(run._stored, where)
    return where


def find_node(run: StoredRun, node: str) -> int:
    """The index of a node; InputError if the run does not have it."""
    try:
        return run.index_of(node)
    except KeyError as error:  # the message says which nodes there are
        raise InputError(str(error.args[0])) from None
