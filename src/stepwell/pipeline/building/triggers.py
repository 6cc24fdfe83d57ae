"""Triggers: a workflow is started once for each trigger, state and content.

What was started is written down beside the states, and the run has an idempotency key made of all three: a crash between the
two starts nothing twice and forgets nothing.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...errors import StepwellError
from ...triggers.kinds import StateWritten
from ..states.records import Record
from ..trigger import Trigger, make_trigger

if TYPE_CHECKING:
    from ...runner import Engine
    from ..definition import PipelineDefinition
    from ..looking import View

log = logging.getLogger("stepwell.pipeline")

SEEN = "seen"


def fire_triggers(pipeline: PipelineDefinition, view: View, engine: Any, *, existing: bool = False) -> list[str]:
    """Start what new states trigger; the ids of the runs. `engine()` opens the engine if there is something to start.

    With `existing` also for states that were there when a trigger was first seen: somebody asked for it.
    """
    marks: dict[str, str] = pipeline.store.notes.read("triggers") if pipeline.triggers else {}
    started = []
    for trigger in pipeline.triggers.values():
        if trigger.workflow is None:
            continue
        new = {
            f"{trigger.name} {address}": (address, record, content)
            for address, record, content in _states(view, trigger)
            if (known := marks.get(f"{trigger.name} {address}")) != content
            and (existing or known != f"{SEEN} {content}")
        }
        if not (trigger.existing or existing) and f"{trigger.name} {SEEN}" not in marks:
            there = {key: f"{SEEN} {each[2]}" for key, each in new.items()}
            pipeline.store.notes.change("triggers", {f"{trigger.name} {SEEN}": "1", **there})
            continue
        for address, record, content in new.values():
            run_id = _start(pipeline, trigger, address, record, content, engine)
            if run_id is not None:
                started.append(run_id)
        if new:
            fired = {key: each[2] for key, each in new.items()}
            pipeline.store.notes.change("triggers", {f"{trigger.name} {SEEN}": "1", **fired})
    return started


def fire_stored_triggers(
    pipeline: PipelineDefinition, view: View, engine: Engine, *, existing: bool = False
) -> list[str]:
    """The same for triggers in the engine's store: for states written since they were added or resumed."""
    wanted = [
        stored
        for stored in engine.triggers.all()
        if isinstance(stored.trigger.when, StateWritten)
        and stored.trigger.when.pipeline == pipeline.name
        and not stored.paused
    ]
    marks = pipeline.store.notes.read("triggers") if wanted else {}
    started = []
    for stored in wanted:
        when = stored.trigger.when
        assert isinstance(when, StateWritten)
        trigger = make_trigger(pipeline.stages, f"@{stored.name}", when.state, None, when.filter, True)
        fired: dict[str, str] = {}
        for address, record, content in _states(view, trigger):
            key = f"{trigger.name} {address}"
            stamp = view.model.stamp(address)
            if marks.get(key) == content or stamp is None:
                continue
            if not existing and stamp[1] // 1_000 < stored.state.since:
                continue
            event = _event(pipeline, trigger, address, record, content)
            if event is not None:
                told = sha256(f"{pipeline.store.root_id}\0{address}\0{content}".encode()).hexdigest()[:32]
                try:
                    started.append(engine.triggers.fire_for_state(stored, told, event))
                except StepwellError as error:  # a workflow that cannot be started must not stop the pipeline
                    log.error("trigger %s: %s", stored.name, error)
                    continue
            fired[key] = content
        if fired:
            pipeline.store.notes.change("triggers", fired)
    return started


def _states(view: View, trigger: Trigger) -> list[tuple[str, Record | None, str]]:
    """The states that a trigger is about: address, record and content hash."""
    found = []
    for folder, names in view.snapshot.tree.items():
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if name[0] != "." and trigger.pattern.match(path) is not None:
                digest = view.snapshot.content_hash(path)
                record = view.snapshot.records.get(path)
                if digest is not None and (record is None or record.content_hash == digest):
                    found.append((path, record, digest))
    return found


def _event(
    pipeline: PipelineDefinition, trigger: Trigger, address: str, record: Record | None, content: str
) -> dict[str, str] | None:
    """The input of a workflow for a new state, or None if the filter of the trigger leaves it out."""
    values = trigger.pattern.match(address) or {}
    event = {
        "entity": "/".join(values.values()),
        "stateType": trigger.kind,
        "path": address,
        "codeHash": record.code_hash if record is not None else "",
        "contentHash": content,
    }
    current = pipeline.code.current(trigger.kind).code_hash if trigger.kind in pipeline.stages else ""
    if trigger.condition is not None and not trigger.condition.evaluate({**event, "currentCodeHash": current}):
        return None
    return event


def _start(
    pipeline: PipelineDefinition, trigger: Trigger, address: str, record: Record | None, content: str, engine: Any
) -> str | None:
    event = _event(pipeline, trigger, address, record, content)
    if event is None:
        return None
    opened: Engine = engine()
    key = f"{pipeline.name}:{trigger.name}:{address}:{content}"
    workflow = trigger.workflow
    if callable(workflow):
        return opened.start(workflow(event), idempotency_key=key).id
    return opened.start(workflow, input=event, idempotency_key=key).id
