"""`Foreseen`: what builds of other pipelines of a root will write before this one is built, as far as plans can tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .patterns.pattern import Pattern
from .states.snapshot import Snapshot

if TYPE_CHECKING:
    from .definition import PipelineDefinition


class Foreseen:
    """States that will or may be written, and patterns of files whose names nobody can foresee."""

    def __init__(self) -> None:
        self.makers: dict[str, str] = {}
        """Who writes a state, by its address: `auto-blog#summary 2026-01-15`."""
        self.patterns: list[Pattern] = []

    def add_state(self, pipeline: PipelineDefinition, stage: str, entity: str, outputs: Iterable[str]) -> None:
        """Add what a stage writes for an entity."""
        maker = f"{pipeline.name}#{stage} {entity}".rstrip()
        self.makers |= {address: maker for address in outputs if "{" not in address}
        written = pipeline.stages[stage].outputs.values()
        self._add_patterns(each.pattern for each in written if each.kind != "file")

    def add_stage(self, pipeline: PipelineDefinition, stage: str) -> None:
        """Add a stage that may get entities that nobody knows yet."""
        self._add_patterns(pipeline.stages[stage].written)

    def _add_patterns(self, patterns: Iterable[Pattern]) -> None:
        self.patterns += [each for each in patterns if each not in self.patterns]

    def enter(self, snapshot: Snapshot) -> None:
        """Enter the states that are not there yet."""
        for address in self.makers:
            if address.endswith("/"):
                snapshot.tree.setdefault(address[:-1], {})
            elif snapshot.content_hash(address) is None:
                snapshot.changed(address, (0, 0, 0, 0), "")

    def input_of(self, paths: Sequence[str]) -> str | None:
        """The first of these inputs that will be written, or has something in it that will be."""
        for path in paths:
            if path in self.makers:
                return path
            if path.endswith("/") and (below := next((each for each in self.makers if each.startswith(path)), None)):
                return below
        return None
