"""`engine.triggers`: the triggers of an engine's store, and their runs started by the engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.clock import SECOND
from ..base.forms.problems import Problems
from ..base.words import shown
from ..core.model import parted
from ..core.store import reader, versions
from ..define import Builder, Target, Workflow
from ..define.document.inputs import checked_input
from ..define.types.input_schema import input_schema
from ..errors import DefinitionError, DocumentError, InputError, MissingJob, RunConflict, TriggerError
from ..history.audit_log import Actor, acting_as
from ..triggers.book import StoredTrigger, Triggers, calendar_clock
from ..triggers.definition import Trigger
from ..triggers.firing import Firing, NotHere
from ..triggers.rendering import Start, make_start
from ..triggers.state import TriggerState
from .code.registering import RegisteredWorkflow, registered_by_target, registered_definition, registered_workflow
from .parts import EngineParts
from .starting import Startable, create_op


class EngineTriggers(Triggers):
    """The triggers of a store. An engine that serves fires them; see docs/triggers.md.

    engine.triggers.add(Trigger("nightly", "report", cron="30 2 * * *", timezone="Europe/Berlin"))
    engine.work()
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        now = calendar_clock(parts.store)
        super().__init__(parts.store, self.start_run, now, parts.work.look_at_triggers)
        self._firing = Firing(parts.store, self.start_run, now)

    def fire_due(self) -> float:
        """Fire what is due; in how many seconds to look again. Any number of processes may do it."""
        return self._firing.fire_due() / SECOND

    def add(self, trigger: Trigger, *, paused: bool | None = None, declared_in: str | None = None) -> StoredTrigger:
        if isinstance(trigger, Trigger):
            (self._check_template if trigger.scheduled is None else self._check_input)(trigger)
        return super().add(trigger, paused=paused, declared_in=declared_in)

    def _check_input(self, trigger: Trigger) -> None:
        """Refuse a schedule whose input does not fit its workflow, if that is known here."""
        now = self._now()
        start = make_start(trigger, TriggerState(0, trigger.digest, now, now, now), "check", now)
        known = self._parts.code.known_class(trigger.workflow)
        if known is not None:
            known(**start.input)
        elif (told := self._told_of(start.workflow)) is not None:
            checked_input(told.name, told.input, start.input)
        elif self._is_document(trigger.workflow):
            self._parts.documents.find(trigger.workflow).checked_input(start.input)

    def _check_template(self, trigger: Trigger) -> None:
        """The same for a trigger whose input is known only when it fires: its fields, and the values that are no templates."""
        parts, name = self._parts, trigger.workflow
        known = parts.code.known_class(name)
        schema: Mapping[str, Any] | None = None
        if known is not None and issubclass(known, Workflow):
            schema = input_schema(known)
        elif (told := self._told_of(name)) is not None:
            schema = told.input
        elif known is None and self._is_document(name):
            schema = parts.documents.find(name).input
        dynamic = {path[0] if path else None for path, _ in trigger.template.dynamic}
        if (
            schema is None
            or None in dynamic
            or (dynamic and schema.keys() & {"$ref", "anyOf", "oneOf", "allOf", "not"})
        ):
            return
        left_open = {field: True for field in dynamic if field in schema.get("properties", {})}
        checked_input(name, {**schema, "properties": {**schema.get("properties", {}), **left_open}}, trigger.input)

    def lacks(self, trigger: Trigger) -> str | None:
        """Why it could not start a run now, as far as that can be told without importing anything."""
        name, number = parted(trigger.workflow)
        if ":" in name or self._parts.code.known_class(name) is not None:
            return None
        if self._is_document(trigger.workflow):
            return None
        if number is None and registered_workflow(self._parts.store, name) is not None:
            return None
        return f"no document {trigger.workflow!r} is stored here: until there is one, runs of it cannot be started"

    def fire_for_state(
        self, trigger: Trigger, state: TriggerState, key: str, event: Mapping[str, Any], target: Any = None
    ) -> str:
        """Start the run for a new state of a pipeline; the same key is the same run. `target` is what to start, where the
        pipeline has that as an object.
        """
        run_id = f"{trigger.name}:state-{key}"
        with acting_as(Actor(trigger.name, "trigger")):
            self.start_run(make_start(trigger, state, run_id, self._now(), {"state": event}), target)
        return run_id

    def load(self, file: str | os.PathLike[str]) -> list[Trigger]:
        """The triggers that a JSON or YAML file describes: one, or a list of them."""
        return load_triggers(file)

    def start_run(self, start: Start, target: Any = None) -> bool:
        """Start a run; False if it exists. NotHere if its code is not here. `target`: a Document, a class, or a function of
        the input, instead of what the start names.
        """
        parts, starting = self._parts, self._parts.starting
        if reader.get_run(parts.store, start.run_id) is not None:
            return False
        options: dict[str, Any] = {"run_id": start.run_id, "priority": start.priority, "tags": start.tags}
        try:
            told = None if target is not None else self._told_of(start.workflow)
            if callable(target):
                made = target(**start.input) if isinstance(target, type) else target(start.input)
                definition = starting.definition_of(made)
            elif target is not None:
                definition = starting.definition_of(target, start.input)
            elif told is not None:
                definition = registered_definition(parts.store, told, start.input)
            else:
                definition = starting.definition_of(*self._startable(start))
            starting.start(definition, create_op(definition, **options), fresh=False)
        except (MissingJob, DocumentError) as error:  # stored documents were checked, so handlers are missing here
            raise NotHere(str(error)) from error
        except RunConflict:  # somebody else was first, with another version of the trigger
            return False
        return True

    def _told_of(self, name: str) -> RegisteredWorkflow | None:
        """A class whose code only workers have, as they registered it. An engine that works needs the code itself."""
        parts = self._parts
        if parts.work.runner is not None or parts.code.known_class(name) is not None or parts.code.is_registered(name):
            return None
        if ":" in name:
            return registered_by_target(parts.store, name)
        return None if self._is_document(name) else registered_workflow(parts.store, name)

    def _is_document(self, text: str) -> bool:
        return ":" not in text and versions.get_version(self._parts.store, "document", *parted(text)) is not None

    def _startable(self, start: Start) -> tuple[Startable, dict[str, Any] | None]:
        """What to start for a trigger, and the input if that is not part of it."""
        code = self._parts.code
        found: Target | None = code.known_class(start.workflow)
        if found is None and ":" not in start.workflow:
            return start.workflow, start.input
        if found is None:
            try:
                found = code.registered(start.workflow)
            except DefinitionError as error:
                raise NotHere(str(error)) from error
        made = found(**start.input)
        if not isinstance(made, Workflow | Builder):
            raise InputError(
                f"{start.workflow} gives {shown(made)}: a Workflow class, or a function that gives a Builder"
            )
        return made, None


def load_triggers(file: str | os.PathLike[str]) -> list[Trigger]:
    """The triggers that a JSON or YAML file describes."""
    from ..define.document.text import read_document

    read = read_document(Path(file))
    if read.repeated:
        raise InputError(f"{file}: the key {read.repeated[0][-1]!r} is there more than once")
    listed = isinstance(read.data, dict) and set(read.data) == {"triggers"}
    forms = read.data["triggers"] if listed else read.data
    triggers = []
    for number, form in enumerate(forms if isinstance(forms, list) else [forms]):
        try:
            triggers.append(Trigger.of(form))
        except TriggerError as error:
            at = (*(("triggers",) if listed else ()), *((number,) if isinstance(forms, list) else ()))
            problems = Problems()
            problems += [each._replace(place=(*at, *each.place)) for each in error.problems]
            raise TriggerError(error.name, problems.placed(read.marks())) from None
    return triggers
