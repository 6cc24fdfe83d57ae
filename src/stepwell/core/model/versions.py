"""Stored definitions: immutable versions, numbered for each name, one of them active."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

_NAMED = re.compile(r"(.+)@([0-9]{1,9})\Z", re.DOTALL)
VersionKind: TypeAlias = Literal["document", "pipeline", "trigger"]


class SaveVersion(NamedTuple):
    """Store a definition under a name, as its next version, unless a version with this digest exists. The newest version is
    active unless another was chosen."""

    kind: VersionKind
    name: str
    digest: str
    body: bytes


class ActivateVersion(NamedTuple):
    """Choose the active version of a name; with None it is the newest again, also of those to come.

    Refused as UNKNOWN if there is no such version.
    """

    kind: VersionKind
    name: str
    number: int | None


class VersionSaved(NamedTuple):
    number: int
    existed: bool
    active: int
    """The version that is active now."""


class VersionActivated(NamedTuple):
    number: int


class VersionRow(NamedTuple):
    """One version; without its body in lists."""

    name: str
    number: int
    digest: str
    size: int
    """Bytes of its body."""
    stored_at: int
    active: bool
    body: bytes | None = None


class NameRow(NamedTuple):
    """A name that has versions, and which of them is active."""

    name: str
    newest: int
    active: int
    digest: str
    """Of the active one."""
    stored_at: int
    """When the newest was stored."""


class GetVersion(NamedTuple):
    """A version with its body: by its number, by its digest, or else the active one. None if there is none."""

    kind: VersionKind
    name: str
    number: int | None = None
    digest: str | None = None


class ListVersions(NamedTuple):
    """The versions of a name, oldest first; `after` is the last number of the page before."""

    kind: VersionKind
    name: str
    after: int = 0
    limit: int = 1_000


class ListNames(NamedTuple):
    """All names that have versions, in order; `after` is the last of the page before."""

    kind: VersionKind
    after: str | None = None
    limit: int = 1_000


def parted(text: str) -> tuple[str, int | None]:
    """
    >>> parted("summarise@3"), parted("summarise")
    (('summarise', 3), ('summarise', None))
    """
    match = _NAMED.match(text)
    return (text, None) if match is None else (match[1], int(match[2]))
