"""`Trigger`: starts runs of a workflow automatically. It is checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from ..base.clock import SECOND, Duration
from ..base.codec import decode, encode_checked, sha256
from ..base.forms.problems import Problem
from ..base.templates import Config, compile_config
from ..base.types.codecs import encoded_by_type
from ..base.words import shown
from ..errors import NotJson
from .kinds import KINDS, CatchUp, Interval, Kind, Overlap, Path, TriggerError, When
from .reading import read
from .schedule import Cron

MAX_DECLARED = 100


class Trigger:
    """Starts runs of a workflow automatically.

        Trigger("nightly", "report", cron="30 2 * * *", timezone="Europe/Berlin", input={"day": "{{ fire.date }}"})
        Trigger("poll", "fetch", every="15m", overlap="skip")
        Trigger("push", "deploy", webhook={"scheme": "github", "secret": "secret:GITHUB_HOOK"})
        Trigger("then", "publish", run_finished={"workflow": "report"})
        Trigger("announce", "announce", state={"pipeline": "auto-blog", "stateType": "digest"})

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
        given = {key: value for key, value in locals().items() if key not in ("self", "workflow") and value is not None}
        given |= {key: _as_data(given[key]) for key in ("every", "start", "grace_seconds", "webhook") if key in given}
        if run_finished is not None:
            after = dict(run_finished) if isinstance(run_finished, Mapping) else {"workflow": run_finished}
            named = after.get("workflow")
            given["run_finished"] = {**after, "workflow": getattr(named, "workflow_name", named)}
        self._read({**given, "workflow": getattr(workflow, "target", workflow)})

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
        problems: list[Problem] = []
        named = data.get("name") if isinstance(data, Mapping) else None
        try:
            copied = decode(encoded_by_type(dict(data) if isinstance(data, Mapping) else data))
            found = read(copied, problems)
        except NotJson as error:
            problems.append(Problem((), str(error)))
            found = None
        if problems or found is None:
            raise TriggerError(named, problems)
        self.__dict__.update(found)

    name: str
    workflow: str
    when: When
    input: Any
    catch_up: CatchUp
    overlap: Overlap
    grace_seconds: float
    priority: int
    tags: dict[str, str]
    description: str | None
    canonical: dict[str, Any]
    """Its one form as data: nothing that is at its default."""

    @property
    def kind(self) -> Kind:
        return KINDS[type(self.when)]

    @property
    def is_schedule(self) -> bool:
        return isinstance(self.when, Cron | Interval)

    @property
    def grace(self) -> int:
        return int(self.grace_seconds * SECOND)

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


def read_declared(given: Any, workflow: str, named: str, report: Callable[[Path, str], None]) -> tuple[Trigger, ...]:
    """The triggers that a workflow declares. A single one may have no name: it gets that of the workflow."""
    if not isinstance(given, list | tuple) or len(given) > MAX_DECLARED:
        report((), f"a list of at most {MAX_DECLARED} triggers is needed, not {shown(given)}")
        return ()
    found: list[Trigger] = []
    for place, each in enumerate(given):
        if not isinstance(each, Mapping):
            report((place,), f"expected an object with cron, every, webhook, run_finished or state, got {shown(each)}")
            continue
        if "workflow" in each:
            report((place, "workflow"), "it starts the workflow that declares it: leave this out")
            continue
        data = {**each, "workflow": workflow}
        if len(given) == 1 and "name" not in each:
            data["name"] = re.sub(r"[^A-Za-z0-9._-]+", "-", named).strip("-._")[:100]
        try:
            trigger = Trigger.of(data)
        except TriggerError as error:
            for problem in error.problems:
                report((place, *problem.place), problem.message)
            continue
        if any(trigger.name == other.name for other in found):
            report((place, "name"), f"{trigger.name!r} is the name of another one already")
        found.append(trigger)
    return tuple(found)


def declared_form(trigger: Trigger) -> dict[str, Any]:
    """A trigger as the document that declares it has it."""
    return {name: value for name, value in trigger.canonical.items() if name != "workflow"}
