"""Storing and reading payloads: small ones of a batch as one parameter, large ones once per run, by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ...core.store.rules.payloads import REFERENCE, is_large, reference

if TYPE_CHECKING:
    import apsw


class Packer:
    """Joins the payloads of a batch into one parameter, from which statements cut them with substr().

    However many rows there are, the database takes one step and Python's lock is released once.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.large = False
        """Whether some payloads became references: `keep` has to store what they refer to."""

    def add(self, payload: bytes | None) -> tuple[int, int] | tuple[None, None]:
        """Return where the payload is in `joined`: its first byte, counted from 1, and its length. None has neither."""
        if payload is None:
            return None, None
        self.large = self.large or is_large(payload)
        payload = held_form(payload)
        start = self._size + 1
        self._parts.append(payload)
        self._size += len(payload)
        return start, len(payload)

    @property
    def joined(self) -> bytes:
        # Never empty: substr() of an empty blob is NULL, not an empty payload.
        return b"".join(self._parts) or b"\x00"


def pack(lines: Iterable[tuple[str, bytes]]) -> bytes:
    """Join the lines of a settlement into one value."""
    return b"".join(b"%s %d\n%s" % (kind.encode(), len(data), data) for kind, data in lines)


def unpack(packed: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(packed):
        start = packed.index(b"\n", at) + 1
        kind, _, size = packed[at : start - 1].rpartition(b" ")
        at = start + int(size)
        yield kind.decode(), packed[start:at]


def held_form(payload: bytes) -> bytes:
    """What a row holds: the payload itself, or a reference if it is large."""
    return reference(payload) if is_large(payload) else payload


def keep(db: apsw.Connection, run: int, *payloads: bytes | None) -> None:
    """Store the large ones, each once; the rows of the run refer to them."""
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
    """Copy from the run `origin` to `run` the payloads that references in the column `value` of `query` point to."""
    db.execute(_SHARE.format(values=query), parameters)


def resolve(db: apsw.Connection, run: int, value: bytes | None) -> bytes | None:
    """Return the payload that a row of the run holds or refers to."""
    if value is None or value[:1] != REFERENCE:
        return value
    row = db.execute("SELECT data FROM blob WHERE run = ? AND hash = ?", (run, value[1:])).fetchone()
    assert row is not None, "a row refers to a payload that is not there"
    return bytes(row[0])
