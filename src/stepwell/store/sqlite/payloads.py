"""Payloads on their way in and out: many small ones as one parameter, large ones once for each run, by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..rules.payloads import REFERENCE, is_large, reference

if TYPE_CHECKING:
    import apsw


class Packer:
    """Joins the payloads of a batch into one parameter; statements cut them out again with substr().

    One parameter means one step of the database, however many rows there are, and so one release of Python's lock.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.large = False
        """Some of them are references now: what they refer to has to be kept."""

    def add(self, payload: bytes | None) -> tuple[int, int] | tuple[None, None]:
        """(first byte counted from 1, length) of the payload in `joined`; nulls when there is none."""
        if payload is None:
            return None, None
        if is_large(payload):
            payload = reference(payload)
            self.large = True
        start = self._size + 1
        self._parts.append(payload)
        self._size += len(payload)
        return start, len(payload)

    @property
    def joined(self) -> bytes:
        # Never empty: of an empty blob, substr() cuts NULL and not an empty payload.
        return b"".join(self._parts) or b"\x00"


def pack(lines: Iterable[tuple[str, bytes]]) -> bytes:
    """Lines that come with a settlement, as one value."""
    return b"".join(b"%s %d\n%s" % (kind.encode(), len(data), data) for kind, data in lines)


def unpack(packed: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(packed):
        start = packed.index(b"\n", at) + 1
        kind, _, size = packed[at : start - 1].rpartition(b" ")
        at = start + int(size)
        yield kind.decode(), packed[start:at]


def keep(db: apsw.Connection, run: int, *payloads: bytes | None) -> None:
    """Keep those that are large, each once; the rows of the run hold references to them."""
    for payload in payloads:
        if payload is not None and is_large(payload):
            given = (run, hashlib.sha256(payload).digest(), payload)
            db.execute("INSERT OR IGNORE INTO blob (run, hash, data) VALUES (?, ?, ?)", given)


_SHARE = """
INSERT OR IGNORE INTO blob (run, hash, data)
SELECT :run, b.hash, b.data FROM ({values}) v CROSS JOIN blob b ON b.run = :origin AND b.hash = substr(v.value, 2)
 WHERE substr(v.value, 1, 1) = x'00'
"""


def share_references(db: apsw.Connection, query: str, parameters: Mapping[str, object]) -> None:
    """The rows whose column `value` `query` gives are copies of another run's: what they refer to is this run's too."""
    db.execute(_SHARE.format(values=query), parameters)


def resolve(db: apsw.Connection, run: int, value: bytes | None) -> bytes | None:
    """The payload that a row of the run holds or points at."""
    if value is None or value[:1] != REFERENCE:
        return value
    row = db.execute("SELECT data FROM blob WHERE run = ? AND hash = ?", (run, value[1:])).fetchone()
    assert row is not None, "a payload is referred to and missing"
    return bytes(row[0])
