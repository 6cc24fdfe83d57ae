"""Fires triggers for states: a workflow is started once for each trigger, state and content.

Pipelines declare triggers (`Pipeline.trigger`, `state_trigger`), and an engine's store has others (`Trigger(state=...)`).
Both are fired here, by one rule: what was fresh before the first build that knows of a trigger is its baseline, which starts
nothing.

The baseline and what was started are written down beside the states, and the id of each run is made of trigger, state and
content: a crash between the two starts nothing twice and forgets nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.words import one_line
from ...errors import DefinitionError, StoreError
from ...triggers.filters import passes
from ...triggers.state import TriggerState
from ..looking import View
from ..staleness.standing import FRESH
from ..states.records import Record
from ..trigger import Watched, check_filter

if TYPE_CHECKING:
    from ...triggers.definition import Trigger
    from ...triggers.kinds import WantedStates
    from ..definition import PipelineDefinition
    from .work import Runs

SEEN = "seen"
"""Marks the states of a baseline, and the baseline itself."""


class State(NamedTuple):
    address: str
    record: Record | None
    content: str
    values: Mapping[str, str]
    """Of the variables in its path."""


class Subscription(NamedTuple):
    """A trigger while a pipeline is built."""

    key: str
    """Of its marks, and of its runs."""
    since: str
    """Identifies its baseline: with another one it is made anew."""
    trigger: Trigger
    states: WantedStates
    state: TriggerState
    target: Any = None
    """What it starts, if its pipeline has that as an object."""


class BuildTriggers:
    """The triggers that concern one pipeline, while it is built."""

    def __init__(self, pipeline: PipelineDefinition, runs: Runs) -> None:
        self._pipeline = pipeline
        self._runs = runs
        self.problems: dict[str, str] = {}
        """Triggers that could not do their work in the latest pass, and why."""

    def without_baseline(self) -> list[Subscription]:
        """The triggers that no build has known yet."""
        subscriptions = self._subscriptions()
        marks = self._pipeline.store.notes.read("triggers") if subscriptions else {}
        return [each for each in subscriptions if marks.get(f"{each.key} {SEEN}") != each.since]

    def note_baselines(self, view: View) -> None:
        """Before anything is built: note the fresh states for each trigger that has no baseline yet."""
        for each in self.without_baseline():
            marks = self._pipeline.store.notes.read("triggers")
            noted = {f"{each.key} {SEEN}": each.since}
            if not each.states.existing:
                if view.snapshot.is_partial:
                    view = View(self._pipeline)
                for state in self._states(view, self._pipeline.watched(each.states.wanted)):
                    key = f"{each.key} {state.address}"
                    if marks.get(key) != state.content:
                        noted[key] = f"{SEEN} {state.content}"
            self._pipeline.store.notes.change("triggers", noted)

    def fire(self, view: View, *, existing: bool) -> list[str]:
        """Start what new states trigger, with `existing` also for those of baselines. Return the ids of the runs.

        A trigger that cannot be fired is a problem of its own: the others are fired all the same.
        """
        self.problems.clear()
        started: list[str] = []
        subscriptions = self._subscriptions()
        marks = self._pipeline.store.notes.read("triggers") if subscriptions else {}
        for each in subscriptions:
            all_states = existing or each.states.existing
            fired: dict[str, str] = {}
            for state in self._states(view, watched := self._pipeline.watched(each.states.wanted)):
                key = f"{each.key} {state.address}"
                known = marks.get(key)
                if known == state.content or (known == f"{SEEN} {state.content}" and not all_states):
                    continue
                try:
                    started += self._fire(each, state, watched.kind)
                except StoreError:
                    raise
                except Exception as error:  # of a filter or a function: whatever it is, it concerns this trigger alone
                    self._note_problem(each.trigger.name, f"{state.address}: {one_line(str(error))}")
                    continue
                fired[key] = state.content
            if fired:
                self._pipeline.store.notes.change("triggers", fired)
        return started

    def _fire(self, subscription: Subscription, state: State, kind: str) -> list[str]:
        """Start the workflow of a trigger for a state, unless its filter leaves it out."""
        event = {
            "entity": "/".join(state.values.values()),
            "state_type": kind,
            "path": state.address,
            "code_hash": state.record.code_hash if state.record is not None else "",
            "content_hash": state.content,
        }
        current = self._pipeline.code.current(kind).code_hash if kind in self._pipeline.stages else event["code_hash"]
        if not passes(subscription.states.condition, event, current, state.values):
            return []
        root = self._pipeline.store.root_id
        key = sha256("\0".join((root, subscription.key, state.address, state.content)).encode()).hexdigest()[:32]
        fire = self._runs.engine.triggers.fire_for_state
        return [fire(subscription.trigger, subscription.state, key, event, subscription.target)]

    def _note_problem(self, trigger: str, problem: str) -> None:
        self.problems.setdefault(f"trigger {trigger}", f"pipeline {self._pipeline.name!r}: {problem}")

    def _check_reachable(self, state: str) -> None:
        """Refuse a stored trigger that can never fire: its pipeline has no such states."""
        pipeline = self._pipeline
        awaited = pipeline.watched(state).patterns
        if not any(each.overlaps(known) for each in awaited for known in pipeline.connections.patterns):
            raise DefinitionError(f"no stage reads or makes {state!r}; the stages are {', '.join(pipeline.stages)}")

    def _subscriptions(self) -> list[Subscription]:
        """The declared triggers and, once there is an engine, those of its store."""
        name = self._pipeline.name
        subscriptions: list[Subscription] = []
        for own in self._pipeline.triggers.values():
            if (states := own.trigger.form.awaited) is not None:
                state = TriggerState(0, own.trigger.digest, 0, 0, 0)
                key = f"{name}/{own.trigger.name}"
                subscriptions.append(Subscription(key, states.wanted, own.trigger, states, state, own.target))
        for stored in self._runs.engine.triggers.all() if self._runs.has_engine else ():
            states = stored.trigger.form.awaited
            if states is None or states.pipeline != name or stored.paused:
                continue
            try:
                if states.filter is not None:
                    check_filter(stored.name, states.filter, states.wanted, self._pipeline.stages)
                self._check_reachable(states.wanted)
            except DefinitionError as error:
                self._note_problem(stored.name, one_line(str(error)))
                continue
            since = str(stored.state.since)
            subscriptions.append(Subscription(f"{name}/@{stored.name}", since, stored.trigger, states, stored.state))
        return subscriptions

    def _states(self, view: View, watched: Watched) -> Iterator[State]:
        """The states that a trigger waits for: those that are fresh, and files that no stage makes."""
        model, snapshot = view.model, view.snapshot
        for folder, names in snapshot.tree.items():
            paths = [f"{folder}/{name}" if folder else name for name in names if name[0] != "."]
            for address in (f"{folder}/", *paths) if folder else paths:
                values = watched.match(address)
                if values is None:
                    continue
                unit = model.producer.get(address)
                if unit is not None and model.standing(unit) is not FRESH:
                    continue
                record = snapshot.records.get(address)
                if record is None and unit is not None:  # one file of a state of several
                    record = next((r for each in unit.outputs.values() if (r := snapshot.records.get(each))), None)
                    content = snapshot.content_hash(address)
                else:
                    content = model.content_of(address)
                    if record is not None and record.content_hash != content:
                        continue
                if content is not None:
                    yield State(address, record, content, values)
