"""`Trigger`: starts runs of a workflow automatically. It is checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..base.clock import Duration
from ..base.codec import decode, encode_checked, sha256
from ..base.forms.problems import Path, Problem, Problems
from ..base.templates import Config, compile_config
from ..base.types.codecs import encoded_by_type
from ..base.words import shown
from ..errors import NotJson, TriggerError

if TYPE_CHECKING:
    from .kinds import AnyTrigger, CatchUp, Kind, Overlap, Scheduled
    from .schedule import Schedule

MAX_DECLARED = 100


class Trigger:
    """Starts runs of a workflow automatically.

        Trigger("nightly", "report", cron="30 2 * * *", timezone="Europe/Berlin", input={"day": "{{ fire.date }}"})
        Trigger("poll", "fetch", every="15m", overlap="skip")
        Trigger("push", "deploy", webhook={"scheme": "github", "secret": "secret:GITHUB_HOOK"})
        Trigger("then", "publish", run_finished={"workflow": "report"})
        Trigger("announce", "announce", state={"pipeline": "auto-blog", "state_type": "digest"})

    `workflow` is the name of a stored document (`report`, or `report@3`), or a class, or `package.module:Class`. A TriggerError
    lists everything that is wrong.
    """

    def __init__(
        self,
        name: str,
        workflow: Any,
        *,
        cron: str | None = None,
        timezone: str | None = None,
        every: str | Duration | None = None,
        start: str | datetime | None = None,
        webhook: Mapping[str, Any] | None = None,
        run_finished: Mapping[str, Any] | type | str | None = None,
        state: Mapping[str, Any] | None = None,
        input: Any = None,
        catch_up: CatchUp | None = None,
        overlap: Overlap | None = None,
        grace_seconds: Duration | None = None,
        priority: int | None = None,
        tags: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> None:
        fields = {key: value for key, value in locals().items() if key != "self" and value is not None}
        fields["workflow"] = getattr(workflow, "workflow_target", workflow)
        if run_finished is not None:
            after = dict(run_finished) if isinstance(run_finished, Mapping) else {"workflow": run_finished}
            ended = after.get("workflow")
            fields["run_finished"] = {**after, "workflow": getattr(ended, "workflow_name", ended)}
        self._read({key: value if key == "input" else _as_data(value) for key, value in fields.items()})

    @classmethod
    def of(cls, data: Any) -> Trigger:
        """The trigger that JSON data describes."""
        made = cls.__new__(cls)
        made._read(data)
        return made

    @classmethod
    def stored(cls, body: bytes) -> Trigger:
        return cls.of(decode(body))

    def _read(self, data: Any) -> None:
        problems = Problems()
        try:
            form = read_trigger(decode(encoded_by_type(dict(data) if isinstance(data, Mapping) else data)), problems)
        except NotJson as error:
            problems.append(Problem((), str(error)))
            form = None
        if problems or form is None:
            raise TriggerError(data.get("name") if isinstance(data, Mapping) else None, problems)
        self.form = form
        """Its fields, as an instance of the class of its kind."""
        self.name, self.workflow = form.name, form.workflow
        self.input: Any = form.input
        self.priority, self.tags, self.description = form.priority, form.tags, form.description

    @property
    def kind(self) -> Kind:
        return self.form.kind

    @cached_property
    def scheduled(self) -> Scheduled | None:
        """Its fields, if it fires at times."""
        from .kinds import Scheduled

        return self.form if isinstance(self.form, Scheduled) else None

    def schedule(self, added_at: int) -> Schedule | None:
        """The times at which it fires, if it has any."""
        return None if self.scheduled is None else self.scheduled.schedule(added_at)

    @cached_property
    def canonical(self) -> dict[str, Any]:
        """Its one form as data: nothing that is at its default, so that a new option changes no digest."""
        return self.form.written_fields

    @cached_property
    def template(self) -> Config:
        """Its input, compiled."""
        return compile_config(self.input)

    @cached_property
    def names(self) -> frozenset[tuple[str, str | None]]:
        """What its input reads: names, each with the field of it that is read, None if it is read whole."""
        return frozenset((each.name, each.field) for _, each in self.template.references)

    def reads(self, name: str, field: str) -> bool:
        return bool(self.names & {(name, field), (name, None)})

    @cached_property
    def content(self) -> bytes:
        return encode_checked(self.canonical)

    @cached_property
    def digest(self) -> str:
        return sha256(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trigger) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Trigger {self.name!r} of {self.workflow!r}, {self.kind}>"


def read_trigger(data: Any, problems: Problems) -> AnyTrigger | None:
    """Read the form of a trigger; its kind is the field that says when it fires."""
    from ..base.forms.reading import read_form
    from .kinds import FORMS, TriggerForm

    if not isinstance(data, dict):
        problems.expected((), TriggerForm.contents, data)
        return None
    kinds = [kind for kind in FORMS if kind in data]
    if len(kinds) != 1:
        what = " and ".join(kinds) if kinds else "none of them"
        problems.add((), f"expected one of {', '.join(FORMS)}, which says when it fires, got {what}")
        return None
    return read_form(FORMS[kinds[0]], data, problems)


def _as_data(value: Any) -> Any:
    """What Python has a type for and a document writes as text or seconds."""
    match value:
        case timedelta():
            seconds = value.total_seconds()
            return int(seconds) if seconds.is_integer() else seconds
        case datetime():
            return value.isoformat()
        case Mapping():
            return {key: _as_data(each) for key, each in value.items()}
        case _:
            return value


def read_declared(
    data: Any, workflow: str, default_name: str, report: Callable[[Path, str], None]
) -> tuple[Trigger, ...]:
    """The triggers that a workflow declares. A single one may have no name: it gets that of the workflow."""
    if not isinstance(data, list | tuple) or len(data) > MAX_DECLARED:
        report((), f"expected a list of at most {MAX_DECLARED} triggers, got {shown(data)}")
        return ()
    triggers: dict[str, Trigger] = {}
    for place, fields in enumerate(data):
        if not isinstance(fields, Mapping):
            from .kinds import KIND_NAMES

            report((place,), f"expected an object with one of {', '.join(KIND_NAMES)}, got {shown(fields)}")
            continue
        if "workflow" in fields:
            report((place, "workflow"), "it starts the workflow that declares it: leave this out")
            continue
        own = {"workflow": workflow}
        if len(data) == 1:
            own["name"] = re.sub(r"[^A-Za-z0-9._-]+", "-", default_name).strip("-._")[:100]
        try:
            trigger = Trigger.of({**own, **fields})
        except TriggerError as error:
            for problem in error.problems:
                report((place, *problem.place), problem.message)
            continue
        if trigger.name in triggers:
            report((place, "name"), f"{trigger.name!r} is the name of another one already")
        triggers[trigger.name] = trigger
    return tuple(triggers.values())


def declared_form(trigger: Trigger) -> dict[str, Any]:
    """A trigger as the document that declares it has it."""
    return {name: value for name, value in trigger.canonical.items() if name != "workflow"}
