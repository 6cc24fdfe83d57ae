"""How stages hang together: who reads what whom writes, in which order, found from the patterns alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import DefinitionError
from ..patterns.pattern import Pattern
from ..stage import Stage


class Reading(NamedTuple):
    """One input of one stage, and who writes what it matches."""

    stage: Stage
    name: str
    pattern: Pattern
    writers: tuple[str, ...]
    excluded: tuple[Pattern, ...]
    """Outputs of the same or lower stages, which a glob or a directory never takes for an input."""

    @property
    def is_loose(self) -> bool:
        return self.pattern.has_glob or self.pattern.is_directory


class Connections(NamedTuple):
    order: tuple[Stage, ...]
    """Every stage after those whose outputs it reads."""
    readings: Mapping[str, tuple[Reading, ...]]
    """By stage."""

    def readers_of(self, writer: str) -> list[Reading]:
        return [each for stage in self.order for each in self.readings[stage.name] if writer in each.writers]

    @property
    def patterns(self) -> list[Pattern]:
        """Everything that is read or written."""
        return [
            pattern
            for stage in self.order
            for pattern in (*stage.inputs.values(), *(output.pattern for output in stage.outputs.values()))
        ]

    def wanted(self, components: Sequence[str]) -> bool:
        """Whether something that a pattern matches can be in a directory or below it."""
        names = list(components)
        return any(pattern.leads_to(names) for pattern in self.patterns)

    def concerns(self, path: str) -> bool:
        """Whether a file is, or is part of, an input or output of a stage."""
        return any(pattern.covers(path) for pattern in self.patterns)


def connect(stages: Sequence[Stage], pipeline: str) -> Connections:
    """The connections of one pipeline, or a DefinitionError that shows what is wrong."""
    _refuse_two_writers(stages, pipeline)
    exact: dict[str, set[str]] = {stage.name: set() for stage in stages}
    for reader in stages:
        for pattern in reader.inputs.values():
            if not (pattern.has_glob or pattern.is_directory):
                exact[reader.name] |= {each.name for each in stages if _writes(each, pattern)}
    cycle = find_cycle(exact)
    if cycle:
        raise DefinitionError(
            f"pipeline {pipeline!r}: the stages {' → '.join(cycle)} need each other's outputs, so none of them can be "
            f"first; narrow a variable ({{name:regex}}), or write elsewhere"
        )
    # A glob reads what stages above write. What would make a circle is written below, and is left out.
    for reader in stages:
        for pattern in reader.inputs.values():
            if pattern.has_glob or pattern.is_directory:
                for writer in stages:
                    if _writes(writer, pattern) and not _reaches(exact, writer.name, reader.name):
                        exact[reader.name].add(writer.name)
    by_name = {stage.name: stage for stage in stages}
    order = tuple(by_name[name] for name in _sorted(exact))
    readings = {
        stage.name: tuple(_reading(stage, name, pattern, stages, exact) for name, pattern in stage.inputs.items())
        for stage in stages
    }
    return Connections(order, readings)


def _reading(
    stage: Stage, name: str, pattern: Pattern, stages: Sequence[Stage], above: Mapping[str, set[str]]
) -> Reading:
    writers = tuple(each.name for each in stages if each.name in above[stage.name] and _writes(each, pattern))
    loose = pattern.has_glob or pattern.is_directory
    excluded = tuple(
        output.pattern
        for each in stages
        if loose and each.name not in writers
        for output in each.outputs.values()
        if output.pattern.overlaps(pattern)
    )
    return Reading(stage, name, pattern, writers, excluded)


def _writes(stage: Stage, pattern: Pattern) -> bool:
    return any(output.pattern.overlaps(pattern) for output in stage.outputs.values())


def _reaches(above: Mapping[str, set[str]], start: str, end: str) -> bool:
    """Whether `start` needs, directly or not, what `end` writes; or is it."""
    waiting, seen = [start], {start}
    while waiting:
        name = waiting.pop()
        if name == end:
            return True
        new = above[name] - seen
        seen |= new
        waiting += new
    return False


def _refuse_two_writers(stages: Sequence[Stage], pipeline: str) -> None:
    written = [(stage, output.pattern) for stage in stages for output in stage.outputs.values()]
    for position, (stage, pattern) in enumerate(written):
        for other, theirs in written[:position]:
            if pattern.overlaps(theirs):
                who = f"{other.name} and {stage.name}" if other.name != stage.name else f"{stage.name}, twice,"
                raise DefinitionError(
                    f"pipeline {pipeline!r}: {who} could write one state: {theirs.text} and {pattern.text}; a state has one "
                    f"writer"
                )


def find_cycle(above: Mapping[str, set[str]]) -> list[str]:
    """A circle, as names from the first to the first again; empty if there is none."""
    done: set[str] = set()
    for start in above:
        path: list[str] = []
        waiting = [(start, False)]
        while waiting:
            name, left = waiting.pop()
            if left:
                path.pop()
                done.add(name)
                continue
            if name in path:
                circle = path[path.index(name) :]
                return [*circle[::-1], circle[-1]] if len(circle) > 1 else [name, name]
            if name in done:
                continue
            path.append(name)
            waiting.append((name, True))
            waiting += [(each, False) for each in sorted(above.get(name, ()), reverse=True)]
    return []


def _sorted(above: Mapping[str, set[str]]) -> list[str]:
    """In the order of writing, each after what it needs."""
    order: list[str] = []
    placed: set[str] = set()
    while len(order) < len(above):
        for name in above:
            if name not in placed and above[name] <= placed:
                order.append(name)
                placed.add(name)
                break
    return order
