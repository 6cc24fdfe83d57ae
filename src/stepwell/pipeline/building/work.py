"""Runs of a pipeline: starting them for units, and publishing what they made when they have ended."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ...define import Builder
from ..staleness.judge import identity
from ..staleness.model import Model
from ..staleness.units import Unit
from ..states.notes import change_failures
from ..states.records import StageFailure
from .jobs import produce, produce_async
from .publisher import PublishedStates, Publisher
from .report import Outcome, StateEvent
from .results import Results, node_name, results_of

if TYPE_CHECKING:
    from ...engine import Engine, Run
    from ..definition import PipelineDefinition
    from ..looking import View


TAKEN = "its place is taken by something that nobody recorded; move that away, or `build --force` replaces it"


class Open(NamedTuple):
    """A run that was started for some units."""

    run: Run
    units: Sequence[Unit]
    began_ns: int
    results: Results = Results([], {}, 0.0)
    """When it has ended."""
    published: PublishedStates | None = None
    """What of it was published; None: nobody has tried yet."""


class Runs:
    """The runs of one build. The engine is opened for the first run."""

    def __init__(
        self, pipeline: PipelineDefinition, engine: Engine | str | None, stack: ExitStack, options: Mapping[str, Any]
    ) -> None:
        self.pipeline = pipeline
        self.publisher = Publisher(pipeline.store, pipeline.name)
        self.workflow = f"pipeline:{pipeline.name}"
        self.open: list[Open] = []
        self.open_ids: set[str] = set()
        self.started: list[str] = []
        self.scan_number = 0
        """The number of the lease under which runs are started."""
        self.paused: dict[str, str] = {}
        """Units in runs that somebody has paused, and those runs: nobody else makes them meanwhile."""
        self.tell_states = False
        """Whether somebody listens for each state."""
        self.body_seconds: float | None = None
        """How long an output took in the run that ended last."""
        self.before_start: Callable[[], None] = lambda: None
        """Called before a run is started, once there is an engine."""
        self.given = engine
        self._stack = stack
        self._options = options
        self._engine: Engine | None = None
        self._ended: queue.SimpleQueue[tuple[str, Results | BaseException, PublishedStates | None]] = (
            queue.SimpleQueue()
        )

    @property
    def has_engine(self) -> bool:
        """Whether an engine is open: one that was given, or one that something has needed."""
        return self._engine is not None or not (self.given is None or isinstance(self.given, str))

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            from ...engine import Engine

            if isinstance(self.given, Engine):
                self._engine = self.given
            else:
                self._engine = self._stack.enter_context(Engine(self.given, **self._options))
            self.give()
        return self._engine

    def give(self) -> None:
        """Give the engine, if it is open, this pipeline, in the place of an older one with other code."""
        if self._engine is not None:
            self._engine.parts.code.own_jobs().add(self.pipeline)

    def open_engine(self) -> None:
        """Open the engine, if that has not been done."""
        assert self.engine is not None

    def start(self, units: Sequence[Unit], together: int = 1) -> None:
        """Start a run with one node for each unit, or for so many `together`."""
        stage = units[0].stage
        self.pipeline.code.keep(stage.name)
        self.open_engine()
        self.before_start()
        run = self.engine.start(self.graph_of(units, together), priority=stage.priority, tags=self.tags(stage.name))
        self.started.append(run.id)
        self.open.append(Open(run, units, time.time_ns()))
        self.open_ids |= {unit.id for unit in units}
        threading.Thread(target=self._wait, args=(run,), name="stepwell-pipeline-run", daemon=True).start()

    def graph_of(self, units: Sequence[Unit], together: int = 1) -> Builder:
        stage = units[0].stage
        pipeline = self.pipeline
        builder = Builder(self.workflow, on_failure="finish")
        alike = {"home": pipeline.home, "pipeline": pipeline.name, "root": pipeline.store.root_id, "stage": stage.name}
        job = produce_async if pipeline.signatures[stage.name].is_async else produce
        limit = min(stage.limit or len(units), pipeline.limit or len(units))

        def args(*chosen: Unit) -> dict[str, Any]:
            """What the nodes for these units get."""
            inputs = ({name: list(paths) for name, paths in unit.inputs.items()} for unit in chosen)
            return {**alike, "units": [[list(unit.key), paths] for unit, paths in zip(chosen, inputs, strict=True)]}

        if together > 1:
            batches = [units[start : start + together] for start in range(0, len(units), together)]
            builder.fan_out(batches, job=job, name=_ids_of, args=lambda batch: args(*batch))
        before: Sequence[str] = ()
        for start in () if together > 1 else range(0, len(units), limit):
            # With a limit the nodes are in lanes, each of which runs one after the other.
            members = units[start : start + limit]
            if not before:
                before = builder.fan_out(
                    members, job=job, name=lambda unit: node_name(unit.id), args=args, depends_on=None, **stage.options
                )
                continue
            before = [
                builder.node(node_name(unit.id), job=job, args=args(unit), depends_on=above, **stage.options)
                for unit, above in zip(members, before, strict=False)
            ]
        return builder

    def tags(self, stage: str) -> dict[str, str]:
        """The tags of a run: its stage for people, the rest for recovery after a crash."""
        current = self.pipeline.code.current(stage)
        made_of = sha256(f"{current.code_hash}:{current.config_hash}".encode()).hexdigest()[:16]
        return {**self.own_tag, "stage": stage, "scan": str(self.scan_number), "code": made_of}

    @property
    def own_tag(self) -> dict[str, str]:
        """The tags of all runs of this root: another root may have a pipeline of the same name."""
        return {"root": self.pipeline.store.root_id}

    def _wait(self, run: Run) -> None:
        """Wait for a run, then sync and publish what it made, while others are settled."""
        try:
            run.wait()
            results = results_of(run, self.pipeline.store.drafts)
            self._ended.put((run.id, results, self.publisher.publish(results.states)))
        except BaseException as error:
            self._ended.put((run.id, error, None))

    def next(self) -> Open:
        """Return the next run that has ended, with its drafts synced."""
        run_id, results, published = self._ended.get()
        ended = next(each for each in self.open if each.run.id == run_id)
        self.open.remove(ended)
        self.open_ids -= {unit.id for unit in ended.units}
        if isinstance(results, BaseException):
            raise results
        if results.states:
            self.body_seconds = results.seconds / len(results.states)
        return ended._replace(results=results, published=published)

    def settle(self, ended: Open, view: View, outcome: Outcome) -> bool:
        """Enter what was published, write down what failed. True: any unit may stand otherwise now, and the model has to be
        made anew; else only these and what is below them.
        """
        (states, failed, *_), published = ended.results, ended.published
        assert published is not None
        records = view.snapshot.records
        before = {
            address: former.content_hash for address in published.states if (former := records.get(address)) is not None
        }
        ids = {each.unit for each in states}
        if ended.run.status.paused:
            self.paused |= {
                unit.id: ended.run.id for unit in ended.units if unit.id not in ids and unit.id not in failed
            }
        failures: dict[str, StageFailure | None] = {}
        for unit in ended.units if failed else ():
            if unit.id in failed:
                failures[unit.id] = self.failure(unit, view, failed[unit.id], ended.run.id)
                outcome.failed[unit.id] = failed[unit.id][1]
        done = [unit for unit in ended.units if unit.id in ids and unit.id not in failed]
        if view.snapshot.failures:
            failures |= {unit.id: None for unit in done if unit.id in view.snapshot.failures}
        whole = self.publisher.enter(done, published, view.snapshot, ended.began_ns)
        outcome.produced += [unit.id for unit in whole]
        if self.tell_states:
            outcome.events += [event for unit in whole for event in self._events(unit, published)]
        for unit in whole if before else ():
            if all(before.get(address) == records[address].content_hash for address in unit.outputs.values()):
                outcome.unchanged.append(unit.id)
        self.note(failures, view)
        self._note_refused(done, published, view, ended.run.id, outcome)
        if states and any(output.kind != "file" for output in ended.units[0].stage.outputs.values()):
            return True
        view.model.touch([address for unit in ended.units for address in unit.outputs.values()])
        return False

    def _note_refused(
        self, units: Sequence[Unit], published: PublishedStates, view: View, run_id: str, outcome: Outcome
    ) -> None:
        """Have what could not be published back off, unless its status says that somebody has to decide about a file."""
        refused = set(published.refused)
        for unit in units if refused else ():
            address = next((each for each in unit.outputs.values() if each in refused), None)
            view.model.touch(unit.outputs.values())
            if address is not None and view.model.standing(unit).status != "unrecorded":
                outcome.failed[unit.id] = problem = f"{address}: {TAKEN}"
                self.note({unit.id: self.failure(unit, view, ("UnsafePath", problem), run_id)}, view)

    def switch_model(self, model: Model) -> None:
        """Settle the units of a new model when the open runs end: nobody looks at those of the former one any more."""
        self.open = [
            run._replace(units=[model.units[unit.stage.name].get(unit.key, unit) for unit in run.units])
            for run in self.open
        ]

    def note(self, failures: Mapping[str, StageFailure | None], view: View) -> None:
        """Record what failed; None removes a failure."""
        if failures:
            change_failures(self.pipeline.store.notes, self.pipeline.name, failures)
        for key, failure in failures.items():
            if failure is None:
                view.snapshot.failures.pop(key, None)
            else:
                view.snapshot.failures[key] = failure

    def _events(self, unit: Unit, published: PublishedStates) -> list[StateEvent]:
        return [
            StateEvent(self.pipeline.name, unit.stage.name, unit.entity, address, record.code_hash, record.content_hash)
            for address in unit.outputs.values()
            for record, _ in [published.states[address]]
        ]

    def failure(self, unit: Unit, view: View, error: tuple[str, str], run_id: str) -> StageFailure:
        """Count one more failure, and set when it is tried again: by the schedule, as long as nothing else changed."""
        what = identity(view.model.current(unit.stage.name), view.model.input_hashes(unit))
        former = view.snapshot.failures.get(unit.id)
        again = former is not None and former.identity == what
        now = self.pipeline.clock()
        attempts = former.attempts + 1 if former is not None and again else 1
        schedule = unit.stage.back_off
        due = now + schedule[attempts - 1] if attempts <= len(schedule) else None
        first = former.first_failed_at if former is not None and again else now
        return StageFailure(error[1], error[0], attempts, first, now, due, what, run_id)


def _ids_of(units: Sequence[Unit]) -> str:
    return node_name(f"{units[0].id} … {units[-1].entity}" if len(units) > 1 else units[0].id)
