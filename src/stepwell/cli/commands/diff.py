"""`stepwell diff`: two runs side by side, what differs first."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from ...engine.runs.records import comparison_record
from ...history.comparing import Comparison
from ...history.differences import Difference
from ..connect import Connection
from ..find import find_run
from ..show.words import count, duration, plain
from ..streams import json_text, say

ROWS = 40
"""Nodes that are shown one by one, unless all are asked for."""
DIFFERENT = 1
"""The exit code when outputs or deltas differ."""
_ABSENT = "-"


def diff(connection: Connection, first: str, second: str, *, whole: bool, as_json: bool) -> None:
    with connection.store() as store:
        engine = connection.engine(store)
        comparison = engine.compare(find_run(store, first).id, find_run(store, second).id)
    if as_json:
        say(json_text(comparison_record(comparison)))
    else:
        _print(comparison, whole=whole)
    if not (comparison.same_outputs and comparison.same_deltas):
        raise typer.Exit(DIFFERENT)


def _print(comparison: Comparison, *, whole: bool) -> None:
    from ..show.screen import coloured, console, table

    screen = console()
    head = table("", "first", "second", wrapped=("first", "second"))
    one, other = comparison.first, comparison.second
    head.add_row("run", one.run_id, other.run_id)
    head.add_row("workflow", plain(one.workflow), plain(other.workflow))
    head.add_row("status", coloured(one.status), coloured(other.status))
    head.add_row("took", duration(one.seconds), duration(other.seconds))
    screen.print(head)
    _print_changes("input", comparison.input)
    _print_changes("graph", comparison.graph)
    shown = comparison.pairs if whole else comparison.different[:ROWS]
    if shown:
        made = table("node", "differs in", "first", "second", "attempts", "took", "ratio", wrapped=("node",))
        for pair in shown:
            sides = pair.first, pair.second
            statuses = (coloured(facts.status if facts else _ABSENT) for facts in sides)
            attempts = " / ".join(f"{facts.attempts:,}" if facts else _ABSENT for facts in sides)
            took = " / ".join((duration(facts.seconds) if facts else "") or _ABSENT for facts in sides)
            ratio = "" if pair.ratio is None else f"{pair.ratio:.2f}x"
            made.add_row(plain(pair.name), ", ".join(pair.differs), *statuses, attempts, took, ratio)
        screen.print()
        screen.print(made)
    for pair in shown:
        _print_changes(f"output of {plain(pair.name)}", pair.output)
        _print_changes(f"delta of {plain(pair.name)}", pair.delta)
    say(_summary(comparison, len(shown)))


def _print_changes(what: str, changes: Iterable[Difference]) -> None:
    changes = tuple(changes)
    if changes:
        say(f"\n{what}:")
        for change in changes:
            say(f"  {plain(str(change))}")


def _summary(comparison: Comparison, shown: int) -> str:
    different = len(comparison.different)
    alike = len(comparison.pairs) - different
    told = _differing(comparison, "output") or "the same outputs"
    if deltas := _differing(comparison, "delta"):
        told += f", {deltas}"
    line = f"\n{told}; {count(different, 'node')} with a difference, {alike:,} without"
    return line if shown >= different else f"{line}; --all and --json show more than {shown:,}"


def _differing(comparison: Comparison, what: str) -> str:
    """How many nodes have another one; empty if none has."""
    number = sum(what in pair.differs for pair in comparison.pairs)
    return f"{count(number, what)} differ{'s' if number == 1 else ''}" if number else ""
