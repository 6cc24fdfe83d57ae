"""Units: one stage of one entity each, found by joining what the inputs of a stage match."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ...base.words import shown
from ...errors import DefinitionError
from ..patterns.paths import value_problem
from ..stage import Stage
from .connections import Reading
from .standing import Standing

Key: TypeAlias = tuple[str, ...]
Found: TypeAlias = dict[Key, list[str]]
"""Paths that one input matches, by the values of the variables that distinguish entities."""


class Unit:
    """One stage of one entity: what it reads and writes."""

    __slots__ = ("clash", "id", "inputs", "key", "missing", "outputs", "stage", "standing")

    def __init__(self, stage: Stage, key: Key, inputs: Mapping[str, list[str]], missing: tuple[str, ...]) -> None:
        self.stage = stage
        self.key = key
        self.inputs = inputs
        """Paths by the name of the input."""
        self.missing = missing
        """Patterns without variables that match nothing."""
        self.outputs: dict[str, str] = {}
        """The address of each state it writes, by the name of the output."""
        self.clash: str | None = None
        self.standing: Standing | None = None
        self.id = unit_id(stage.name, key)
        """The stage and the entity: `summary 2026-01-15`."""

    def __repr__(self) -> str:
        return f"<{self.id}>"

    @property
    def entity(self) -> str:
        return "/".join(self.key)

    def input_paths(self) -> list[str]:
        if len(self.inputs) == 1:
            (paths,) = self.inputs.values()
            return paths
        return [path for paths in self.inputs.values() for path in paths]


def unit_id(stage: str, key: Sequence[str]) -> str:
    return f"{stage} {'/'.join(key)}" if key else stage


def split_entity(entity: str) -> Key:
    """Return the key of an entity from its id. It is empty where one unit collects all."""
    return tuple(entity.split("/")) if entity else ()


def input_formats(stage: Stage) -> dict[str, str]:
    """A text for `str.format` for each input, which makes its path of a key; empty unless each is one path."""
    if any(
        pattern.has_glob or any(name not in stage.variables for name in pattern.variables)
        for pattern in stage.inputs.values()
    ):
        return {}
    return {name: pattern.format_for(stage.variables) for name, pattern in stage.inputs.items()}


def filled_inputs(formats: Mapping[str, str], key: Sequence[str]) -> dict[str, list[str]]:
    return {name: [text.format(*key)] for name, text in formats.items()}


def key_variables(reading: Reading) -> tuple[str, ...]:
    """The variables of an input that distinguish entities."""
    return tuple(name for name in reading.pattern.variables if name in reading.stage.variables)


def units_of(stage: Stage, readings: Iterable[Reading], found: Mapping[str, Found]) -> list[Unit]:
    """One unit for each entity that all inputs with variables have, or that `entities` gives. Gates only keep them waiting."""
    given = list(readings)
    shared = {each.name: found[each.name].get((), []) for each in given if not key_variables(each)}
    absent = [each.pattern for each in given if each.name in shared and not shared[each.name]]
    missing = tuple(pattern.text for pattern in absent if not pattern.variables)
    own = [each for each in given if each.name not in shared]
    if stage.entities is not None:
        units, variables = [], {each.name: key_variables(each) for each in own}
        for key in _given_keys(stage):
            values = stage.values(key)
            inputs = {
                name: found[name].get(tuple(values[each] for each in names), []) for name, names in variables.items()
            }
            lacking = [each.pattern.partly_filled(values) for each in own if not inputs[each.name]]
            units.append(Unit(stage, key, shared | inputs, (*missing, *lacking)))
        return units
    if not own:  # one unit collects all
        return [] if any(pattern.variables for pattern in absent) else [Unit(stage, (), shared, missing)]
    if stage.gates and (gates := _gates_of(stage, own)):
        own = [each for each in own if each not in gates]
        return [_gated(stage, row, inputs | shared, missing, gates, found) for row, inputs in _joined(own, found)]
    if len(own) == 1 and key_variables(own[0]) == stage.variables:
        name = own[0].name
        if not shared:
            return [Unit(stage, key, {name: paths}, ()) for key, paths in found[name].items()]
        return [Unit(stage, key, {name: paths, **shared}, missing) for key, paths in found[name].items()]
    return [
        Unit(stage, tuple(row[variable] for variable in stage.variables), inputs | shared, missing)
        for row, inputs in _joined(own, found)
    ]


def _gates_of(stage: Stage, own: Sequence[Reading]) -> list[Reading]:
    """The gates whose path follows from the other inputs of a unit."""
    variables = {name for each in own if each.name not in stage.gates for name in key_variables(each)}
    return [each for each in own if each.name in stage.gates and variables.issuperset(each.pattern.variables)]


def _gated(
    stage: Stage,
    values: Mapping[str, str],
    inputs: Mapping[str, list[str]],
    missing: tuple[str, ...],
    gates: Iterable[Reading],
    found: Mapping[str, Found],
) -> Unit:
    """The unit of an entity, waiting for those of its gates that do not exist."""
    there = {each.name: found[each.name].get(tuple(values[name] for name in key_variables(each)), []) for each in gates}
    closed = (each.pattern.partly_filled(values) for each in gates if not there[each.name])
    key = tuple(values[name] for name in stage.variables)
    return Unit(stage, key, {**inputs, **there}, (*missing, *closed))


def _joined(readings: list[Reading], found: Mapping[str, Found]) -> list[tuple[dict[str, str], dict[str, list[str]]]]:
    """Every combination of entities that agree in the variables they share."""
    rows: list[tuple[dict[str, str], dict[str, list[str]]]] = [({}, {})]
    known: set[str] = set()
    for reading in sorted(readings, key=lambda each: -len(key_variables(each))):
        variables = key_variables(reading)
        common = tuple(name for name in variables if name in known)
        index: dict[Key, list[tuple[dict[str, str], list[str]]]] = {}
        for key, paths in found[reading.name].items():
            values = dict(zip(variables, key, strict=True))
            index.setdefault(tuple(values[name] for name in common), []).append((values, paths))
        rows = [
            (row | values, inputs | {reading.name: paths})
            for row, inputs in rows
            for values, paths in index.get(tuple(row[name] for name in common), ())
        ]
        known |= set(variables)
    return rows


def _given_keys(stage: Stage) -> list[Key]:
    """The entities that the function of a stage gives, each as an id, `moby/7`, or as the values of the variables."""
    assert stage.entities is not None
    keys: dict[Key, None] = {}
    for each in stage.entities():
        if isinstance(each, Mapping):
            key = tuple(str(each.get(name, "")) for name in stage.variables)
        elif isinstance(each, str):
            key = tuple(each.split("/"))
        else:
            raise DefinitionError(f"stage {stage.name!r}: entities() gave {shown(each)}: expected an id or a mapping")
        problem = next((told for value in key if (told := value_problem(value))), None)
        if problem is not None or len(key) != len(stage.variables):
            needed = "/".join(f"{{{name}}}" for name in stage.variables)
            raise DefinitionError(
                f"stage {stage.name!r}: entities() gave {shown(each)}, which is not of the form {needed}"
                + (f": {problem}" if problem else "")
            )
        keys[key] = None
    return list(keys)


def feeder(
    writer: Stage, reading: Reading, found: Found, paths_of: Callable[[Unit], list[str]]
) -> Callable[[Unit], None]:
    """Return a function that adds what a unit of one stage makes to what one input of another has found."""
    pattern, variables = reading.pattern, key_variables(reading)
    only = next(iter(writer.outputs.values())) if len(writer.outputs) == 1 else None
    # If the only output has the same pattern as the input, nothing has to be matched.
    same = only.name if only is not None and only.kind != "members" and only.pattern == pattern else None
    places = [writer.variables.index(name) for name in variables if name in writer.variables]
    is_key = variables == writer.variables

    def add(key: Key, path: str) -> None:
        paths = found.get(key)
        if paths is None:
            found[key] = [path]
        elif path not in paths[-1:]:
            insort(paths, path)

    def feed(unit: Unit) -> None:
        if same is not None:
            add(unit.key if is_key else tuple([unit.key[place] for place in places]), unit.outputs[same])
            return
        for path in paths_of(unit):
            matched = pattern.match(path)
            if matched is not None:
                add(tuple([matched[name] for name in variables]), path)

    return feed
