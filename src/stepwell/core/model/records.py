"""Small records that are no part of a run (tokens, triggers, the audit log): a key, a value, and a version to compare."""

from __future__ import annotations

from typing import NamedTuple


class PutRecord(NamedTuple):
    """Store a value under a key, or remove the key (`value=None`), if the record still has the `expected` version.

    0 expects that there is none; None accepts whatever is there. Refused as CONFLICT otherwise, its detail the version that is
    there. Where the value is already what is asked for, nothing changes and nothing is refused: so a repeated op gets
    the answer it had before. Two callers that must know which of them was first write values of their own, with a random text.
    """

    kind: str
    key: str
    value: bytes | None
    expected: int | None = None
    follows: bool = False
    """Only if the op before it in the batch has changed something; refused as CONFLICT otherwise, also where nothing is before
    it. So what is noted of a change is there if and only if the change is."""


class RecordPut(NamedTuple):
    version: int
    """The version that is there now; 0: none."""


class RecordRow(NamedTuple):
    key: str
    version: int
    """The store's time of the last change, in microseconds, and larger than that of every record this key had before: a key
    that was removed and added again is never taken for the first one."""
    value: bytes


class GetRecord(NamedTuple):
    kind: str
    key: str


class ListRecords(NamedTuple):
    """The records of a kind, with their values, by key; `after` is the last key of the page before."""

    kind: str
    after: str | None = None
    limit: int = 1_000
