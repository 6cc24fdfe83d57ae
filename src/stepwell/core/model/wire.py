"""Queries and what they find, as JSON: how a client on another machine asks a store.

Only reads go this way, and only about runs, workflows and workers. Records are objects with named fields: a reader of another
version ignores unknown fields, and uses defaults for missing ones.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from typing import Any, Literal, NewType, TypeAlias, Union, get_args, get_origin, get_type_hints

from ...base.words import shown
from . import queries, records, rows
from .outputs import Completion
from .status import NodeStatus
from .versions import VERSION_CONTENT, VERSION_INDEX

Reader: TypeAlias = Callable[[Any], Any]
_SENT_RECORDS = frozenset({*VERSION_INDEX.values(), *VERSION_CONTENT.values()})
"""The kinds of small records that may be asked for: stored definitions. The others belong to the server, like its tokens."""


class WireError(ValueError):
    """Data from the wire is malformed."""


def _bytes_out(value: bytes) -> str:
    """Most are JSON texts, and are sent as such."""
    try:
        return "t" + value.decode()
    except UnicodeDecodeError:
        return "b" + base64.b64encode(value).decode()


def _bytes_in(value: Any) -> bytes:
    if not isinstance(value, str) or value[:1] not in ("t", "b"):
        raise WireError(f"expected bytes, got {shown(value)}")
    return value[1:].encode() if value[0] == "t" else base64.b64decode(value[1:])


def to_wire(value: Any) -> Any:
    """Rows and their values as JSON."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes):
        return _bytes_out(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {str(to_wire(key)): to_wire(each) for key, each in value.items()}
    return [to_wire(each) for each in value]


def query_to_wire(query: queries.Query) -> dict[str, Any]:
    """A query, without fields at their default."""
    kind = type(query)
    if kind.__name__ not in _asked():
        raise WireError(f"{kind.__name__} cannot be asked of a server")
    defaults = kind._field_defaults
    given = {name: value for name, value in query._asdict().items() if name not in defaults or value != defaults[name]}
    return {"query": kind.__name__, **{name: to_wire(value) for name, value in given.items()}}


def query_from_wire(data: Any) -> queries.Query:
    name = data.get("query") if isinstance(data, dict) else None
    if not isinstance(name, str) or name not in _asked():
        raise WireError(f"expected a query, one of {', '.join(_asked())}, got {shown(name)}")
    given = {name: value for name, value in data.items() if name != "query"}
    kind, _ = _asked()[data["query"]]
    try:
        _check_numbers(given)
        found: queries.Query = _row_reader(kind)(given)
    except (TypeError, ValueError, KeyError) as error:
        raise WireError(f"{data['query']}: {error}") from None
    if getattr(found, "limit", 1) < 1:
        raise WireError(f"{data['query']}: expected a limit of at least 1")
    if isinstance(found, records.GetRecord | records.ListRecords) and found.kind not in _SENT_RECORDS:
        raise WireError(f"{data['query']}: records of the kind {shown(found.kind)} are not sent")
    return found


def answer_to_wire(answer: Any) -> Any:
    if isinstance(answer, queries.Page):
        return {"rows": [_by_name(row) for row in answer], "cursor": to_wire(answer.cursor)}
    if isinstance(answer, queries.RunPage):
        return {"rows": [_by_name(row) for row in answer.runs], "cursor": to_wire(answer.cursor)}
    return _by_name(answer)


def _by_name(row: Any) -> Any:
    """A row as an object: the reader may know more or fewer of its fields."""
    fields = getattr(row, "_fields", None)
    return to_wire(row) if fields is None else {name: to_wire(getattr(row, name)) for name in fields}


def answer_from_wire(query: queries.Query, data: Any) -> Any:
    try:
        _, read = _asked()[type(query).__name__]
        return read(data)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise WireError(f"the answer to {type(query).__name__}: {error}") from None


@cache
def _asked() -> dict[str, tuple[Any, Reader]]:
    """By name: the queries that may be asked from elsewhere, and how their answers are read."""
    page_of, run = _page_reader, _row_reader(rows.RunRow)
    readers: dict[Any, Reader] = {
        queries.GetRun: _maybe(run),
        queries.ListRuns: lambda data: queries.RunPage(tuple(map(run, data["rows"])), _maybe(tuple)(data["cursor"])),
        queries.CountRuns: _row_reader(queries.CountedRuns),
        queries.ListNodes: page_of(rows.NodeRow),
        queries.ListAttempts: page_of(rows.AttemptRow, tuple),
        queries.GetNodeColumns: _row_reader(queries.NodeColumns),
        queries.GetAttemptColumns: _row_reader(queries.AttemptColumns),
        queries.GetOutputs: _outputs,
        queries.GetGraph: _maybe(_bytes_in),
        queries.GetGraphAges: dict,
        queries.ListJournal: page_of(rows.JournalRow),
        queries.ListLines: page_of(rows.LineRow, tuple),
        queries.ListMarks: page_of(rows.LineRow, tuple),
        queries.ListWorkers: page_of(rows.WorkerRow),
        queries.CountNodes: lambda found: {NodeStatus(status): count for status, count in found.items()},
        queries.ListUnfinished: page_of(queries.Unfinished, tuple),
        records.GetRecord: _maybe(_row_reader(records.RecordRow)),
        records.ListRecords: page_of(records.RecordRow),
    }
    return {query.__name__: (query, read) for query, read in readers.items()}


def _maybe(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _page_reader(kind: Any, cursor: Reader = lambda value: value) -> Reader:
    read = _row_reader(kind)

    def page(data: Any) -> queries.Page[Any]:
        found = data["cursor"]
        return queries.Page(map(read, data["rows"]), None if found is None else cursor(found))

    return page


def _outputs(data: Any) -> queries.Page[tuple[int, Completion]]:
    found = ((index, Completion(number, _bytes_in(output))) for index, (number, output) in data["rows"])
    return queries.Page(found, data["cursor"])


@cache
def _row_reader(kind: Any) -> Reader:
    """Makes a record of a JSON object: its fields are read as their annotations say; unknown ones are left out."""
    hints = get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in kind._fields}

    def read(data: Any) -> Any:
        if isinstance(data, list):  # a record inside of a record
            return kind(*(readers[name](value) for name, value in zip(kind._fields, data, strict=False)))
        if not isinstance(data, dict):
            raise TypeError(f"expected an object, got {shown(data)}")
        return kind(**{name: readers[name](value) for name, value in data.items() if name in readers})

    return read


def _reader(hint: Any) -> Reader:
    if isinstance(hint, NewType):
        return _reader(hint.__supertype__)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        (inner,) = [each for each in arguments if each is not type(None)]
        return _maybe(_reader(inner))
    if origin is Literal:
        return _one_of(arguments)
    if origin is Sequence or (origin is tuple and arguments[-1] is Ellipsis):
        read = _reader(arguments[0])
        return lambda value: tuple(map(read, _list(value)))
    if origin is tuple:
        parts = [_reader(each) for each in arguments]
        return lambda value: tuple(part(each) for part, each in zip(parts, _list(value), strict=True))
    if hint is bytes:
        return _bytes_in
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if hasattr(hint, "_fields"):
        return _row_reader(hint)
    return _plain(hint)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise WireError(f"expected a list, got {shown(value)}")
    return value


def _one_of(choices: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in choices:
            raise WireError(f"expected one of {', '.join(map(str, choices))}, got {shown(value)}")
        return value

    return read


_LARGEST = 2**63


def _check_numbers(data: Any) -> None:
    """Refuse what no store can compare with its numbers. Only rows have some without a sign, such as a seed."""
    if isinstance(data, int) and not -_LARGEST <= data < _LARGEST:
        raise WireError("a number has more than 63 bits and a sign")
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _check_numbers(each)


def _plain(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise WireError(f"expected {getattr(kind, '__name__', kind)}, got {shown(value)}")
        if kind is str and "\x00" in value:
            raise WireError("a text holds a NUL")
        if kind is int and not -_LARGEST <= value < 2 * _LARGEST:
            raise WireError("a number has more than 64 bits")
        return value

    return read
