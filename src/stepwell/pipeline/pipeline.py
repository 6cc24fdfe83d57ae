"""`Pipeline`: stages that make states from states, and keep them up to date."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..base.clock import SECONDS_NEEDED, Duration, in_seconds, is_seconds, utc_text
from ..base.words import shown
from ..errors import InputError
from .definition import PipelineDefinition
from .patterns.paths import checked_path
from .states.notes import change_failures, read_failures
from .states.records import MANY_INPUTS, Record, StageFailure, inputs_hash

if TYPE_CHECKING:
    from ..engine import Engine
    from .building.report import BuildReport
    from .looking import BuildPlan, Explanation, PipelineStatus, View
    from .staleness.units import Unit


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

    def plan(self, *targets: str, force: bool = False, after: Iterable[PipelineDefinition] = ()) -> BuildPlan:
        """What `build` will run, and what it may run because it is below that: `after` other pipelines were built."""
        from .connected import share_types
        from .foreseen import Foreseen
        from .looking import View

        foreseen, others = Foreseen(), list(after)
        share_types([self, *others])
        for pipeline in others:
            if pipeline.root == self.root:
                plan = View(pipeline, foreseen=foreseen).plan(targets, force=force)
                for state in (*plan.will_run, *plan.may_run):
                    foreseen.add_state(pipeline, state.stage, state.entity, state.outputs)
                for stage in plan.may_appear:
                    foreseen.add_stage(pipeline, stage)
        return View(self, foreseen=foreseen).plan(targets, force=force)

    def build(
        self,
        *targets: str,
        engine: Engine | str | None = None,
        force: bool = False,
        patience: Duration = 3_600.0,
        existing: bool = False,
    ) -> BuildReport:
        """Make what is missing or stale: all of it, or what `targets` (states, entities, stages) need.

        While another process builds it, wait up to `patience`. With `existing`, triggers also fire for states older than
        the trigger, once for each content as always.
        """
        from .building.build_once import build_once

        seconds = in_seconds(patience)
        if not is_seconds(seconds):
            raise InputError(f"patience={shown(patience)}: expected {SECONDS_NEEDED}")
        return build_once(self, targets, engine=engine, force=force, patience=seconds, existing=existing)

    def accept(self, *targets: str) -> list[str]:
        """Record states as made by the present code from the present inputs, also those that nobody recorded. Returns their
        addresses.
        """
        view = self.view()
        units = view.find_all(targets)
        changes = {
            address: record
            for unit in units
            if view.model.standing(unit).status != "fresh"
            for name, address in unit.outputs.items()
            if (record := _as_it_is(view, unit, name)) is not None
        }
        if changes:
            self.store.records.change(changes)
            change_failures(self.store.notes, self.name, {unit.id: None for unit in units})
        return list(changes)

    def invalidate(self, *targets: str, stage: str | None = None) -> list[str]:
        """Mark states as stale, so that they are made again. Those that nobody recorded may then be replaced, too. Returns
        their addresses.
        """
        view = self.view()
        if stage is not None and stage not in self.stages:
            raise InputError(f"pipeline {self.name!r} has no stage {stage!r}; it has {', '.join(self.stages)}")
        reason = f"somebody invalidated it at {utc_text(time.time())}"
        changes = {
            address: record._replace(stale=reason)
            for unit in view.find_all(targets)
            if stage in (None, unit.stage.name)
            for name, address in unit.outputs.items()
            if (record := view.snapshot.records.get(address) or _as_it_is(view, unit, name)) is not None
        }
        if changes:
            self.store.records.change(changes)
        return list(changes)

    def retry(self, *targets: str) -> list[str]:
        """Let the next scan try failed states again, whatever their back-off: all of them, or those named."""
        failures = read_failures(self.store.notes, self.name)
        wanted = {unit.id for unit in self.view().find_all(targets)} if targets else set(failures)
        changed: dict[str, StageFailure | None] = {name: None for name in failures if name in wanted}
        if changed:
            change_failures(self.store.notes, self.name, changed)
        return list(changed)

    def clean(self, *, dry_run: bool = False) -> list[str]:
        """Remove states whose source is gone."""
        removed = list(self.view().model.orphans)
        if removed and not dry_run:
            self.store.remove(removed)
        return removed

    def put(self, path: str, content: bytes) -> None:
        """Write a source into the store of states."""
        checked_path(path)
        for stage in self.stages.values():
            if any(pattern.covers(path) for pattern in stage.written):
                raise InputError(
                    f"{path} is made by stage {stage.name!r}; put sources, and let the stages make the rest"
                )
        self.store.files.put(path, content)


def _as_it_is(view: View, unit: Unit, name: str) -> Record | None:
    """The record of an output as if the present code had made it from the present inputs."""
    address, kind = unit.outputs[name], unit.stage.outputs[name].kind
    digest = view.model.content_of(address) if kind != "members" else None
    if digest is None:
        return None
    members = None
    if kind == "directory":
        members = {each: view.snapshot.content_hash(address + each) or "" for each in view.model.files_below(address)}
    current = view.pipeline.code.current(unit.stage.name)
    inputs = {path: each or "" for path, each in view.model.input_hashes(unit).items()}
    return Record(
        current.code_hash, current.config_hash, digest, inputs_hash(inputs), utc_text(time.time()),
        f"{view.pipeline.name}#{unit.stage.name}", unit.entity, inputs if len(inputs) <= MANY_INPUTS else {}, members,
        current.check_hash,
    )  # fmt: skip
