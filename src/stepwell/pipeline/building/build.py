"""`Scanner`: finds what is stale and has it made, in one process at a time for each pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ..looking import View, no_collections
from ..registry import enter
from ..staleness.units import Unit
from ..states.listing import MANIFEST_FILES, Folder
from .recovery import Recovery
from .report import BuildReport, Outcome, StateEvent
from .verdict import Listed, concerned, list_everything, nothing_to_do, save_verdict
from .wave import Progress, Wave
from .work import Runs

if TYPE_CHECKING:
    from ...runner import Engine
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
        with self._lease() as holds:
            if number % 2 or pipeline.store.lease_number(pipeline.name) != number + 1:  # somebody else was scanning
                folders = pipeline.store.files.walk(pipeline.connections.wanted)
            recovery = Recovery(self._runs)
            folders = self._recovered(recovery, folders, number if number % 2 else None)
            part = (
                concerned(pipeline, folders)
                if once and not given and not everything and not recovery.has_failures
                else None
            )
            self.view = View(pipeline, folders=folders, only=part)
            recovery.note_failures(self.view)
            outcome = self._work(holds, given, force=force)
            self._conclude(existing=existing, saves=not given)
        return self._report(outcome, began)

    @contextmanager
    def _lease(self) -> Iterator[Callable[[], bool]]:
        """Scan under the lease, with this pipeline's code, whatever others of its name this process has."""
        with self.pipeline.store.lease(self.pipeline.name, self._patience) as holds:
            enter(self.pipeline)
            self._runs.scan_number = self.pipeline.store.lease_number(self.pipeline.name)
            yield holds

    def _recovered(self, recovery: Recovery, folders: list[Folder], died: int | None) -> list[Folder]:
        """The view after finishing what a crash interrupted."""
        store = self.pipeline.store
        drafts = [f"{folder.path}/{name}" for folder in folders for name in folder.temporary]
        finished = store.finish(folders)
        published = recovery.recover(drafts, died)
        return store.files.walk(self.pipeline.connections.wanted) if finished or published else folders

    def changed(self, paths: Iterable[str]) -> BuildReport:
        """Some paths changed: look at these, and make what is stale because of them."""
        began = time.monotonic()
        if self.view is None:
            return self.scan()
        touched = self._take_in(paths)
        stale = touched is None or any(self.view.model.standing(unit).status == "stale" for unit in touched)
        outcome = Outcome()
        if stale:
            with self._lease() as holds:
                outcome = self._work(holds, (), units=touched)
                self._conclude()
        return self._report(outcome, began, units=touched)

    def _take_in(self, paths: Iterable[str]) -> list[Unit] | None:
        """Update the view with what changed. Return the units whose standing may differ now, or None for all."""
        assert self.view is not None
        snapshot, store = self.view.snapshot, self.pipeline.store
        same: list[str] = []
        structural = False
        for path in self._files_of(paths):
            folder, _, name = path.rpartition("/")
            if name in MANIFEST_FILES:
                structural = self.view.reload_records(folder) or structural
            elif name[:1] == "." or not self.pipeline.connections.concerns(path):
                continue
            else:
                before = snapshot.tree.get(folder, {}).get(name)
                now = store.files.stamp(path)
                if before == now:
                    continue
                snapshot.changed(path, now)
                structural = structural or before is None or now is None
                same.append(path)
        if structural:
            self.view.model = self.view.make_model()
            return None
        return self.view.model.touch(same)

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
        holds: Callable[[], bool],
        targets: tuple[str, ...],
        *,
        force: bool = False,
        units: Sequence[Unit] | None = None,
    ) -> Outcome:
        assert self.view is not None
        wave = Wave(self.pipeline, self.view, self._runs, holds, targets, force=force, progress=self._progress)
        wave.work(units)
        if self._on_state is not None:
            for event in wave.outcome.events:
                self._on_state(event)
        return wave.outcome

    def _conclude(self, *, existing: bool = False, saves: bool = True) -> None:
        """Fire triggers, and save what is known for the next scan."""
        assert self.view is not None
        self._fire(existing=existing)
        with no_collections():
            self.pipeline.store.tidy()
            if saves:
                save_verdict(self.pipeline, self.view, self._runs.paused)

    def _fire(self, *, existing: bool = False) -> None:
        """Start what new states trigger. If nothing ran there are none, and no engine is opened."""
        if self.view is not None and (self.pipeline.triggers or self._runs.has_engine or existing):
            from .triggers import fire_stored_triggers, fire_triggers

            fire_triggers(self.pipeline, self.view, lambda: self._runs.engine, existing=existing)
            if self._runs.has_engine or existing:
                fire_stored_triggers(self.pipeline, self.view, self._runs.engine, existing=existing)

    def _report(self, outcome: Outcome, began: float, *, units: Sequence[Unit] | None = None) -> BuildReport:
        assert self.view is not None
        model = self.view.model
        paused = self._runs.paused
        left = {
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
