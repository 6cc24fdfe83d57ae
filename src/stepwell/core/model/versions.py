"""Stored definitions: immutable versions, numbered for each name, one of them active. They are small records of two kinds.

An *index* has, by name, the digest of each version, in order, and which of them was chosen; a *content* is found by its digest.
The index alone decides. A content without an entry in an index, left by a saver that died or came second, is no version.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ...base.codec import decode, encode

_NAMED = re.compile(r"(.+)@([0-9]{1,9})\Z", re.DOTALL)
VersionKind: TypeAlias = Literal["document", "pipeline", "trigger"]
VERSION_KINDS: Final[tuple[VersionKind, ...]] = get_args(VersionKind)
VERSION_INDEX: Final[dict[VersionKind, str]] = {kind: f"{kind} versions" for kind in VERSION_KINDS}
"""The kinds of the records that are an index."""
VERSION_CONTENT: Final[dict[VersionKind, str]] = {kind: f"{kind} contents" for kind in VERSION_KINDS}
"""The kinds of the records that are a content."""


class VersionSaved(NamedTuple):
    number: int
    existed: bool
    active: int
    """The version that is active now."""


class VersionRow(NamedTuple):
    """One version."""

    name: str
    number: int
    digest: str
    size: int
    """Bytes of its content."""
    stored_at: int
    active: bool


class NameRow(NamedTuple):
    """A name that has versions, and which of them is active."""

    name: str
    newest: int
    active: int
    digest: str
    """Of the active one."""
    stored_at: int
    """When the newest was stored."""


class IndexEntry(NamedTuple):
    digest: str
    size: int
    stored_at: int


class VersionIndex(NamedTuple):
    """All versions of one name. The number of a version is its place, from 1."""

    name: str
    entries: tuple[IndexEntry, ...] = ()
    chosen: int | None = None
    """None: the newest is active, also of those to come."""

    @property
    def active(self) -> int:
        return len(self.entries) if self.chosen is None else self.chosen

    def has(self, number: int | None) -> bool:
        return bool(self.entries) and (number is None or 1 <= number <= len(self.entries))

    def number_of(self, digest: str) -> int | None:
        return next((number for number, entry in enumerate(self.entries, 1) if entry.digest == digest), None)

    def row(self, number: int) -> VersionRow:
        return VersionRow(self.name, number, *self.entries[number - 1], number == self.active)

    def rows(self) -> list[VersionRow]:
        """Oldest first."""
        return [self.row(number) for number in range(1, len(self.entries) + 1)]

    def name_row(self) -> NameRow:
        digest, stored_at = self.entries[self.active - 1].digest, self.entries[-1].stored_at
        return NameRow(self.name, len(self.entries), self.active, digest, stored_at)

    def encoded(self) -> bytes:
        return encode({"chosen": self.chosen, "versions": [list(entry) for entry in self.entries]})

    @classmethod
    def decoded(cls, name: str, value: bytes) -> VersionIndex:
        stored = decode(value)
        return cls(name, tuple(IndexEntry(*entry) for entry in stored["versions"]), stored["chosen"])


def parted(text: str) -> tuple[str, int | None]:
    """
    >>> parted("summarise@3"), parted("summarise")
    (('summarise', 3), ('summarise', None))
    """
    match = _NAMED.match(text)
    return (text, None) if match is None else (match[1], int(match[2]))
