"""How stages are connected: which reads what another writes, and their order, derived from the patterns alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import NamedTuple

from ...errors import DefinitionError
from ..patterns.pattern import Pattern
from ..stage import Stage


class Reading(NamedTuple):
    """One input of one stage, and the stages that write what it matches."""

    stage: Stage
    name: str
    pattern: Pattern
    writers: tuple[str, ...]
    excluded: tuple[Pattern, ...]
    """Outputs of this stage or of stages below it, which a glob or a directory never takes as an input."""


class Connections(NamedTuple):
    order: tuple[Stage, ...]
    """Every stage comes after those whose outputs it reads."""
    readings: Mapping[str, tuple[Reading, ...]]
    """By stage."""

    @property
    def patterns(self) -> list[Pattern]:
        """Every input and output."""
        return [pattern for stage in self.order for pattern in (*stage.inputs.values(), *stage.written)]

    def wanted(self, components: Sequence[str]) -> bool:
        """Whether a path that some pattern matches can be in or below this directory."""
        names = list(components)
        return any(pattern.leads_to(names) for pattern in self.patterns)

    def concerns(self, path: str) -> bool:
        """Whether a file is an input or output of a stage, or part of one."""
        return any(pattern.covers(path) for pattern in self.patterns)


def connect(stages: Sequence[Stage], pipeline: str) -> Connections:
    """Connect the stages of one pipeline. DefinitionError if two could write one state, or if they form a cycle."""
    if problem := two_writers((stage.name, pattern) for stage in stages for pattern in stage.written):
        raise DefinitionError(f"pipeline {pipeline!r}: {problem}")
    exact: dict[str, set[str]] = {stage.name: set() for stage in stages}
    for reader in stages:
        for pattern in reader.inputs.values():
            if not pattern.is_loose:
                exact[reader.name] |= {each.name for each in stages if _writes(each, pattern)}
    if cycle := find_cycle(exact):
        raise DefinitionError(
            f"pipeline {pipeline!r}: the stages {' → '.join(cycle)} need each other's outputs, so none of them can be "
            f"first; narrow a variable ({{name:regex}}), or write elsewhere"
        )
    # A glob reads what stages above write. A stage with which it would form a cycle is below, and is left out.
    for reader in stages:
        for pattern in reader.inputs.values():
            if pattern.is_loose:
                for writer in stages:
                    if _writes(writer, pattern) and not _reaches(exact, writer.name, reader.name):
                        exact[reader.name].add(writer.name)
    order: dict[str, Stage] = {}  # each after what it needs, otherwise in the order of writing
    while len(order) < len(stages):
        ready = next(each for each in stages if each.name not in order and order.keys() >= exact[each.name])
        order[ready.name] = ready
    readings = {
        stage.name: tuple(_reading(stage, name, pattern, stages, exact) for name, pattern in stage.inputs.items())
        for stage in stages
    }
    return Connections(tuple(order.values()), readings)


def _reading(
    stage: Stage, name: str, pattern: Pattern, stages: Sequence[Stage], above: Mapping[str, set[str]]
) -> Reading:
    writers = tuple(each.name for each in stages if each.name in above[stage.name] and _writes(each, pattern))
    excluded = tuple(
        output
        for each in stages
        if pattern.is_loose and each.name not in writers
        for output in each.written
        if output.overlaps(pattern)
    )
    return Reading(stage, name, pattern, writers, excluded)


def _writes(stage: Stage, pattern: Pattern) -> bool:
    return any(output.overlaps(pattern) for output in stage.written)


def _reaches(above: Mapping[str, set[str]], start: str, end: str) -> bool:
    """Whether `start` is `end`, or needs, directly or not, what `end` writes."""
    waiting, seen = [start], {start}
    while waiting:
        name = waiting.pop()
        if name == end:
            return True
        new = above[name] - seen
        seen |= new
        waiting += new
    return False


def two_writers(written: Iterable[tuple[str, Pattern]]) -> str | None:
    """Return what is wrong if two of these stages, or one of them twice, could write one state."""
    for (one, pattern), (other, theirs) in combinations(written, 2):
        if pattern.overlaps(theirs):
            who = f"{one} and {other}" if one != other else f"{one}, twice,"
            return f"{who} could write one state: {pattern.text} and {theirs.text}; a state has one writer"
    return None


def find_cycle(above: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a cycle as names, from the first to the first again, or nothing if there is none."""
    try:
        TopologicalSorter({name: sorted(needed) for name, needed in above.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
