"""Which part of a pipeline a few changed files concern, told by their names: the rest need not even be listed."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..patterns.pattern import Pattern
from ..stage import Stage
from .connections import Connections
from .units import filled_inputs, input_formats

MOST_PATHS = 5_000
"""Beyond so many, looking at everything takes no longer."""


class _Named(NamedTuple):
    """A stage whose inputs and outputs are files that the key of an entity names."""

    stage: Stage
    inputs: dict[str, str]
    outputs: dict[str, str]


def part_of(connections: Connections, changed: Collection[str]) -> set[str] | None:
    """The paths of everything that has to do with what changed: of its entities, in all stages above and below.

    None if names do not tell, or if it is too much.
    """
    stages = [_named(stage) for stage in connections.order]
    if None in stages:
        return None
    named = [stage for stage in stages if stage is not None]
    found: set[str] = set()
    waiting = list(changed)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if len(found) > MOST_PATHS:
            return None
        is_made = any(output.pattern.match(path) for each in named for output in each.stage.outputs.values())
        for each in named:
            for pattern, is_input in _patterns(each.stage):
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


def _patterns(stage: Stage) -> list[tuple[Pattern, bool]]:
    """What a stage reads and writes, and whether it is read."""
    written = [(output.pattern, False) for output in stage.outputs.values()]
    return [*((pattern, True) for pattern in stage.inputs.values()), *written]


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
