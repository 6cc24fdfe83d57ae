"""`build`: produce what is stale, wave after wave, as runs on the engine.

One process does so at a time (the scanner's lease). It starts runs of independent nodes, one for each stage of an entity
whose inputs are all at hand; when a run has ended it publishes what was settled, writes down what failed, and looks what has
become ready by that. How many nodes a run has follows from how long the one before took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from ...errors import PipelineBusy
from ..looking import View
from ..staleness.units import Unit
from .work import Outcome, Runs, Tally

if TYPE_CHECKING:
    from ...runner import Engine
    from ..pipeline import Pipeline

FIRST_CHUNK = 16
LARGEST_CHUNK = 2_000
CHUNK_SECONDS = 0.5
"""A run should take about as long: its outputs are published together."""
IN_FLIGHT = 3
"""Runs at once, so that one slow entity does not keep the engine idle."""

Progress = Callable[["Tally"], None]


class BuildReport(NamedTuple):
    """What a build did."""

    pipeline: str
    produced: tuple[str, ...]
    """Stages of entities, `summary 2026-01-15`, whose states were written."""
    unchanged: tuple[str, ...]
    """Those of them that came out as they were: nothing below them ran because of them."""
    failed: Mapping[str, str]
    """What failed now, and why."""
    left: Mapping[str, str]
    """What is still not fresh, and its status."""
    runs: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        return not self.failed


def build(
    pipeline: Pipeline,
    targets: Iterable[str] = (),
    *,
    engine: Engine | str | None = None,
    force: bool = False,
    patience: float = 3_600.0,
    progress: Progress | None = None,
) -> BuildReport:
    """Produce what is missing or stale."""
    began = time.monotonic()
    given = tuple(targets)
    folders = pipeline.store.walk(pipeline.wanted)
    if not given and not force and nothing_to_do(pipeline, folders):
        return BuildReport(pipeline.name, (), (), {}, {}, (), time.monotonic() - began)
    with ExitStack() as stack:
        holds = stack.enter_context(pipeline.store.lease(pipeline.name, patience))
        runs = Runs(pipeline, engine, stack)
        finished = pipeline.store.finish(folders)
        if runs.recover([f"{folder.path}/{name}" for folder in folders for name in folder.temporary]) or finished:
            folders = pipeline.store.walk(pipeline.wanted)
        view = View(pipeline, folders=folders)
        scan = _Scan(pipeline, view, runs, holds, given, force=force, progress=progress)
        scan.work()
        if not given:
            save_verdict(pipeline, view)
    left = {
        unit.id: standing.status
        for unit in view.model.all_units()
        if (standing := view.model.standing(unit)).status != "fresh"
    }
    done = scan.outcome
    return BuildReport(
        pipeline.name,
        tuple(done.produced),
        tuple(done.unchanged),
        done.failed,
        left,
        tuple(runs.started),
        time.monotonic() - began,
    )


def nothing_to_do(pipeline: Pipeline, folders: list[object]) -> bool:
    """Whether nothing changed since a scan that left nothing to do: told by the cache, without a look at any state."""
    verdict = pipeline.store.cached().verdict
    if not verdict or verdict.get("stale") or verdict.get("fingerprint") != pipeline.fingerprint():
        return False
    due = verdict.get("dueAt")
    if due is not None and pipeline.clock() >= due:
        return False
    return bool(pipeline.store.unchanged(folders))


def save_verdict(pipeline: Pipeline, view: View) -> None:
    """Write the cache: hashes, and how everything stands."""
    status = view.status()
    due = [each.standing.due_at for each in status.states if each.standing.due_at is not None]
    pipeline.store.save_cache(
        view.snapshot,
        {
            "fingerprint": pipeline.fingerprint(),
            "stale": status.counts.get("stale", 0),
            "dueAt": min(due, default=None),
            "status": status.to_json(),
            "code": pipeline.code_stamps(),
        },
    )


class _Scan:
    """One pass: until nothing is ready."""

    def __init__(
        self,
        pipeline: Pipeline,
        view: View,
        runs: Runs,
        holds: Callable[[], bool],
        targets: tuple[str, ...],
        *,
        force: bool,
        progress: Progress | None,
    ) -> None:
        self.pipeline = pipeline
        self.view = view
        self.runs = runs
        self.holds = holds
        self.targets = targets
        self.outcome = Outcome()
        self.progress = progress
        self._forced = {unit.id for target in targets for unit in view.find(target)} if force else set()
        if force and not targets:
            self._forced = {unit.id for unit in view.model.all_units()}
        self._chosen = view.chosen(targets)
        self._ready: dict[str, dict[str, Unit]] = {}
        self._tried: set[str] = set()
        self._chunk = FIRST_CHUNK
        self._last = time.monotonic()

    def work(self) -> None:
        self._look(self.view.model.all_units())
        while True:
            if not self.holds():
                raise PipelineBusy(
                    f"pipeline {self.pipeline.name!r}: another process has taken over the scan, because this one was silent",
                    pipeline=self.pipeline.name,
                )
            self._start()
            self._tell()
            if not self.runs.open:
                return
            ended = self.runs.next()
            self._adapt(len(ended.units))
            touched = self.runs.settle(ended, self.view, self.outcome, self._forced)
            if touched is None:
                self.view.model = self.view.make_model()
                self._ready.clear()
                self._chosen = self.view.chosen(self.targets)
                self._look(self.view.model.all_units())
            else:
                self._look(
                    [*touched, *(unit for path in _outputs(ended.units) for unit in self.view.model.readers(path))]
                )

    def _start(self) -> None:
        """Start runs of what is ready, by priority."""
        while len(self.runs.open) < IN_FLIGHT:
            limited = {
                run.units[0].stage.name for run in self.runs.open if run.units[0].stage.limit or self.pipeline.limit
            }
            free = [name for name, units in self._ready.items() if units and name not in limited]
            if not free:
                return
            name = max(free, key=lambda each: self.pipeline.stages[each].priority)
            ready = self._ready[name]
            chunk = (
                sorted(ready.values(), key=lambda unit: unit.key)[: self._chunk]
                if len(ready) > self._chunk
                else list(ready.values())
            )
            for unit in chunk:
                del ready[unit.id]
                self._tried.add(unit.id)
            self.runs.start(chunk)

    def _adapt(self, units: int) -> None:
        """The size of the next run: what was done in the time that one should take."""
        now = time.monotonic()
        rate = units / max(now - self._last, 0.001)
        self._last = now
        self._chunk = int(max(FIRST_CHUNK // 2, min(LARGEST_CHUNK, self._chunk * 4, rate * CHUNK_SECONDS)))

    def _look(self, units: Iterable[Unit]) -> None:
        """Find what is ready: stale, wanted, not tried yet, and nothing above it is stale or being made."""
        model = self.view.model
        for unit in units:
            if unit.id in self._tried or (self._chosen is not None and id(unit) not in self._chosen):
                continue
            standing = model.standing(unit)
            ready = self._ready.setdefault(unit.stage.name, {})
            forced = unit.id in self._forced and standing.status != "blocked"
            if (
                (standing.status == "stale" or forced)
                and not any(cause.code == "upstream_stale" for cause in standing.causes)
                and not self._waits(unit)
            ):
                ready[unit.id] = unit
            else:
                ready.pop(unit.id, None)

    def _waits(self, unit: Unit) -> bool:
        """Whether something above it is being made, or will be because it is forced."""
        open_units = self.runs.open_ids
        for path in unit.input_paths():
            maker = self.view.model.producer.get(path)
            if maker is not None and (
                maker.id in open_units or (maker.id in self._forced and maker.id not in self._tried)
            ):
                return True
        return False

    def _tell(self) -> None:
        if self.progress is not None:
            waiting = sum(len(run.units) for run in self.runs.open)
            ready = sum(map(len, self._ready.values()))
            self.progress(Tally(len(self.outcome.produced), len(self.outcome.failed), waiting, ready))


def _outputs(units: Iterable[Unit]) -> list[str]:
    return [address for unit in units for address in unit.outputs.values()]
