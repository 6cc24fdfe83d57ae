"""Reading a trigger from data: everything that can be wrong with it, all at once, each with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, get_args

from ..base.clock import MAX_SECONDS, SECOND, is_seconds, utc_text
from ..base.codec import encode_checked
from ..base.forms.problems import Problem
from ..base.ids import checked_run_id
from ..base.secrets import SecretRef
from ..base.templates import TemplateError, compile_config
from ..base.words import shown, suggestion
from ..core.model import RunStatus
from ..errors import InputError
from .filters import compile_filter
from .kinds import GRACE_SECONDS, KINDS, CatchUp, Interval, Overlap, Path, RunFinished, StateWritten, Webhook, When
from .schedule import Cron, time_zone
from .schemes import SCHEMES

MAX_NAME = 100
MAX_DESCRIPTION = 2_000
MAX_INPUT = 1024 * 1024
MAX_TAGS = 16
MAX_TAG = 100
MAX_RATE = 100_000
KIND_NAMES = tuple(KINDS.values())
_ANY = ("name", "workflow", "input", "priority", "tags", "description")
_SCHEDULED = ("catch_up", "overlap", "grace_seconds")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "cron": (*_ANY, "cron", "timezone", *_SCHEDULED),
    "every": (*_ANY, "every", "start", *_SCHEDULED),
    "webhook": (*_ANY, "webhook"),
    "run_finished": (*_ANY, "run_finished"),
    "state": (*_ANY, "state"),
}
NAMES: Mapping[str, tuple[str, ...]] = {
    "cron": ("fire", "trigger"),
    "every": ("fire", "trigger"),
    "webhook": ("body", "headers", "query", "fire", "trigger"),
    "run_finished": ("run", "fire", "trigger"),
    "state": ("state", "fire", "trigger"),
}
"""What templates of the input may name."""
_SCOPE: Mapping[str, tuple[str, ...]] = {
    "run": ("id", "workflow", "status", "input", "outputs"),
    "fire": ("time", "local", "date", "previous"),
    "trigger": ("name", "version"),
}
"""The fields of these names."""
MAX_UNKNOWN = 100
"""Unknown fields of one object that are reported."""
ENDED = tuple(str(status) for status in RunStatus if status.terminal)
DEFAULT_INPUT = {"webhook": "{{ body }}", "state": "{{ state }}"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DURATION = re.compile(r"(?:(\d{1,9})w)?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?")
_UNITS = (604_800, 86_400, 3_600, 60, 1)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")


class Fields:
    """Reads the fields of an object, and adds what is wrong to `problems`, each with its path."""

    def __init__(self, data: Mapping[str, Any], problems: list[Problem], path: Path = ()) -> None:
        self.data, self.problems, self._path = data, problems, path

    def refuse(self, message: str, *path: str | int) -> None:
        self.problems.append(Problem((*self._path, *path), message))

    def need(self, field: str, needed: str) -> None:
        """Refuse the value of a field, which is shown."""
        self.refuse(f"{needed} is needed, not {shown(self.data.get(field))}", field)

    def object(self, field: str, needed: str, known: Sequence[str], what: str | None = None) -> Fields | None:
        """The fields of an object in a field; None if the field has another type."""
        inner = self.data[field]
        if not isinstance(inner, dict):
            self.need(field, needed)
            return None
        found = Fields(inner, self.problems, (*self._path, field))
        found.check_names(known, what or field)
        return found

    def check_names(self, known: Sequence[str], what: str) -> None:
        for key in islice((key for key in self.data if key not in known), MAX_UNKNOWN):
            self.refuse(f"{what} has no field {shown(key)}; {suggestion(key, known)}", key)

    def take(self, field: str, default: Any, fits: bool, needed: str) -> Any:
        """The value of a field if it fits; else it is refused, and the default stands in for it."""
        if fits:
            return self.data.get(field, default)
        self.need(field, needed)
        return default

    def choice(self, field: str, choices: tuple[str, ...], default: str) -> str:
        value = self.data.get(field, default)
        fits = isinstance(value, str) and value in choices
        return str(self.take(field, default, fits, f"one of {', '.join(choices)}"))

    def seconds(self, field: str, default: float) -> float:
        fits = is_seconds(self.data.get(field, default))
        return float(self.take(field, default, fits, "a number of seconds from 0"))

    def whole(self, field: str, default: int, least: int, most: int) -> int:
        value = self.data.get(field, default)
        fits = type(value) is int and least <= value <= most
        return int(self.take(field, default, fits, f"a whole number from {least} to {most}"))

    def workflow(self) -> str:
        fits = _is_text(self.data.get("workflow"))
        return str(self.take("workflow", "", fits, "the name of a stored document, or package.module:Class,"))

    def check_templates(self, field: str, names: Sequence[str]) -> None:
        wrong: list[tuple[Path, TemplateError]] = []
        compiled = compile_config(self.data[field], problems=wrong)
        for at, error in wrong:
            self.refuse(error.problem, field, *at)
        for at, reference in compiled.references:
            if reference.name not in names:
                message = f"the template names {reference.name!r}; there are {', '.join(names)}"
                self.refuse(message, field, *at)
            elif reference.field is not None and reference.field not in _SCOPE.get(reference.name, (reference.field,)):
                known = ", ".join(_SCOPE[reference.name])
                self.refuse(f"{reference.name} has no {shown(reference.field)}; there are {known}", field, *at)


def read(data: Any, problems: list[Problem]) -> dict[str, Any] | None:
    """The attributes of a trigger; None, and problems, if it is written wrongly."""
    if not isinstance(data, dict):
        problems.append(Problem((), f"an object with name, workflow and one of {', '.join(KIND_NAMES)} is needed"))
        return None
    fields = Fields(data, problems)
    present = [kind for kind in KIND_NAMES if kind in data]
    if len(present) != 1:
        what = " and ".join(present) if present else "none of them"
        fields.refuse(f"one of {', '.join(KIND_NAMES)} says when it fires; this has {what}")
        fields.check_names(sorted({name for names in FIELDS.values() for name in names}), "a trigger")
        return None
    (kind,) = present
    fields.check_names(FIELDS[kind], f"a trigger with {kind}")
    made: dict[str, Any] = {
        "name": _name(fields),
        "workflow": fields.workflow(),
        "when": _WHEN[kind](fields),
        "input": data.get("input", DEFAULT_INPUT.get(kind, {})),
        "catch_up": fields.choice("catch_up", get_args(CatchUp), "last"),
        "overlap": fields.choice("overlap", get_args(Overlap), "allow"),
        "grace_seconds": fields.seconds("grace_seconds", GRACE_SECONDS),
        "priority": fields.whole("priority", 0, -(2**31), 2**31 - 1),
        "tags": _tags(fields),
        "description": _description(fields),
    }
    if "input" in data:
        _check_input(fields, NAMES[kind])
    when = made["when"]
    if isinstance(when, RunFinished) and when.workflow == made["workflow"].rpartition(":")[2].partition("@")[0]:
        fields.refuse("a workflow that starts itself would never stop", "run_finished", "workflow")
    if problems:
        return None
    return {**made, "canonical": _canonical(kind, made)}


def _name(fields: Fields) -> str:
    name = fields.data.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    fields.refuse(f"1 to {MAX_NAME} letters, digits or . _ - are needed, not {shown(name)}", "name")
    return ""


def _cron(fields: Fields) -> When | None:
    timezone = fields.data.get("timezone", "UTC")
    try:
        time_zone(timezone)
    except InputError as error:
        fields.refuse(str(error), "timezone")
        timezone = "UTC"
    try:
        return Cron(fields.data["cron"], timezone)
    except InputError as error:
        fields.refuse(str(error), "cron")
        return None


def _every(fields: Fields) -> When | None:
    seconds = duration(fields.data["every"])
    if seconds is None or not 1 <= seconds <= MAX_SECONDS:
        fields.need("every", "a duration from 1 second to 10 years, as 90s, 15m, 1h30m or 7d,")
        return None
    start = moment(fields.data.get("start"))
    if start is None and "start" in fields.data:
        fields.need("start", "a time with its offset, as 2026-03-01T06:00:00Z,")
    return Interval(int(seconds * SECOND), start)


def duration(value: Any) -> float | None:
    """
    >>> duration("1h30m"), duration("15m"), duration(90), duration("soon")
    (5400, 900, 90, None)
    """
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.replace(" ", "").lower()[:60])
        if found is None or not any(found.groups()):
            return None
        return sum(int(part or 0) * unit for part, unit in zip(found.groups(), _UNITS, strict=True))
    return value if is_seconds(value) else None


def moment(value: Any) -> int | None:
    """Microseconds since 1970 of a time as `2026-03-01T06:00:00Z`; None if it is no such text or has no offset."""
    if not isinstance(value, str) or len(value) > 60:
        return None
    try:
        found = datetime.fromisoformat(value)
        if found.tzinfo is None or not 1970 <= found.year < 9900:
            return None
        return int((found.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * SECOND
    except (ValueError, OverflowError):
        return None


def _webhook(fields: Fields) -> When | None:
    known = ("scheme", "secret", "header", "window_seconds", "delivery", "rate_per_minute")
    given = fields.object("webhook", "an object with scheme and secret", known, "a webhook")
    if given is None:
        return None
    chosen = given.choice("scheme", tuple(SCHEMES), "hmac")
    scheme = SCHEMES[chosen]
    secret = SecretRef.of(given.data.get("secret"))
    if secret is None:
        # The value is not shown: it may be the secret itself.
        given.refuse("a reference is needed, secret:NAME; the secret itself is never stored", "secret")
    header = given.data.get("header")
    if header is not None:
        if "header" not in scheme.settable:
            given.refuse(f"the scheme {chosen} has its own header, {scheme.header}", "header")
        elif not isinstance(header, str) or not _HEADER.fullmatch(header):
            given.need("header", "the name of a header")
    window = given.seconds("window_seconds", 300.0)
    if "window_seconds" in given.data and not scheme.timed:
        given.refuse(f"the scheme {chosen} does not say when a request was sent", "window_seconds")
    delivery = given.data.get("delivery")
    if isinstance(delivery, str):
        given.check_templates("delivery", ("body", "headers", "query"))
    elif delivery is not None:
        given.need("delivery", "a template, as {{ body.id }},")
    rate = given.whole("rate_per_minute", 60, 1, MAX_RATE)
    if fields.problems or secret is None:
        return None
    return Webhook(secret, chosen, header.lower() if header else None, window, delivery, rate)


def _run_finished(fields: Fields) -> When | None:
    if isinstance(fields.data["run_finished"], str):
        fields.data = {**fields.data, "run_finished": {"workflow": fields.data["run_finished"]}}
    given = fields.object("run_finished", "an object with workflow", ("workflow", "status"))
    if given is None:
        return None
    workflow = given.workflow()
    if ":" in workflow or "@" in workflow:
        given.need("workflow", "the name of a workflow, without module or version,")
    status = given.data.get("status", ["COMPLETED"])
    chosen = [status] if isinstance(status, str) else status
    if not isinstance(chosen, list) or not chosen or not all(each in ENDED for each in chosen):
        given.refuse(f"one or some of {', '.join(ENDED)} are needed, not {shown(status)}", "status")
        chosen = []
    return RunFinished(workflow, tuple(each for each in ENDED if each in chosen))


def _state(fields: Fields) -> When | None:
    known = ("pipeline", "stateType", "path", "filter")
    given = fields.object("state", "an object with pipeline and stateType or path", known)
    if given is None:
        return None
    before = len(fields.problems)
    what = [given.data[key] for key in ("stateType", "path") if key in given.data]
    if len(what) != 1:
        given.refuse("stateType (a stage) or path (a pattern), one of them, is needed")
    for key, value in given.data.items():
        if not _is_text(value):
            given.need(key, "some text")
    if "pipeline" not in given.data:
        given.refuse("pipeline, the name of a pipeline, is needed")
    condition = given.data.get("filter")
    if len(fields.problems) == before and condition is not None:
        try:
            compile_filter(condition)
        except TemplateError as error:
            given.refuse(str(error), "filter")
    return None if fields.problems else StateWritten(given.data["pipeline"], what[0], condition)


_WHEN = {"state": _state, "cron": _cron, "every": _every, "webhook": _webhook, "run_finished": _run_finished}


def _tags(fields: Fields) -> dict[str, str]:
    value = fields.data.get("tags", {})
    texts = (*value, *value.values()) if isinstance(value, dict) else ()
    if not isinstance(value, dict) or len(value) > MAX_TAGS or not all(_is_text(each, MAX_TAG) for each in texts):
        fields.refuse(f"at most {MAX_TAGS} texts by name are needed, not {shown(value)}", "tags")
    elif {"trigger", "fire"} & value.keys():
        fields.refuse("the tags trigger and fire are set by the trigger itself", "tags")
    else:
        return value
    return {}


def _is_text(value: Any, most: int = 1_000) -> bool:
    return isinstance(value, str) and value.strip() != "" and len(value) <= most and value.isprintable()


def _description(fields: Fields) -> str | None:
    value = fields.data.get("description")
    if value is None or (isinstance(value, str) and len(value) <= MAX_DESCRIPTION):
        return value
    fields.refuse(f"a text of at most {MAX_DESCRIPTION:,} characters is needed", "description")
    return None


def _check_input(fields: Fields, names: Sequence[str]) -> None:
    value = fields.data["input"]
    if not isinstance(value, dict | str):
        fields.need("input", "an object, or a template that gives one,")
    elif len(encode_checked(value)) > MAX_INPUT:
        fields.refuse(f"at most {MAX_INPUT:,} bytes are allowed", "input")
    else:
        fields.check_templates("input", names)


def _canonical(kind: str, made: Mapping[str, Any]) -> dict[str, Any]:
    """The one form of a trigger: nothing that is at its default, so that a new option changes no digest."""
    when: When = made["when"]
    data: dict[str, Any] = {"name": made["name"], "workflow": made["workflow"]}
    match when:
        case Cron(text, timezone):
            data |= {"cron": " ".join(text.split())} | ({} if timezone == "UTC" else {"timezone": timezone})
        case Interval(every, start):
            data |= {"every": every // SECOND if every % SECOND == 0 else every / SECOND}
            data |= {} if start is None else {"start": utc_text(start / SECOND)}
        case Webhook():
            defaults = Webhook(when.secret)
            chosen = {name: value for name, value in vars(when).items() if value != getattr(defaults, name)}
            data["webhook"] = chosen | {"secret": repr(when.secret)}
        case StateWritten(pipeline, state, condition):
            is_path = any(mark in state for mark in "{}/*?[.")
            data["state"] = {"pipeline": pipeline, "path" if is_path else "stateType": state}
            data["state"] |= {} if condition is None else {"filter": condition}
        case RunFinished(workflow, statuses):
            data["run_finished"] = {"workflow": workflow, "status": list(statuses)}
    defaults_of = {"catch_up": "last", "overlap": "allow", "grace_seconds": GRACE_SECONDS, "priority": 0, "tags": {}}
    defaults_of |= {"description": None, "input": DEFAULT_INPUT.get(kind, {})}
    return data | {name: made[name] for name, default in defaults_of.items() if made[name] != default}


def checked_key(text: str) -> str:
    """A key for a fire, which becomes a part of the run id."""
    checked_run_id(text)
    if len(text) > 80:
        raise InputError(f"key {shown(text)} is too long: at most 80 characters are allowed")
    return text
