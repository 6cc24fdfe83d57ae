"""Finding, by their names, the part of a pipeline that a few changed files concern: the rest need not be listed."""

from __future__ import annotations

from collections.abc import Collection

from ..stage import Stage
from .connections import Connections
from .units import input_formats

MOST_PATHS = 5_000
"""With more paths, listing everything takes no longer."""


def part_of(connections: Connections, changed: Collection[str]) -> set[str] | None:
    """Return all paths of the entities that changed, in all stages above and below.

    None if the names do not tell, or if there are too many.
    """
    named = [(stage, formats) for stage in connections.order if (formats := _formats(stage))]
    if len(named) < len(connections.order):
        return None
    found: set[str] = set()
    waiting = list(changed)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if len(found) > MOST_PATHS:
            return None
        is_made = any(pattern.match(path) is not None for stage, _ in named for pattern in stage.written)
        for stage, formats in named:
            for pattern in (*stage.inputs.values(), *stage.written):
                values = pattern.match(path)
                if values is None:
                    continue
                if values.keys() >= set(stage.variables):  # which every output names
                    key = [values[name] for name in stage.variables]
                    waiting += [text.format(*key) for text in formats]
                elif pattern.variables or is_made or path in changed:
                    return None  # it concerns several entities
    return found


def _formats(stage: Stage) -> list[str]:
    """A text for `str.format` for each input and output, which makes its path of a key; empty unless each is one file."""
    inputs = input_formats(stage)
    if (
        not inputs
        or stage.entities is not None
        or any(pattern.is_directory for pattern in stage.inputs.values())
        or any(output.kind != "file" for output in stage.outputs.values())
    ):
        return []
    return [*inputs.values(), *(pattern.format_for(stage.variables) for pattern in stage.written)]
