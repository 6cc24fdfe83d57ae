"""One node of the frozen form: its fields, and the values they may have.

Only types and spelling are checked here, so that a `NodeSpec` can be made. Whether its options make sense is checked in
`check.py`, for every graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ...base.clock import SECONDS_NEEDED, is_seconds
from ...base.codec import encode, json_path
from ...base.ids import NodeId
from ...base.words import briefly
from ...errors import NotJson
from .check import GraphProblem
from .document import node_from_document
from .spec import MAX_NAME, NODE_OPTIONS, NodeSpec

Complaint: TypeAlias = tuple[str, str]
"""The rest of the path below the field, and what is wrong there."""
Check: TypeAlias = Callable[[Any], "list[Complaint]"]

_JOB = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z"
_HANDLER = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}\Z"
_FINE: list[Complaint] = []


def read_node(
    node: Any, fields: Any, problems: list[GraphProblem], copied: Callable[[Any], Any]
) -> tuple[NodeSpec, int | None]:
    """The node, and its position if it has one. Wrong fields are left out, so that the rest can be checked too."""

    def report(message: str, *field: str, below: str = "") -> None:
        problems.append(GraphProblem(str(node), message, path=json_path(("nodes", str(node), *field)) + below))

    for _, message in _id(node):
        report(message)
    if not isinstance(fields, Mapping):
        report(f"expected an object, got {shown(fields)}")
        fields = {"name": node, "depends_on": []}
    known: dict[str, Any] = {}
    for field, value in fields.items():
        check = FIELDS.get(field) if field != "job" or fields.get("templated") is not True else _job_or_handler
        if check is None:
            report(f"there is no such field; there are {', '.join(FIELDS)}", str(field))
        elif value is not None or field not in _NULLABLE:
            complaints = check(value)
            for below, message in complaints:
                report(message, field, below=below)
            if not complaints:
                known[field] = value
    for field in ("name", "depends_on"):
        if field not in fields:
            report("this field is missing", field)
    if "depends_on" not in known:
        known.pop("needs", None)  # whether they are ancestors is unknown
    if known.get("args"):
        known["args"] = copied(known["args"])
    position = known.pop("position", None)
    return node_from_document({**known, "id": NodeId(str(node))}), position


def shown(value: object) -> str:
    """A value that was not expected, in the words of JSON and not too long."""
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else briefly(value)


def _needed(what: str, value: object) -> list[Complaint]:
    return [("", f"expected {what}, got {shown(value)}")]


def _below(field: str) -> str:
    return json_path((field,)).removeprefix("$")


def _is(needed: str, fits: Callable[[Any], bool]) -> Check:
    """The check of a value that has no parts."""
    return lambda value: _FINE if fits(value) else _needed(needed, value)


def _is_text_like(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.match(value) is not None


def _is_printable(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME and text.isprintable()


def _text(value: Any) -> list[Complaint]:
    if not isinstance(value, str) or not value or value.isspace():
        return _needed("some text", value)
    return _FINE if value.isascii() else _json(value)


def _name(value: Any) -> list[Complaint]:
    if isinstance(value, str) and value and not _is_printable(value):
        return _needed(f"a name {_PRINTABLE}", value)
    return _text(value)


def _names(value: Any) -> list[Complaint]:
    if not isinstance(value, list | tuple):
        return _needed("a list of strings", value)
    return [(f"[{place}]", message) for place, each in enumerate(value) for _, message in _text(each)]


def _args(value: Any) -> list[Complaint]:
    if not isinstance(value, Mapping):
        return _needed("an object", value)
    return [(".ctx", "a job gets its context by itself")] if "ctx" in value else _json(value)


def _json(value: Any) -> list[Complaint]:
    try:
        encode(dict(value) if isinstance(value, Mapping) else value)
    except NotJson as error:
        return [(error.path.removeprefix("$"), error.message)]
    return _FINE


def _retry(value: Any) -> list[Complaint]:
    if not isinstance(value, Mapping):
        return _needed("an object with max_attempts", value)
    found: list[Complaint] = []
    for field, each in value.items():
        check = RETRY_FIELDS.get(field)
        if check is None:
            found.append((_below(str(field)), f"there is no such field; there are {', '.join(RETRY_FIELDS)}"))
        elif each is not None or field != "retry_on":
            found += [(_below(field) + below, message) for below, message in check(each)]
    if "max_attempts" not in value:
        found.append((".max_attempts", "this field is missing"))
    return found


_PRINTABLE = f"of 1 to {MAX_NAME} printable characters"
_id = _is(f"an id {_PRINTABLE}", lambda value: isinstance(value, str) and _is_printable(value))
_job = _is("a job of the form package.module:function", _is_text_like(re.compile(_JOB)))
_job_or_handler = _is(
    "the name of a handler, or a job of the form package.module:function",
    _is_text_like(re.compile(f"{_JOB}|{_HANDLER}")),
)
_seconds = _is(SECONDS_NEEDED, is_seconds)
FIELDS: Mapping[str, Check] = {
    "name": _name,
    "job": _job,
    "args": _args,
    "depends_on": _names,
    "position": _is("a whole number, not negative", lambda value: type(value) is int and value >= 0),
    "needs": _names,
    "kind": _text,
    "body": _text,
    "templated": _is("true or false", lambda value: isinstance(value, bool)),
    "own_key": _is("true or false", lambda value: isinstance(value, bool)),
    **{option.name: _is(option.expected, option.fits) for option in NODE_OPTIONS if option.name in NodeSpec._fields},
    "retry": _retry,
    "was": _names,
}
RETRY_FIELDS: Mapping[str, Check] = {
    "max_attempts": _is("a whole number of at least 1", lambda value: type(value) is int and value >= 1),
    "base_delay": _seconds,
    "max_delay": _seconds,
    "retry_on": _names,
}
_NULLABLE = {"job", "position", *(option.name for option in NODE_OPTIONS if option.default is None)}
