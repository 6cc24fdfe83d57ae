"""Payloads on their way in and out: many small ones as one parameter, large ones once, by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

LARGE = 16 * 1024
"""From this size on a payload is kept in the table `blob` and the row holds a reference."""
_MARK = b"\x00"
"""What a reference begins with. No JSON text does; other payloads that do are kept as large ones, whatever their size."""


class Packer:
    """Joins the payloads of a batch into one parameter; statements cut them out again with substr().

    One parameter means one step of the database, however many rows there are, and so one release of Python's lock.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, payload: bytes | None) -> tuple[int, int] | tuple[None, None]:
        """(first byte counted from 1, length) of the payload in `joined`; nulls when there is none."""
        if payload is None:
            return None, None
        if is_large(payload):
            payload = keep(self._db, payload)
        start = self._size + 1
        self._parts.append(payload)
        self._size += len(payload)
        return start, len(payload)

    @property
    def joined(self) -> bytes:
        # Never empty: of an empty blob, substr() cuts NULL and not an empty payload.
        return b"".join(self._parts) or b"\x00"


def is_large(payload: bytes) -> bool:
    return len(payload) >= LARGE or payload[:1] == _MARK


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


def keep(db: apsw.Connection, payload: bytes) -> bytes:
    """Keep a large payload once and return what the row holds instead."""
    key = hashlib.sha256(payload).digest()
    db.execute(
        "INSERT INTO blob (hash, data, uses) VALUES (?, ?, 1) ON CONFLICT (hash) DO UPDATE SET uses = uses + 1",
        (key, payload),
    )
    return _MARK + key


def forget(db: apsw.Connection, *payloads: bytes | None) -> None:
    """Undo `keep` for those of the payloads that are large: the row that was to point at them was refused."""
    for payload in payloads:
        if payload is not None and is_large(payload):
            forget_references(db, "SELECT ? AS value", (_MARK + hashlib.sha256(payload).digest(),))


def forget_references(db: apsw.Connection, query: str, parameters: tuple[object, ...]) -> None:
    """Count down the large payloads that the column `value` of `query` refers to: its rows are about to go."""
    found = f"SELECT substr(value, 2) AS hash FROM ({query}) WHERE substr(value, 1, 1) = x'00'"
    db.execute(
        f"UPDATE blob SET uses = uses - t.gone FROM (SELECT hash, count(*) AS gone FROM ({found}) GROUP BY hash) t"
        " WHERE blob.hash = t.hash",
        parameters,
    )
    if db.changes():
        db.execute(f"DELETE FROM blob WHERE uses <= 0 AND hash IN ({found})", parameters)


def remember_references(db: apsw.Connection, query: str, parameters: Mapping[str, object]) -> None:
    """Count up the large payloads that the column `value` of `query` refers to: its rows are copies."""
    found = f"SELECT substr(value, 2) AS hash FROM ({query}) WHERE substr(value, 1, 1) = x'00'"
    db.execute(
        f"UPDATE blob SET uses = uses + t.more FROM (SELECT hash, count(*) AS more FROM ({found}) GROUP BY hash) t"
        " WHERE blob.hash = t.hash",
        parameters,
    )


def resolve(db: apsw.Connection, value: bytes | None) -> bytes | None:
    """The payload that a row holds or points at."""
    if value is None or value[:1] != _MARK:
        return value
    row = db.execute("SELECT data FROM blob WHERE hash = ?", (value[1:],)).fetchone()
    assert row is not None, "a payload is referred to and missing"
    return bytes(row[0])
