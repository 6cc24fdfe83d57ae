"""`Scanner`: finds what is stale and has it made, in one process at a time for each pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from ...errors import DefinitionError, PipelineBusy
from ..looking import View
from ..staleness.units import Unit
from ..states.listing import MANIFEST_FILES, Folder
from ..states.notes import note_types, noted_types
from .recovery import Recovery
from .report import BuildReport, Outcome, StateEvent
from .triggers import BuildTriggers
from .verdict import Listed, concerned, list_everything, nothing_to_do, save_verdict
from .wave import Progress, Wave
from .work import Runs

if TYPE_CHECKING:
    from ...answers.staleness import Status
    from ...engine import Engine
    from ..definition import PipelineDefinition


class Scanner:
    """Keeps the states of one pipeline up to date, by full scans and after single paths changed."""

    def __init__(
        self,
        pipeline: PipelineDefinition,
        engine: Engine | str | None = None,
        *,
        patience: float = 3_600.0,
        progress: Progress | None = None,
        options: Mapping[str, Any] | None = None,
        on_state: Callable[[StateEvent], None] | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.view: View | None = None
        """The status of everything at the last look."""
        self._stack = ExitStack()
        self._runs = Runs(pipeline, engine, self._stack, options or {})
        self._patience = patience
        self._progress = progress
        self._on_state = on_state
        self._runs.tell_states = on_state is not None
        self._triggers = BuildTriggers(pipeline, self._runs)
        self._has_baselines = False
        """Whether those of all triggers were noted in this pass."""
        self._has_baselines_beside = False
        self._runs.before_start = self._note_baselines_before_runs

    def __enter__(self) -> Scanner:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def scan(
        self,
        targets: Iterable[str] = (),
        *,
        force: bool = False,
        listed: Listed | None = None,
        once: bool = False,
        existing: bool = False,
    ) -> BuildReport:
        """Look at everything there is, unless it was `listed` a moment ago, and produce what is stale.

        What is done `once` needs no view of what has not changed. `existing`: triggers fire for what was there before them.
        """
        began = time.monotonic()
        pipeline, given = self.pipeline, tuple(targets)
        number, folders = listed = listed or list_everything(pipeline)
        everything = force or existing
        if not given and not everything and self.view is None and (done := nothing_to_do(pipeline, listed)):
            return done._replace(seconds=time.monotonic() - began)
        with self._lease():
            if number % 2 or pipeline.store.lease_number(pipeline.name) != number + 1:  # somebody else was scanning
                folders = pipeline.store.files.walk(pipeline.wanted)
            recovery = Recovery(self._runs)
            folders = self._recovered(recovery, folders, number if number % 2 else None)
            part = (
                concerned(pipeline, folders)
                if once and not given and not everything and not recovery.has_failures
                else None
            )
            self.view = View(pipeline, folders=folders, only=part)
            recovery.note_failures(self.view)
            if pipeline.store.cache.read().verdict.get("unfired"):
                self._runs.open_engine()
            self._note_types()
            self._note_baselines()
            outcome = self._work(given, force=force)
            self._conclude(outcome, existing=existing, saves=not given)
        return self._report(outcome, began)

    @contextmanager
    def _lease(self) -> Iterator[None]:
        """Scan under the lease, with this pipeline's code, whatever others of its name this process has."""
        with self.pipeline.store.lease(self.pipeline.name, self._patience) as holds:
            self._runs.give()
            self._runs.publisher.holds_lease = holds
            self._runs.scan_number = self.pipeline.store.lease_number(self.pipeline.name)
            yield

    def _recovered(self, recovery: Recovery, folders: list[Folder], died: int | None) -> list[Folder]:
        """The view after finishing what a crash interrupted."""
        store = self.pipeline.store
        drafts = [f"{folder.path}/{name}" for folder in folders for name in folder.temporary]
        finished = store.finish(folders)
        published = recovery.recover(drafts, died)
        return store.files.walk(self.pipeline.wanted) if finished or published else folders

    def changed(self, paths: Iterable[str]) -> BuildReport:
        """Some paths changed: look at these, and make what is stale because of them."""
        began = time.monotonic()
        if self.view is None:
            return self.scan()
        self.pipeline.look_for_types()
        if self.view.types is not self.pipeline.other_types:
            return self.scan()
        paths = list(paths)
        touched = self._take_in(paths)
        stale = touched is None or any(self.view.model.standing(unit).status == "stale" for unit in touched)
        outcome = Outcome()
        if stale or any(map(self.pipeline.triggered_by, paths)):
            with self._lease():
                self._note_baselines()
                outcome = self._work((), units=touched)
                self._conclude(outcome)
        return self._report(outcome, began, units=touched)

    def _take_in(self, paths: Iterable[str]) -> list[Unit] | None:
        """Update the view with what changed. Return the units whose standing may differ now, or None for all."""
        assert self.view is not None
        snapshot, store = self.view.snapshot, self.pipeline.store
        same: list[str] = []
        structural = False
        given = list(paths)
        for path in self._files_of(given):
            folder, _, name = path.rpartition("/")
            if name in MANIFEST_FILES:
                structural = self.view.reload_records(folder) or structural
            elif name[:1] == "." or not self.pipeline.concerns(path):
                continue
            else:
                before = snapshot.tree.get(folder, {}).get(name)
                now = store.files.stamp(path)
                if before == now:
                    continue
                snapshot.changed(path, now)
                structural = structural or before is None or now is None
                same.append(path)
                if self.pipeline.triggered_by(
                    path
                ):  # another pipeline may have made it, or the directory that it is in
                    above = folder.split("/")
                    for depth in range(len(above) + 1):
                        self.view.reload_records("/".join(above[:depth]))
        folders = {*given, *(path.rpartition("/")[0] for path in same)} - {""}
        if self._take_in_folders(folders) or structural:
            self.view.model = self.view.make_model()
            return None
        return self.view.model.touch(same)

    def _take_in_folders(self, paths: Iterable[str]) -> bool:
        """Enter those of these directories that are there, with all above them, and remove the others. Return whether any was
        new or is gone: a directory can be an entity without having a file.
        """
        assert self.view is not None
        tree = self.view.snapshot.tree
        before = set(tree)
        for path in paths:
            names = path.split("/")
            if self.pipeline.store.files.exists(f"{path}/"):
                above = (
                    "/".join(names[:depth]) for depth in range(1, len(names) + 1) if self.pipeline.wanted(names[:depth])
                )
                tree.update({folder: {} for folder in above if folder not in tree})
            else:
                for folder in [each for each in tree if each == path or each.startswith(f"{path}/")]:
                    del tree[folder]
        return tree.keys() != before

    def _files_of(self, paths: Iterable[str]) -> list[str]:
        """The files among these paths, and of a directory that came or went all that are or were in it: of a new directory the
        system tells nothing before it is watched.
        """
        assert self.view is not None
        tree = self.view.snapshot.tree
        found: list[str] = []
        for path in paths:
            below = self.pipeline.store.files.below(path)
            known = [folder for folder in tree if folder == path or folder.startswith(f"{path}/")]
            if below is None and not known:
                found.append(path)
                continue
            found += below or ()
            found += [
                f"{folder}/{name}" for folder in known for name in tree[folder] if f"{folder}/{name}" not in found
            ]
        return list(dict.fromkeys(found))

    def _work(
        self,
        targets: tuple[str, ...],
        *,
        force: bool = False,
        units: Sequence[Unit] | None = None,
    ) -> Outcome:
        assert self.view is not None
        wave = Wave(self.pipeline, self.view, self._runs, targets, force=force, progress=self._progress)
        wave.work(units)
        if self._on_state is not None:
            for event in wave.outcome.events:
                self._on_state(event)
        return wave.outcome

    def _note_types(self) -> None:
        """Note which states this pipeline makes, and those given together with it that were never built: a worker elsewhere
        finds states by type as this process does.
        """
        pipeline, notes = self.pipeline, self.pipeline.store.notes
        noted = noted_types(notes)
        for each in (pipeline, *pipeline.beside.values()):
            if each is pipeline or each.name not in noted:
                note_types(notes, each.name, each.own_types())

    def _note_baselines(self) -> None:
        """Note what was there before triggers, before anything is built. Stored ones are known once there is an engine."""
        assert self.view is not None
        self._has_baselines = self._runs.has_engine
        self._has_baselines_beside = False
        self._triggers.note_baselines(self.view)

    def _note_baselines_before_runs(self) -> None:
        if not self._has_baselines:
            self._note_baselines()
        if not self._has_baselines_beside:
            self._has_baselines_beside = True
            for each in list(self.pipeline.beside.values()):
                self._note_baselines_of(each)

    def _note_baselines_of(self, other: PipelineDefinition) -> None:
        """What is made now is new for the triggers of a pipeline that is given together with this one and built later. One that
        is just being built has noted its baselines, and one that cannot be read says so when it is built.
        """
        triggers = BuildTriggers(other, self._runs)
        with suppress(PipelineBusy, DefinitionError):
            if triggers.without_baseline():
                with other.store.lease(other.name, 0.0):
                    triggers.note_baselines(View(other))

    def _conclude(self, outcome: Outcome, *, existing: bool = False, saves: bool = True) -> None:
        """Fire triggers, and save what is known for the next scan."""
        assert self.view is not None
        if existing:
            self._runs.open_engine()
        self._triggers.fire(self.view, existing=existing)
        outcome.failed.update(self._triggers.problems)
        self.pipeline.store.tidy()
        if saves:
            save_verdict(self.pipeline, self.view, self._runs.paused, self._triggers.problems)

    def _report(self, outcome: Outcome, began: float, *, units: Sequence[Unit] | None = None) -> BuildReport:
        assert self.view is not None
        model = self.view.model
        paused = self._runs.paused
        left: dict[str, Status | Literal["paused"]] = {
            unit.id: "paused" if unit.id in paused else standing.status
            for unit in (model.all_units() if units is None else units)
            if (standing := model.standing(unit)).status != "fresh"
        }
        runs = tuple(self._runs.started)
        self._runs.started.clear()
        return BuildReport(
            self.pipeline.name,
            tuple(outcome.produced),
            tuple(outcome.unchanged),
            outcome.failed,
            left,
            runs,
            time.monotonic() - began,
        )

    def due_at(self) -> float | None:
        """When something becomes stale by itself: a back-off ends, or a file was quiet for long enough."""
        if self.view is None:
            return None
        model = self.view.model
        return min(
            (due for unit in model.all_units() if (due := model.standing(unit).due_at) is not None), default=None
        )
