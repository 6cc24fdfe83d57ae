"""One pass over what is ready: runs are started, settled, and what became ready by that is started, until nothing is.

A run has independent nodes, one for each stage of an entity whose inputs are all at hand. How many follows from how long the
one before took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from heapq import nsmallest
from operator import attrgetter
from typing import TYPE_CHECKING

from ..looking import View
from ..staleness.standing import FRESH
from ..staleness.units import Unit
from .report import BuildTally, Outcome
from .work import Open, Runs

if TYPE_CHECKING:
    from ..definition import PipelineDefinition

FIRST_CHUNK = 16
LARGEST_CHUNK = 2_000
CHUNK_SECONDS = 1.0
"""How long a run should take: its outputs are published together."""
RUNS_AT_ONCE = 4
"""How many runs at once: one is being published, and one slow entity does not keep the engine idle."""

MANY, FAST_SECONDS, TOGETHER, TOGETHER_SECONDS = 200, 0.02, (50, 1_000), 0.5
"""If there are MANY units that take at most FAST_SECONDS each, a node has several (TOGETHER: at least and at most), enough for
TOGETHER_SECONDS. Otherwise the commits of the engine, each of which is synced, would take most of the time."""

Progress = Callable[[BuildTally], None]


class Wave:
    """One pass, until nothing is ready."""

    def __init__(
        self,
        pipeline: PipelineDefinition,
        view: View,
        runs: Runs,
        targets: tuple[str, ...],
        *,
        force: bool,
        progress: Progress | None,
    ) -> None:
        self.pipeline = pipeline
        self.view = view
        self.runs = runs
        self.targets = targets
        self.outcome = Outcome()
        self.progress = progress
        self._forced = {unit.id for unit in view.find_all(targets)} if force else set()
        if force and not targets:
            self._forced = {unit.id for unit in view.model.all_units()}
        self._chosen = view.chosen(targets)
        self._ready: dict[str, dict[str, Unit]] = {}
        self._tried: set[str] = set()
        self._chunk = FIRST_CHUNK
        self._last = time.monotonic()

    def work(self, units: Iterable[Unit] | None = None) -> None:
        """Build the stale ones among these units, or among all, and what becomes ready because of them."""
        with self.runs.publisher.during(self.view.snapshot.records, self._forced):
            self._look(self.view.model.all_units() if units is None else units)
            self._start()
            while self.runs.open:
                self._report_progress()
                ended = self.runs.next()
                self.runs.publisher.check_lease()
                if ended.published is None:  # it ended after an earlier pass was given up
                    ended = ended._replace(published=self.runs.publisher.publish(ended.results.states))
                self._settle(ended)
                self._adapt(len(ended.units))
                self._start()
            self._report_progress()

    def _settle(self, ended: Open) -> None:
        """Settle a run that ended, and find what is ready because of it."""
        self._tried -= ended.results.not_started
        if self.runs.settle(ended, self.view, self.outcome):
            self.view.model = self.view.make_model()
            self.runs.switch_model(self.view.model)
            self._ready.clear()
            self._chosen = self.view.chosen(self.targets)
            self._look(self.view.model.all_units())
        else:  # what stands further below cannot be ready yet
            readers = (unit for path in _outputs(ended.units) for unit in self.view.model.readers(path))
            self._look({id(unit): unit for unit in readers}.values())  # once each: what collects reads all of them
            self._look(unit for unit in ended.units if unit.id in ended.results.not_started)

    def _start(self) -> None:
        """Start runs of ready units, by priority."""
        while len(self.runs.open) < RUNS_AT_ONCE:
            limited = {
                run.units[0].stage.name for run in self.runs.open if run.units[0].stage.limit or self.pipeline.limit
            }
            free = [name for name, units in self._ready.items() if units and name not in limited]
            if not free:
                return
            name = max(free, key=lambda each: self.pipeline.stages[each].priority)
            ready = self._ready[name]
            chunk = nsmallest(self._chunk, ready.values(), key=attrgetter("key"))  # directories are listed in no order
            for unit in chunk:
                del ready[unit.id]
                self._tried.add(unit.id)
            self.runs.start(chunk, self._together(name, len(chunk)))

    def _together(self, stage: str, units: int) -> int:
        """How many units share a node: one, unless hundreds take almost no time each and need nothing of the engine."""
        given, signature = self.pipeline.stages[stage], self.pipeline.signatures[stage]
        seconds = self.runs.body_seconds
        if (
            units < MANY
            or seconds is None
            or seconds > FAST_SECONDS
            or given.options
            or given.limit
            or self.pipeline.limit
            or signature.is_async
            or "ctx" in signature.special
        ):
            return 1
        return int(max(TOGETHER[0], min(TOGETHER[1], TOGETHER_SECONDS / max(seconds, 0.000_1))))

    def _adapt(self, units: int) -> None:
        """The size of the next run: what was done in the time that one should take.

        Where bodies take no time, but the commits of a node for each of them do, it grows until nodes have several.
        """
        now = time.monotonic()
        wanted = units / max(now - self._last, 0.001) * CHUNK_SECONDS
        self._last = now
        is_fast = self.runs.body_seconds is not None and self.runs.body_seconds <= FAST_SECONDS
        least = 2 * MANY if is_fast else FIRST_CHUNK
        self._chunk = int(max(least, min(LARGEST_CHUNK, self._chunk * 4, wanted)))

    def _look(self, units: Iterable[Unit]) -> None:
        """Find ready units: stale, wanted, not tried yet, and nothing above them is stale or being made."""
        model = self.view.model
        for unit in units:
            if model.is_behind(unit):
                if ready := self._ready.get(unit.stage.name):
                    ready.pop(unit.id, None)
                continue
            standing = model.standing(unit)
            if standing is FRESH and not self._forced:
                continue
            if (
                unit.id in self._tried
                or unit.id in self.runs.paused
                or (self._chosen is not None and id(unit) not in self._chosen)
            ):
                continue
            ready = self._ready.setdefault(unit.stage.name, {})
            is_due = standing.status == "stale" or (unit.id in self._forced and standing.status != "blocked")
            if is_due and not (self._forced and self._waits(unit)):
                ready[unit.id] = unit
            else:
                ready.pop(unit.id, None)

    def _waits(self, unit: Unit) -> bool:
        """Whether something above it is being made, or will be because it is forced, even if it is fresh."""
        open_units = self.runs.open_ids
        for path in unit.input_paths():
            maker = self.view.model.producer.get(path)
            if maker is not None and (
                maker.id in open_units or (maker.id in self._forced and maker.id not in self._tried)
            ):
                return True
        return False

    def _report_progress(self) -> None:
        if self.progress is not None:
            waiting = sum(len(run.units) for run in self.runs.open)
            ready = sum(map(len, self._ready.values()))
            self.progress(BuildTally(len(self.outcome.produced), len(self.outcome.failed), waiting, ready))


def _outputs(units: Iterable[Unit]) -> list[str]:
    return [address for unit in units for address in unit.outputs.values()]
