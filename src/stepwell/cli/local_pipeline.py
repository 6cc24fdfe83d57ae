"""A local pipeline, with the same methods and JSON answers as one of a server (`client/pipelines.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..pipeline import Pipeline
    from ..settings import Settings


class LocalPipeline:
    def __init__(self, pipeline: Pipeline, settings: Settings) -> None:
        self.pipeline = pipeline
        self.name = pipeline.name
        self.stages = tuple(pipeline.stages)
        self._settings = settings
        self.invalidate = pipeline.invalidate
        self.accept = pipeline.accept
        self.retry = pipeline.retry
        self.clean = pipeline.clean

    def status(self, entity: str | None = None) -> Mapping[str, Any]:
        from ..pipeline.building.verdict import known_status

        known = known_status(self.pipeline) if entity is None else None
        return known or self.pipeline.view().status(entity).to_json()

    def states(self) -> Iterator[Mapping[str, Any]]:
        view = self.pipeline.view()
        return (state.to_json() for state in (*view.states(), *view.orphans()))

    def why(self, state: str) -> Mapping[str, Any]:
        return self.pipeline.why(state).to_json()

    def failures(self) -> Mapping[str, Mapping[str, Any]]:
        from ..pipeline.states.notes import read_failures

        return {unit: failure.to_json() for unit, failure in sorted(read_failures(self.pipeline.store.notes).items())}

    def plan(self, targets: Sequence[str] = (), *, force: bool = False) -> Mapping[str, Any]:
        return self.pipeline.plan(targets, force=force).to_json()

    def build(
        self,
        targets: Sequence[str] = (),
        *,
        force: bool = False,
        existing: bool = False,
        progress: Callable[[Mapping[str, int]], None] | None = None,
    ) -> Mapping[str, Any]:
        from ..pipeline.building.build_once import build_once

        tell = None if progress is None else lambda tally: progress(tally._asdict())
        own = {"engine": self._settings.store, "options": self._settings.for_workers}
        return build_once(self.pipeline, targets, force=force, existing=existing, progress=tell, **own).to_json()
