"""Several pipelines together: which patterns connect them, circles among them, and states that two would write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..errors import DefinitionError
from .staleness.connections import find_cycle

if TYPE_CHECKING:
    from .definition import PipelineDefinition


class Link(NamedTuple):
    """A stage that reads what another writes."""

    writer: str
    output: str
    reader: str
    input: str


def links(pipelines: Sequence[PipelineDefinition]) -> list[Link]:
    """Every connection of stages, `pipeline#stage`, within pipelines and between those of one root."""
    found = []
    for one in pipelines:
        for writer in one.stages.values():
            for output in writer.outputs.values():
                for other in pipelines:
                    if other.store.url != one.store.url:
                        continue
                    for reader in other.stages.values():
                        for name, pattern in reader.inputs.items():
                            if not output.pattern.overlaps(pattern):
                                continue
                            if other is one and writer.name not in next(
                                each.writers for each in one.connections.readings[reader.name] if each.name == name
                            ):
                                continue
                            written, read = f"{one.name}#{writer.name}", f"{other.name}#{reader.name}"
                            found.append(Link(written, output.pattern.text, read, pattern.text))
    return found


def check_together(pipelines: Sequence[PipelineDefinition]) -> None:
    """Refuse pipelines of one name, that would write one state, or that need each other's states in a circle."""
    if len(pipelines) < 2:
        return
    for position, one in enumerate(pipelines):
        for other in pipelines[:position]:
            if other is one or other.store.url != one.store.url:
                continue
            if other.name == one.name:
                raise DefinitionError(
                    f"two pipelines of one root are called {one.name!r}; give one of them another name"
                )
            _refuse_two_writers(one, other)
    above: dict[str, set[str]] = {f"{p.name}#{stage}": set() for p in pipelines for stage in p.stages}
    for link in links(pipelines):
        above[link.reader].add(link.writer)
    cycle = find_cycle(above)
    if cycle:
        raise DefinitionError(
            f"the stages {' → '.join(cycle)} of these pipelines need each other's states, so they would run for ever; narrow "
            f"a pattern, or write elsewhere"
        )


def _refuse_two_writers(one: PipelineDefinition, other: PipelineDefinition) -> None:
    for stage in one.stages.values():
        for output in stage.outputs.values():
            for theirs in other.stages.values():
                for each in theirs.outputs.values():
                    if each.pattern.overlaps(output.pattern):
                        raise DefinitionError(
                            f"{other.name}#{theirs.name} and {one.name}#{stage.name} could write one state: "
                            f"{each.pattern.text} and {output.pattern.text}; a state has one writer"
                        )


def drawing(pipelines: Sequence[PipelineDefinition]) -> str:
    """A Mermaid flowchart: stages, and the patterns they read and write."""
    lines = ["flowchart LR"]
    ids: dict[str, str] = {}

    def name(text: str) -> str:
        return ids.setdefault(text, f"n{len(ids)}")

    for pipeline in pipelines:
        lines.append(f"  subgraph {pipeline.name}")
        for stage in pipeline.stages.values():
            lines.append(f'    {name(f"{pipeline.name}#{stage.name}")}["{stage.name}"]')
        lines.append("  end")
    connected = {(link.reader, link.input): link for link in links(pipelines)}
    for pipeline in pipelines:
        for stage in pipeline.stages.values():
            own = f"{pipeline.name}#{stage.name}"
            for pattern in stage.inputs.values():
                if (own, pattern.text) not in connected:
                    source = f"source {pattern.text}"
                    if source not in ids:
                        lines.append(f'  {name(source)}[/"{pattern.text}"/]')
                    lines.append(f"  {name(source)} --> {name(own)}")
    lines += [f'  {name(link.writer)} -->|"{link.output}"| {name(link.reader)}' for link in links(pipelines)]
    return "\n".join(lines)
