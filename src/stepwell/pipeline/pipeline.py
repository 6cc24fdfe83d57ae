"""`Pipeline`: stages that make states from states, and keep them up to date."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .definition import PipelineDefinition

if TYPE_CHECKING:
    from ..runner import Engine
    from .building.report import BuildReport
    from .looking import Explanation, PipelineStatus, Plan, View


class Pipeline(PipelineDefinition):
    """Stages that make states from states. `build` makes what is missing or stale, and leaves the rest alone.

        blog = Pipeline("auto-blog", root="output")

        @blog.stage(input="daily/{date}/*.txt", output="daily/{date}/summary.txt", min_size=500)
        def summary(entity, files: list[str]) -> str: ...

        @blog.stage(input="daily/{date}/summary.txt", output="final/{date}-digest.md")
        def digest(entity, summary: str) -> str: ...

        blog.build()

    `root` is where states are: a directory, or a database, as in `sqlite:///states.db`. Paths are relative to it.
    """

    def view(self) -> View:
        """The present status of all states."""
        from .looking import View

        return View(self)

    def status(self) -> PipelineStatus:
        return self.view().status()

    def why(self, state: str) -> Explanation:
        """Explain the status of a state, named by its path."""
        return self.view().why(state)

    def plan(self, targets: Iterable[str] = (), *, force: bool = False) -> Plan:
        """What `build` will run, and what it may run because it is below that."""
        return self.view().plan(targets, force=force)

    def build(
        self,
        targets: Iterable[str] = (),
        *,
        engine: Engine | str | None = None,
        force: bool = False,
        patience: float = 3_600.0,
        existing: bool = False,
    ) -> BuildReport:
        """Make what is missing or stale: all of it, or what `targets` (states, entities, stages) need.

        With `existing`, triggers also fire for states older than the trigger, once for each content as always.
        """
        from .building.build_once import build_once

        return build_once(self, targets, engine=engine, force=force, patience=patience, existing=existing)

    def accept(self, *targets: str) -> list[str]:
        """Take states as they are, also those that nobody recorded. Returns their addresses."""
        from .steering import accept

        return accept(self, targets)

    def invalidate(self, *targets: str, stage: str | None = None) -> list[str]:
        """Mark states as stale, so that they are made again. Returns their addresses."""
        from .steering import invalidate

        return invalidate(self, targets, stage=stage)

    def retry(self, *targets: str) -> list[str]:
        """Let the next scan try failed states again: all of them, or those named."""
        from .steering import retry

        return retry(self, targets)

    def clean(self, *, dry_run: bool = False) -> list[str]:
        """Remove states whose source is gone."""
        from .steering import clean

        return clean(self, dry_run=dry_run)

    def put(self, path: str, content: bytes) -> None:
        """Write a source into the store of states."""
        from .steering import put

        put(self, path, content)
