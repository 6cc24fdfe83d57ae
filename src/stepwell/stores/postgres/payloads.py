"""Rows, payloads and texts on their way in. Large payloads are kept once for each run, and rows hold references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from ...core.model import LayoutRow
from ...core.store.rules.payloads import is_large, reference

Row = tuple[str | None, int, int, int, str | None, bytes | None, bytes | None, bytes | None]
"""Claim, ordinal, code, number and kind (of an error its class, of a skipped node the reason), and up to three payloads."""


_ARRAY = Struct("!iiIii")
"""Dimensions, whether NULLs may be there, the type of the elements, how many there are, the index of the first."""
_BYTEA, _BYTEA_ARRAY = 17, 1001
_NULL = b"\xff\xff\xff\xff"


class ByteaArray(bytes):
    """A `bytea[]` as PostgreSQL sends it: hexadecimal text is twice as long, and the server reads it letter by letter.

    >>> len(ByteaArray.of([b"payload", None]))
    35
    """

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> ByteaArray:
        parts = [_ARRAY.pack(1, 1, _BYTEA, len(values), 1)]
        for value in values:
            parts += (_NULL,) if value is None else (len(value).to_bytes(4, "big"), value)
        return cls(b"".join(parts))


class _ByteaArrayDumper(Dumper):
    format, oid = Format.BINARY, _BYTEA_ARRAY

    def dump(self, obj: ByteaArray) -> ByteaArray:
        return obj


psycopg.adapters.register_dumper(ByteaArray, _ByteaArrayDumper)


class ArrayPacker:
    """The arrays that the rows of a batch's sets are cut from, and the large payloads of the batch."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self.large: list[bytes] = []

    @property
    def size(self) -> int:
        return len(self._rows)

    def add(
        self,
        first: bytes | None = None,
        second: bytes | None = None,
        third: bytes | None = None,
        *,
        claim: str | None = None,
        ordinal: int = 0,
        code: int = 0,
        number: int = 0,
        kind: str | None = None,
    ) -> None:
        self._rows.append((claim, ordinal, code, number, kind, first, second, third))

    def shorten(self, payload: bytes | None, place: int, large: list[tuple[int, int]]) -> bytes | None:
        """What a row holds of a payload. `large` gets those that are to be kept: (row of its set, number from 1)."""
        if payload is None or not is_large(payload):
            return payload
        self.large.append(payload)
        large.append((place, len(self.large)))
        return reference(payload)

    def arrays(self) -> tuple[str | ByteaArray | None, ...]:
        """As the function takes them; None where no row has anything. Written here: the driver takes ten times as long."""
        if not self._rows:
            return (None,) * 9
        claims, ordinals, codes, numbers, kinds, first, second, third = zip(*self._rows, strict=True)
        named = _has_any(claims)
        return (
            texts(claims) if named else None,
            *(_numbers(each) if named else None for each in (ordinals, codes, numbers)),
            texts(kinds) if _has_any(kinds) else None,
            ByteaArray.of(first),
            *(ByteaArray.of(each) if _has_any(each) else None for each in (second, third)),
            ByteaArray.of(self.large) if self.large else None,
        )


def graph_columns(start: int, rows: Sequence[LayoutRow]) -> dict[str, Any]:
    """Rows of a graph, column by column: lanes are numbered from 1, a parent or a need stands beside its child."""
    lanes = {lane: number for number, lane in enumerate(dict.fromkeys(row.lane for row in rows), 1)}
    parents = [(parent, start + place) for place, row in enumerate(rows) for parent in dict.fromkeys(row.parents)]
    needs = [(need, start + place) for place, row in enumerate(rows) for need in dict.fromkeys(row.needs)]
    columns: dict[str, Any] = {
        "lanes": [lane[:3] for lane in lanes],
        "ids": texts([row.id for row in rows]),
        "lane": _numbers(lanes[row.lane] for row in rows),
        "ranks": _numbers(row.rank for row in rows),
        "counts": _numbers(len(row.parents) for row in rows),
        "removed": _numbers(start + place for place, row in enumerate(rows) if row.removed),
    }
    for name, pairs in (("parents", parents), ("needs", needs)):
        columns[name] = [_numbers(before for before, _ in pairs), _numbers(child for _, child in pairs)]
    return columns


def _has_any(values: Sequence[Any]) -> bool:
    return values.count(None) < len(values)


def _numbers(values: Iterable[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def texts(values: Sequence[str | None]) -> str:
    """
    >>> print(texts(["a", None, 'say "hi"']))
    {"a",NULL,"say \\"hi\\""}
    """
    written = {
        value: "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in set(values)
    }
    return f"{{{','.join([written[value] for value in values])}}}"


NOWHERE = "\N{REPLACEMENT CHARACTER} no text"
"""Asked for in place of a text that nothing stored can have."""


def storable(text: str) -> str:
    """The text, or one that nothing is called: PostgreSQL has no NUL, and half of a character is no text."""
    if text.isprintable():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return NOWHERE
    return NOWHERE if "\x00" in text else text
