"""Types that are one text in JSON: dates, times, exact numbers, bytes, paths. And texts as keys of objects."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, NamedTuple
from uuid import UUID

from ..words import briefly
from .misfit import Wrong

_DURATION = re.compile(
    r"(?P<sign>[+-])?P(?=.)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<fraction>\d+))?S)?)?\Z"
)


class Leaf(NamedTuple):
    """How a type is written as a text, and read."""

    name: str
    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _duration_text(value: timedelta) -> str:
    """ISO 8601, exact to the microsecond.

    >>> _duration_text(timedelta(days=1, seconds=90, milliseconds=500)), _duration_text(timedelta(0))
    ('P1DT90.5S', 'PT0S')
    """
    sign, left = ("-", -value) if value < timedelta(0) else ("", value)
    days = f"{left.days}D" if left.days else ""
    fraction = f".{left.microseconds:06}".rstrip("0") if left.microseconds else ""
    seconds = f"T{left.seconds}{fraction}S" if left.seconds or fraction or not days else ""
    return f"{sign}P{days}{seconds}"


def _duration(text: str) -> timedelta:
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(text)
    parts = {name: int(match[name] or 0) for name in ("weeks", "days", "hours", "minutes", "seconds")}
    microseconds = int(f"{(match['fraction'] or '')[:6]:0<6}")
    value = timedelta(**parts, microseconds=microseconds)
    return -value if match["sign"] == "-" else value


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


def _bytes_text(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode("ascii")


LEAVES: dict[type, Leaf] = {
    datetime: Leaf("datetime", datetime.isoformat, datetime.fromisoformat),
    date: Leaf("date", date.isoformat, date.fromisoformat),
    time: Leaf("time", time.isoformat, time.fromisoformat),
    timedelta: Leaf("timedelta", _duration_text, _duration),
    Decimal: Leaf("Decimal", str, Decimal),
    UUID: Leaf("UUID", str, UUID),
    bytes: Leaf("bytes", _bytes_text, _bytes),
    bytearray: Leaf("bytearray", _bytes_text, lambda text: bytearray(_bytes(text))),
    **{kind: Leaf(kind.__name__, str, kind) for kind in (PurePath, PurePosixPath, PureWindowsPath, Path)},
}
"""By exact type."""
LEAVES |= {PosixPath: LEAVES[Path], WindowsPath: LEAVES[Path]}

_FORMS = {
    datetime: "a datetime in ISO 8601, like '2026-01-31T12:00:00+00:00'",
    date: "a date in ISO 8601, like '2026-01-31'",
    time: "a time in ISO 8601, like '12:30:00'",
    timedelta: "a duration in ISO 8601, like 'P1DT90S'",
    Decimal: "a decimal number as text, like '12.50'",
    UUID: "a UUID as text",
    bytes: "bytes, in JSON as base64 text",
    bytearray: "bytes, in JSON as base64 text",
}


def read_leaf(kind: type, value: Any) -> Any:
    """The value of a text; Wrong if it is not of this type."""
    if isinstance(value, str):
        try:
            return LEAVES[kind].read(value)
        except (ValueError, InvalidOperation, binascii.Error, OverflowError):
            pass
    raise needed(_FORMS.get(kind, f"{LEAVES[kind].name} as text"), value)


def needed(what: str, value: object) -> Wrong:
    return Wrong(f"expected {what}, got {briefly(value)} ({type(value).__name__})")


# Keys of JSON objects are texts. Numbers, booleans and types that are one text can be keys, too.


def key_text(value: Any) -> Any:
    """A key as JSON; a value that cannot be one is returned unchanged, to be refused."""
    if isinstance(value, Enum):
        return key_text(value.value)
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if isinstance(value, float) else str(int(value))
    leaf = LEAVES.get(type(value))
    return value if leaf is None else leaf.write(value)


def key_data(text: str) -> list[Any]:
    """What a key may have been before it became a text: the text itself, a number, a truth value."""
    meanings: list[Any] = [text]
    if text in ("true", "false"):
        meanings.append(text == "true")
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if key_text(number) == text:
            meanings.append(number)
    return meanings
