"""Reading a trigger from data: everything that can be wrong with it, all at once, each with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, get_args

from ..clock import MAX_SECONDS, SECOND, is_seconds, utc_text
from ..codec import encode_checked
from ..errors import InputError
from ..ids import checked_run_id
from ..secrets import SecretRef
from ..templates import TemplateError, compile_config, compile_expression
from ..words import shown
from .kinds import (
    GRACE_SECONDS,
    CatchUp,
    Interval,
    Overlap,
    Path,
    Problem,
    RunFinished,
    StateWritten,
    Webhook,
    When,
)
from .schedule import Cron, time_zone
from .schemes import SCHEMES

MAX_NAME = 100
MAX_DESCRIPTION = 2_000
MAX_INPUT = 1024 * 1024
MAX_TAGS = 16
MAX_TAG = 100
MAX_RATE = 100_000
KINDS = ("cron", "every", "webhook", "run_finished", "state")
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
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
DEFAULT_INPUT = {"webhook": "{{ body }}", "state": "{{ state }}"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DURATION = re.compile(r"(?:(\d{1,9})w)?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?")
_UNITS = (604_800, 86_400, 3_600, 60, 1)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")


def read(data: Any, problems: list[Problem]) -> dict[str, Any] | None:
    """The attributes of a trigger; None, and problems, if it is written wrongly."""
    if not isinstance(data, dict):
        problems.append(Problem((), f"an object with name, workflow and one of {', '.join(KINDS)} is needed"))
        return None
    kinds = [kind for kind in KINDS if kind in data]
    if len(kinds) != 1:
        what = " and ".join(kinds) if kinds else "none of them"
        problems.append(Problem((), f"one of {', '.join(KINDS)} says when it fires; this has {what}"))
        _check_fields(data, sorted({name for fields in FIELDS.values() for name in fields}), "a trigger", problems)
        return None
    (kind,) = kinds
    _check_fields(data, FIELDS[kind], f"a trigger with {kind}", problems)
    made: dict[str, Any] = {
        "name": _name(data, problems),
        "workflow": _workflow(data.get("workflow"), ("workflow",), problems),
        "when": _WHEN[kind](data, problems),
        "input": data.get("input", DEFAULT_INPUT.get(kind, {})),
        "catch_up": _choice(data, "catch_up", get_args(CatchUp), "last", problems),
        "overlap": _choice(data, "overlap", get_args(Overlap), "allow", problems),
        "grace_seconds": _seconds(data, "grace_seconds", GRACE_SECONDS, problems),
        "priority": _whole(data, "priority", 0, -(2**31), 2**31 - 1, problems),
        "tags": _tags(data, problems),
        "description": _description(data, problems),
    }
    _check_input(made["input"], kind, problems)
    when = made["when"]
    if isinstance(when, RunFinished) and when.workflow == made["workflow"].rpartition(":")[2].partition("@")[0]:
        problems.append(Problem(("run_finished", "workflow"), "a workflow that starts itself would never stop"))
    if problems:
        return None
    return {**made, "canonical": _canonical(kind, made)}


def _check_fields(data: Mapping[str, Any], known: Sequence[str], what: str, problems: list[Problem]) -> None:
    for key in data:
        if key not in known:
            close = get_close_matches(key, known, n=1) if len(key) <= MAX_NAME else []
            rest = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            problems.append(Problem((key,), f"{what} has no field {shown(key)}{rest}"))


def _name(data: Mapping[str, Any], problems: list[Problem]) -> str:
    name = data.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    problems.append(
        Problem(("name",), f"1 to {MAX_NAME} letters, digits or . _ - are needed, not {shown(data.get('name'))}")
    )
    return ""


def _workflow(value: Any, path: Path, problems: list[Problem]) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= 1_000 and value.isprintable():
        return value
    needed = "the name of a stored document, or package.module:Class,"
    problems.append(Problem(path, f"{needed} is needed, not {shown(value)}"))
    return ""


def _cron(data: Mapping[str, Any], problems: list[Problem]) -> When | None:
    timezone = data.get("timezone", "UTC")
    try:
        time_zone(timezone)
    except InputError as error:
        problems.append(Problem(("timezone",), str(error)))
        timezone = "UTC"
    try:
        return Cron(data["cron"], timezone)
    except InputError as error:
        problems.append(Problem(("cron",), str(error)))
        return None


def _every(data: Mapping[str, Any], problems: list[Problem]) -> When | None:
    seconds = duration(data["every"])
    if seconds is None or not 1 <= seconds <= MAX_SECONDS:
        needed = "a duration from 1 second to 10 years, as 90s, 15m, 1h30m or 7d,"
        problems.append(Problem(("every",), f"{needed} is needed, not {shown(data['every'])}"))
        return None
    start = None
    if "start" in data:
        start = moment(data["start"])
        if start is None:
            needed = "a time with its offset, as 2026-03-01T06:00:00Z,"
            problems.append(Problem(("start",), f"{needed} is needed, not {shown(data['start'])}"))
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


def _webhook(data: Mapping[str, Any], problems: list[Problem]) -> When | None:
    given = data["webhook"]
    if not isinstance(given, dict):
        problems.append(Problem(("webhook",), f"an object with scheme and secret is needed, not {shown(given)}"))
        return None
    found: list[Problem] = []
    known = ("scheme", "secret", "header", "window_seconds", "delivery", "rate_per_minute")
    _check_fields(given, known, "a webhook", found)
    scheme = _choice(given, "scheme", tuple(SCHEMES), "hmac", found)
    secret = SecretRef.of(given.get("secret"))
    if secret is None:
        # What is there is not shown: somebody may have written the secret itself.
        found.append(Problem(("secret",), "a reference is needed, secret:NAME; the secret itself is never stored"))
    header = given.get("header")
    if header is not None:
        if "header" not in SCHEMES[scheme].settable:
            message = f"the scheme {scheme} has its own header, {SCHEMES[scheme].header}"
            found.append(Problem(("header",), message))
        elif not isinstance(header, str) or not _HEADER.fullmatch(header):
            found.append(Problem(("header",), f"the name of a header is needed, not {shown(header)}"))
    window = _seconds(given, "window_seconds", 300.0, found)
    if "window_seconds" in given and not SCHEMES[scheme].timed:
        found.append(Problem(("window_seconds",), f"the scheme {scheme} does not say when a request was sent"))
    delivery = given.get("delivery")
    if delivery is not None:
        if isinstance(delivery, str):
            _check_templates(delivery, ("delivery",), ("body", "headers", "query"), found)
        else:
            found.append(Problem(("delivery",), f"a template is needed, as {{{{ body.id }}}}, not {shown(delivery)}"))
    rate = _whole(given, "rate_per_minute", 60, 1, MAX_RATE, found)
    problems += [each._replace(path=("webhook", *each.path)) for each in found]
    if found or secret is None:
        return None
    return Webhook(secret, scheme, header.lower() if header else None, window, delivery, rate)


def _run_finished(data: Mapping[str, Any], problems: list[Problem]) -> When | None:
    given = data["run_finished"]
    if isinstance(given, str):
        given = {"workflow": given}
    if not isinstance(given, dict):
        problems.append(Problem(("run_finished",), f"an object with workflow is needed, not {shown(given)}"))
        return None
    found: list[Problem] = []
    _check_fields(given, ("workflow", "status"), "run_finished", found)
    workflow = _workflow(given.get("workflow"), ("workflow",), found)
    if ":" in workflow or "@" in workflow:
        message = f"the name of a workflow is needed, without module or version, not {shown(workflow)}"
        found.append(Problem(("workflow",), message))
    status = given.get("status", ["COMPLETED"])
    chosen = [status] if isinstance(status, str) else status
    if not isinstance(chosen, list) or not chosen or not all(each in ENDED for each in chosen):
        found.append(Problem(("status",), f"one or some of {', '.join(ENDED)} are needed, not {shown(status)}"))
        chosen = []
    problems += [each._replace(path=("run_finished", *each.path)) for each in found]
    return RunFinished(workflow, tuple(each for each in ENDED if each in chosen))


def _state(data: Mapping[str, Any], problems: list[Problem]) -> When | None:
    given = data["state"]
    if not isinstance(given, dict):
        problems.append(
            Problem(("state",), f"an object with pipeline and stateType or path is needed, not {shown(given)}")
        )
        return None
    found: list[Problem] = []
    _check_fields(given, ("pipeline", "stateType", "path", "filter"), "state", found)
    what = [given[key] for key in ("stateType", "path") if key in given]
    if len(what) != 1:
        found.append(Problem((), "stateType (a stage) or path (a pattern), one of them, is needed"))
    for key, value in given.items():
        if not isinstance(value, str) or not value.strip() or len(value) > 1_000 or not value.isprintable():
            found.append(Problem((key,), f"some text is needed, not {shown(value)}"))
    if "pipeline" not in given:
        found.append(Problem((), "pipeline, the name of a pipeline, is needed"))
    if not found and "filter" in given:
        try:
            compile_expression(given["filter"])
        except TemplateError as error:
            found.append(Problem(("filter",), str(error)))
    problems += [each._replace(path=("state", *each.path)) for each in found]
    return None if found else StateWritten(given["pipeline"], what[0], given.get("filter"))


_WHEN = {"state": _state, "cron": _cron, "every": _every, "webhook": _webhook, "run_finished": _run_finished}


def _choice(data: Mapping[str, Any], field: str, choices: tuple[str, ...], default: str, found: list[Problem]) -> str:
    value = data.get(field, default)
    if isinstance(value, str) and value in choices:
        return value
    found.append(Problem((field,), f"one of {', '.join(choices)} is needed, not {shown(value)}"))
    return default


def _seconds(data: Mapping[str, Any], field: str, default: float, found: list[Problem]) -> float:
    value = data.get(field, default)
    if is_seconds(value):
        return float(value)
    found.append(Problem((field,), f"a number of seconds from 0 is needed, not {shown(value)}"))
    return default


def _whole(data: Mapping[str, Any], field: str, default: int, least: int, most: int, found: list[Problem]) -> int:
    value = data.get(field, default)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    found.append(Problem((field,), f"a whole number from {least} to {most} is needed, not {shown(value)}"))
    return default


def _tags(data: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    value = data.get("tags", {})
    if isinstance(value, dict) and len(value) <= MAX_TAGS and all(map(_is_tag, (*value, *value.values()))):
        if not {"trigger", "fire"} & value.keys():
            return value
        problems.append(Problem(("tags",), "the tags trigger and fire are set by the trigger itself"))
        return {}
    problems.append(Problem(("tags",), f"at most {MAX_TAGS} texts by name are needed, not {shown(value)}"))
    return {}


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and len(value) <= MAX_TAG and value.isprintable()


def _description(data: Mapping[str, Any], problems: list[Problem]) -> str | None:
    value = data.get("description")
    if value is None or (isinstance(value, str) and len(value) <= MAX_DESCRIPTION):
        return value
    problems.append(Problem(("description",), f"a text of at most {MAX_DESCRIPTION:,} characters is needed"))
    return None


def _check_input(value: Any, kind: str, problems: list[Problem]) -> None:
    if not isinstance(value, dict | str):
        problems.append(Problem(("input",), f"an object, or a template that gives one, is needed, not {shown(value)}"))
        return
    if len(encode_checked(value)) > MAX_INPUT:
        problems.append(Problem(("input",), f"at most {MAX_INPUT:,} bytes are allowed"))
        return
    _check_templates(value, ("input",), NAMES[kind], problems)


def _check_templates(value: Any, path: Path, names: Sequence[str], problems: list[Problem]) -> None:
    wrong: list[tuple[Path, TemplateError]] = []
    compiled = compile_config(value, problems=wrong)
    problems += [Problem((*path, *at), error.problem) for at, error in wrong]
    for at, reference in compiled.references:
        if reference.name not in names:
            message = f"the template names {reference.name!r}; there are {', '.join(names)}"
            problems.append(Problem((*path, *at), message))


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
    """A key that somebody chose for a fire: it becomes a part of the id of its run."""
    checked_run_id(text)
    if len(text) > 80:
        raise InputError(f"key {shown(text)} is too long: at most 80 characters are allowed")
    return text
