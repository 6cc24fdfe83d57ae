"""One node of a document: its fields and their values."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from ...base.clock import POSITIVE_SECONDS_NEEDED, SECONDS_NEEDED, is_seconds
from ...base.forms.problems import Path, Problems
from ...core.graph import MAX_NAME, NODE_OPTIONS, Option, Retry, is_name
from ...handlers import Handler

Reader: TypeAlias = Callable[[Any, Path, Problems], Any]
"""Reads the value of a field; None if something is wrong with it, which is reported."""
OPTIONS = {option.in_documents: option for option in NODE_OPTIONS if option.in_documents is not None}
"""The options of nodes by the names of their fields."""
HANDLER_OPTIONS = {name: option for name, option in OPTIONS.items() if option.name in Handler.__dataclass_fields__}
"""Those whose default is what the handler says."""
FIELDS = ("id", "handler", "config", "dependencies", "name", "description", *OPTIONS)
MEANS = {"job": "handler", "args": "config", "depends_on": "dependencies"} | {
    option.name: field for field, option in OPTIONS.items() if option.name != field
}
"""The names of dynamic workflows for fields of a node. Both are accepted."""
_RETRY_FIELDS = ("max_attempts", "base_delay", "max_delay", "retry_on")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_ID = 100
MAX_DESCRIPTION = 10_000
RESERVED = frozenset(
    {
        *("input", "run", "loop", "range", "self", "secret", "caller", "context", "varargs", "kwargs"),
        *("true", "false", "none", "null", "elif", "endif", "endfor", "raw", "endraw", "recursive", "ignore"),
        *dir(dict),
        *map(str.lower, keyword.kwlist),
        *keyword.kwlist,
    }
)
"""Words that mean something else in a template, or are methods of an object."""


UNREADABLE: Mapping[str, Any] = MappingProxyType({})
"""Stands for a config that is not an object, so that missing fields are not reported, too."""


class Node(NamedTuple):
    """A node of a document; None for fields that are left out."""

    place: int
    written: Mapping[str, str]
    """The names under which fields are written, where they have another one."""
    config: Mapping[str, Any]
    id: str = ""
    handler: str = ""
    dependencies: tuple[str, ...] = ()
    name: str | None = None
    description: str | None = None
    options: Mapping[str, Any] = MappingProxyType({})
    """Those that are written, as fields of a NodeSpec."""

    def path(self, field: str, *below: str | int) -> Path:
        return ("nodes", self.place, self.written.get(field, field), *below)


def read_node(data: Any, place: int, problems: Problems) -> Node | None:
    """A node, with defaults for wrong fields, so that the rest can be checked; None if it is not an object."""
    at: Path = ("nodes", place)
    if not isinstance(data, dict):
        problems.expected(at, "an object", data)
        return None
    written: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for key, value in data.items():
        name = str(MEANS.get(key, key))
        if name not in _READ:
            problems.unknown((*at, key), f"a node has no field {key!r}", key, (*FIELDS, *MEANS))
        elif name in fields:
            problems.add((*at, key), f"{key} means {name}, which is there already: say it once", found=key)
        else:
            fields[name] = value
            if key != name:
                written[name] = key
    read: dict[str, Any] = {}
    for name, value in fields.items():
        found = _READ[name](value, (*at, written.get(name, name)), problems)
        if found is not None:
            read[name] = found
    for name in ("id", "handler"):
        if name not in fields:
            problems.add(at, f"a node needs its {name}", expected=name)
    options = {option.name: option.of_code(read.pop(field)) for field, option in OPTIONS.items() if field in read}
    return Node(place, written, **({"config": UNREADABLE if "config" in fields else {}} | read), options=options)


def _id(value: Any, path: Path, problems: Problems) -> str | None:
    if not isinstance(value, str) or not _ID.match(value) or len(value) > MAX_ID:
        hint = "" if not isinstance(value, str) or "-" not in value else ": a hyphen would be a minus in a template"
        expected = f"an id of letters, digits and _ that begins with no digit (at most {MAX_ID} characters)"
        problems.add(path, f"{expected} is needed{hint}", found=value, expected=expected)
        return None
    if value in RESERVED or value.startswith("__"):
        problems.add(path, f"{value!r} is reserved: it means something else in a template", found=value)
        return None
    return value


def needs(expected: str, fits: Callable[[Any], bool]) -> Reader:
    """A reader that accepts what fits and reports everything else."""

    def read(value: Any, path: Path, problems: Problems) -> Any:
        if fits(value):
            return value
        problems.expected(path, expected, value)
        return None

    return read


def one_of(choices: tuple[str, ...]) -> Reader:
    return needs(f"one of {', '.join(choices)}", choices.__contains__)


def _dependencies(value: Any, path: Path, problems: Problems) -> tuple[str, ...] | None:
    """Ids, each once."""
    if isinstance(value, str):
        problems.add(path, f"a list of ids is needed: write [{value!r}]", found=value, expected="a list of ids")
        return None
    if not isinstance(value, list):
        problems.expected(path, "a list of ids", value)
        return None
    for place, each in enumerate(value):
        if not isinstance(each, str):
            problems.expected((*path, place), "the id of a node", each)
            return None
    return tuple(dict.fromkeys(value))


def _retry(value: Any, path: Path, problems: Problems) -> Retry | None:
    if type(value) is int and value >= 1:
        return Retry(value)
    if not isinstance(value, dict):
        problems.expected(path, "a whole number of attempts, or an object with max_attempts,", value)
        return None
    count = len(problems)
    for key in value:
        if key not in _RETRY_FIELDS:
            problems.unknown((*path, key), f"retry has no field {key!r}", key, _RETRY_FIELDS)
    attempts: Any = value.get("max_attempts")
    if type(attempts) is not int or attempts < 1:
        problems.expected((*path, "max_attempts"), "a whole number of at least 1", attempts)
    base, longest = value.get("base_delay", 1.0), value.get("max_delay", 60.0)
    if not is_seconds(base, positive=True):
        problems.expected((*path, "base_delay"), POSITIVE_SECONDS_NEEDED, base)
    if not is_seconds(longest):
        problems.expected((*path, "max_delay"), SECONDS_NEEDED, longest)
    elif is_seconds(base) and longest < base:
        problems.expected((*path, "max_delay"), f"at least base_delay, which is {base:g},", longest)
    names = value.get("retry_on")
    if names is not None and not (isinstance(names, list) and names and all(isinstance(each, str) for each in names)):
        problems.expected(
            (*path, "retry_on"), "a list of names of exceptions, or of functions that are asked about one,", names
        )
    if len(problems) > count:
        return None
    return Retry(attempts, float(base), float(longest), None if names is None else tuple(names))


def _is_written(option: Option, value: Any) -> bool:
    return value is not None and option.fits(value)


NAME_NEEDED = f"a name of 1 to {MAX_NAME} printable characters"
seconds = needs(POSITIVE_SECONDS_NEEDED, partial(is_seconds, positive=True))
description = needs(
    f"a text of at most {MAX_DESCRIPTION:,} characters",
    lambda value: isinstance(value, str) and len(value) <= MAX_DESCRIPTION,
)
_READ: Mapping[str, Reader] = {
    "id": _id,
    "handler": needs("some text", lambda value: isinstance(value, str) and bool(value.strip())),
    "config": needs("an object", lambda value: isinstance(value, dict)),
    "dependencies": _dependencies,
    "name": needs(NAME_NEEDED, is_name),
    "description": description,
    **{field: needs(option.expected, partial(_is_written, option)) for field, option in OPTIONS.items()},
    "retry": _retry,
}


def canonical_node(node: Node) -> dict[str, Any]:
    """The canonical form of a node: the names of documents, without defaults."""
    made = {
        "id": node.id,
        "handler": node.handler,
        "config": node.config or None,
        "dependencies": list(node.dependencies) or None,
        "name": None if node.name == node.id else node.name,
        "description": node.description,
    }
    for field, option in OPTIONS.items():
        value = node.options.get(option.name)
        if value != option.default or field in HANDLER_OPTIONS:
            made[field] = _canonical(value)
    return {field: value for field, value in made.items() if value is not None}


def _canonical(value: Any) -> Any:
    if isinstance(value, Retry):
        return _canonical_retry(value)
    return plain_number(value) if isinstance(value, float) else value


def _canonical_retry(retry: Retry) -> Any:
    names = retry.names()
    if names is None and retry == Retry(retry.max_attempts):
        return retry.max_attempts
    made: dict[str, Any] = {"max_attempts": retry.max_attempts}
    base, longest = retry.delays()
    if base != 1.0:
        made["base_delay"] = plain_number(base)
    if longest != 60.0:
        made["max_delay"] = plain_number(longest)
    return made if names is None else made | {"retry_on": sorted(names)}


def plain_number(value: float) -> float | int:
    return int(value) if value == int(value) else value
