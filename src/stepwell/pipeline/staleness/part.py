"""Finding, by their names, the part of a pipeline that a few changed files concern: the rest need not be listed."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..stage import Stage
from .connections import Connections
from .units import filled_inputs, input_formats

MOST_PATHS = 5_000
"""With more paths, listing everything takes no longer."""


class _Named(NamedTuple):
    """A stage in which the key of an entity names all inputs and outputs."""

    stage: Stage
    inputs: dict[str, str]
    outputs: dict[str, str]


def part_of(connections: Connections, changed: Collection[str]) -> set[str] | None:
    """Return all paths of the entities that changed, in all stages above and below.

    None if the names do not tell, or if there are too many.
    """
    named = [each for stage in connections.order if (each := _named(stage)) is not None]
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
        is_made = any(pattern.match(path) for each in named for pattern in each.stage.written)
        for each in named:
            read, written = each.stage.inputs.values(), each.stage.written
            for pattern, is_input in (*((one, True) for one in read), *((one, False) for one in written)):
                values = pattern.match(path)
                if values is None:
                    continue
                if values.keys() >= set(each.stage.variables):
                    key = [values[name] for name in each.stage.variables]
                    waiting += [text.format(*key) for text in each.outputs.values()]
                    waiting += [path for paths in filled_inputs(each.inputs, key).values() for path in paths]
                elif not is_input or pattern.variables or is_made or path in changed:
                    return None  # it concerns several entities
    return found


def _named(stage: Stage) -> _Named | None:
    inputs = input_formats(stage)
    if (
        not inputs
        or stage.entities is not None
        or any(pattern.is_directory for pattern in stage.inputs.values())
        or any(output.kind != "file" for output in stage.outputs.values())
    ):
        return None
    outputs = {name: output.pattern.format_for(stage.variables) for name, output in stage.outputs.items()}
    return _Named(stage, inputs, outputs)
