"""Several pipelines together: how patterns connect them, cycles among them, and states that two would write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ..errors import DefinitionError
from .staleness.connections import find_cycle, two_writers

if TYPE_CHECKING:
    from ..answers.pipelines import LinkRecord
    from .definition import PipelineDefinition
    from .patterns.pattern import Pattern


class Link(NamedTuple):
    """A stage or a trigger that waits for what a stage writes."""

    writer: str
    output: str
    reader: str
    input: str

    def to_dict(self) -> LinkRecord:
        return {"writer": self.writer, "output": self.output, "reader": self.reader, "input": self.input}


def share_types(pipelines: Sequence[PipelineDefinition]) -> None:
    """Let pipelines that are given together find each other's states by type, although none of them was built yet."""
    if len(pipelines) < 2:
        return
    for each in pipelines:
        each.give_beside(pipelines)
    for _ in pipelines:  # what a document makes may itself depend on what another makes
        before = [each.other_types for each in pipelines]
        for each in pipelines:
            each.look_for_types()
        if all(each.other_types is types for each, types in zip(pipelines, before, strict=True)):
            return


def links(pipelines: Sequence[PipelineDefinition]) -> list[Link]:
    """Every connection, within pipelines and between those of one root: of stages, `pipeline#stage`, to stages that read what
    they write, and to triggers, `pipeline#trigger name`.
    """
    return [*_stage_links(pipelines), *_trigger_links(pipelines)]


def _trigger_links(pipelines: Sequence[PipelineDefinition]) -> list[Link]:
    return [
        Link(writer, output.text, f"{other.name}#trigger {trigger}", pattern.text)
        for one in pipelines
        for writer, output in _written(one)
        for other in pipelines
        if other.root == one.root
        for trigger, patterns in other.awaited().items()
        for pattern in patterns
        if output.overlaps(pattern)
    ]


def _stage_links(pipelines: Sequence[PipelineDefinition]) -> list[Link]:
    read = [(one, each) for one in pipelines for stage in one.stages for each in one.connections.readings[stage]]
    return [
        Link(writer, output.text, f"{other.name}#{reading.stage.name}", reading.pattern.text)
        for one in pipelines
        for writer, output in _written(one)
        for other, reading in read
        if other.root == one.root and output.overlaps(reading.pattern)
        if other is not one or writer.partition("#")[2] in reading.writers
    ]


def _written(pipeline: PipelineDefinition) -> list[tuple[str, Pattern]]:
    return [(f"{pipeline.name}#{stage.name}", each) for stage in pipeline.stages.values() for each in stage.written]


def check_together(pipelines: Sequence[PipelineDefinition]) -> None:
    """Refuse pipelines that share a name, could write one state, or need each other's states in a cycle."""
    if len(pipelines) < 2:
        return
    for one, other in combinations(dict.fromkeys(pipelines), 2):
        if other.root != one.root:
            continue
        if other.name == one.name:
            raise DefinitionError(f"two pipelines of one root are called {one.name!r}; give one of them another name")
        if problem := two_writers([*_written(one), *_written(other)]):
            raise DefinitionError(problem)
    above: dict[str, set[str]] = {f"{p.name}#{stage}": set() for p in pipelines for stage in p.stages}
    for link in _stage_links(pipelines):
        above[link.reader].add(link.writer)
    if cycle := find_cycle(above):
        raise DefinitionError(
            f"the stages {' → '.join(cycle)} of these pipelines need each other's states, so they would run for ever; narrow "
            f"a pattern, or write elsewhere"
        )


def in_order(names: Sequence[str], links: Iterable[tuple[str, str]]) -> list[str]:
    """Names of pipelines, each after those for whose states it waits, otherwise in the given order. `links` have stages and
    triggers, `pipeline#stage`; where two pipelines wait for each other's states in turn, the given order stays.

    >>> in_order(["podcast", "blog"], [("blog#post", "podcast#script")])
    ['blog', 'podcast']
    """
    above: dict[str, set[str]] = {name: set() for name in names}
    for writer, reader in links:
        above[reader.partition("#")[0]].add(writer.partition("#")[0])
    order: list[str] = []
    while len(order) < len(above):
        rest = [name for name in above if name not in order]
        order.append(next((name for name in rest if above[name] <= {name, *order}), rest[0]))
    return order


def drawing(pipelines: Sequence[PipelineDefinition]) -> str:
    """Return a Mermaid flowchart of the stages, the patterns they read and write, and the triggers."""
    lines, found = ["flowchart LR"], links(pipelines)
    ids: dict[str, str] = {}

    def name(text: str) -> str:
        return ids.setdefault(text, f"n{len(ids)}")

    for pipeline in pipelines:
        lines.append(f"  subgraph {pipeline.name}")
        for stage in pipeline.stages.values():
            lines.append(f'    {name(f"{pipeline.name}#{stage.name}")}["{stage.name}"]')
        for trigger in pipeline.triggers:
            lines.append(f'    {name(f"{pipeline.name}#trigger {trigger}")}(["{trigger}"])')
        lines.append("  end")
    connected = {(link.reader, link.input) for link in found}
    for pipeline in pipelines:
        for stage in pipeline.stages.values():
            own = f"{pipeline.name}#{stage.name}"
            for pattern in stage.inputs.values():
                if (own, pattern.text) not in connected:
                    source = f"source {pattern.text}"
                    if source not in ids:
                        lines.append(f'  {name(source)}[/"{pattern.text}"/]')
                    lines.append(f"  {name(source)} --> {name(own)}")
    lines += [f'  {name(link.writer)} -->|"{link.output}"| {name(link.reader)}' for link in found]
    return "\n".join(lines)
