"""The audit log: who asked for a change, when, from where and why.

An edge says who acts (`acting_as`): the server for each request, the command line, a trigger, a request to a run in Python.
What makes the change commits it together with its entry (`noted`), in one batch: neither is there without the other. A program
that starts runs acts for nobody, unless it says so, and pays nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..base.clock import SECOND
from ..base.codec import decode, encode
from ..base.ids import time_ordered
from ..base.masking import mask
from ..base.words import iso, shown
from ..core.model import ListRecords, PutRecord, RecordRow
from ..core.store import Store
from ..errors import InputError, StoreCorrupt

if TYPE_CHECKING:
    from ..answers.audit_log import AuditEntryRecord, TargetKind, Via

ENTRY = "audit"
"""The kind of all entries, by when they were made, the newest first."""
ENTRY_OF_RUN = "audit_run"
"""The kind of those about runs, by run."""
MAX_REASON = 1_000
PAGE = 1_000
_LAST = (1 << 56) - 1


FROM = "X-Stepwell-From"
"""The header that says what a request is made with: `cli`, `python` or `ui`."""
REASON = "X-Stepwell-Reason"
"""The header with the reason of a request: UTF-8, as percent-encoding writes it or plain."""


class Actor(NamedTuple):
    """Who asks for changes."""

    name: str
    via: Via
    token: str | None = None
    """The id of its token."""


class _Acting(NamedTuple):
    actor: Actor
    reason: str | None


_acting: ContextVar[_Acting | None] = ContextVar("stepwell_acting", default=None)


@contextmanager
def acting_as(actor: Actor, reason: str | None = None) -> Iterator[None]:
    """What is asked for inside is asked for by this actor, for this reason."""
    token = _acting.set(_Acting(actor, checked_reason(reason)))
    try:
        yield
    finally:
        _acting.reset(token)


@contextmanager
def asking(reason: str | None) -> Iterator[None]:
    """A request to a run. The actor is the one that was set, or else this program."""
    acting = _acting.get() or _Acting(local_actor("python"), None)
    with acting_as(acting.actor, acting.reason if reason is None else reason):
        yield


def nobody_acts() -> None:
    """From here on, in this context: bodies act for nobody, whoever had their run begin."""
    _acting.set(None)


def acting() -> tuple[Actor, str | None] | None:
    """Who acts here, and why; None if nobody does."""
    return _acting.get()


@cache
def local_actor(via: Via) -> Actor:
    """Who runs this program."""
    import getpass
    import platform

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for it
        user = str(os.getuid())
    return Actor(f"{user}@{platform.node()}", via)


def checked_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    if not isinstance(reason, str) or len(reason) > MAX_REASON or not reason.isprintable():
        raise InputError(f"reason={shown(reason)}: expected one line of at most {MAX_REASON:,} printable characters")
    return mask(reason.strip()) or None


def noted(action: str, kind: TargetKind, target: str, **options: Any) -> list[PutRecord]:
    """The ops that note a change. They go into its batch, directly after its op; none if nobody acts here.

    Each call gives another entry, so what is sent again is the same ops. Options are never inputs or secrets.
    """
    acting = _acting.get()
    if acting is None:
        return []
    actor, reason = acting
    entry = {
        "who": actor.name,
        "token": actor.token,
        "via": actor.via,
        "action": action,
        "kind": kind,
        "target": target,
    }
    value = encode({**entry, "options": options, "reason": reason})
    key = _key(time.time_ns() // 1_000) + time_ordered()[-8:]
    put = PutRecord(ENTRY, key, value, follows=True)
    return [put, put._replace(kind=ENTRY_OF_RUN, key=f"{target} {key}")] if kind == "run" else [put]


def note_change(store: Store, action: str, kind: TargetKind, target: str, **options: Any) -> None:
    """Note a change of what this store does not have, such as states of a pipeline, directly after it was made."""
    entries = [put._replace(follows=False) for put in noted(action, kind, target, **options)]
    if entries:
        store.commit(entries)


def withdrawn(entries: Sequence[PutRecord]) -> list[PutRecord]:
    """The ops that remove entries together with the op before them, which gave up what they are about."""
    return [put._replace(value=None) for put in entries]


def _key(at: int) -> str:
    """Later ones sort before: stores list records by key, and the newest entries are asked for first."""
    return f"{_LAST - at:014x}"


class AuditEntry(NamedTuple):
    """A change that somebody asked for."""

    id: str
    at: float
    """When it was made, in seconds since 1970, by the clock of the store."""
    who: str
    """The name of a token or trigger, or USER@MACHINE."""
    token: str | None
    via: Via
    action: str
    kind: TargetKind
    target: str
    options: dict[str, Any]
    reason: str | None

    @classmethod
    def of(cls, record: AuditEntryRecord) -> AuditEntry:
        at = datetime.fromisoformat(record["at"]).timestamp()
        return cls(**{**{name: record.get(name) for name in cls._fields}, "at": at})  # type: ignore[arg-type]

    def to_dict(self) -> AuditEntryRecord:
        return cast("AuditEntryRecord", {**self._asdict(), "at": iso(int(self.at * SECOND))})


class AuditPage(NamedTuple):
    entries: list[AuditEntry]
    next: str | None
    """The `after` of the page after it; None at the end."""


class AuditFilter(NamedTuple):
    """Which entries. All that is given must hold."""

    run: str | None = None
    who: str | None = None
    """The name, or the id of the token."""
    action: str | None = None
    since: int | None = None
    """Microseconds since 1970."""

    def admits(self, entry: AuditEntry) -> bool:
        return self.who in (None, entry.who, entry.token) and self.action in (None, entry.action)


def read_page(store: Store, wanted: AuditFilter, after: str | None = None, limit: int = PAGE) -> AuditPage:
    """A part of the log, the newest first. With a filter a page may be short, and even empty: `next` says if there is more."""
    kind, prefix = (ENTRY, "") if wanted.run is None else (ENTRY_OF_RUN, f"{wanted.run} ")
    if not f"{prefix}{after or ''}".isprintable():  # no store could be asked for it
        return AuditPage([], None)
    (rows,) = store.read([ListRecords(kind, f"{prefix}{after or ''}" or None, limit)])
    end = "g" if wanted.since is None else _key(wanted.since - 1)
    entries: list[AuditEntry] = []
    for row in rows:
        key = row.key.removeprefix(prefix)
        if not row.key.startswith(prefix) or key >= end:
            return AuditPage(entries, None)
        entry = _entry(key, row)
        if wanted.admits(entry):
            entries.append(entry)
    return AuditPage(entries, None if rows.cursor is None else rows.cursor.removeprefix(prefix))


def read_entries(store: Store, wanted: AuditFilter) -> Iterator[AuditEntry]:
    """The entries, the newest first."""
    after: str | None = None
    while True:
        page = read_page(store, wanted, after)
        yield from page.entries
        if page.next is None:
            return
        after = page.next


def prune(store: Store, before: int) -> int:
    """Forget the entries made before a time, in microseconds since 1970; how many there were."""
    count = 0
    while True:
        (rows,) = store.read([ListRecords(ENTRY, _key(before), PAGE)])
        entries = [_entry(row.key, row) for row in rows]
        runs = [PutRecord(ENTRY_OF_RUN, f"{each.target} {each.id}", None) for each in entries if each.kind == "run"]
        store.commit([*runs, *(PutRecord(ENTRY, each.id, None) for each in entries)])
        count += len(entries)
        if rows.cursor is None:
            return count


def count_before(store: Store, before: int) -> int:
    """How many entries `prune` would forget."""
    count, after = 0, _key(before)
    while True:
        (rows,) = store.read([ListRecords(ENTRY, after, PAGE)])
        count += len(rows)
        if rows.cursor is None:
            return count
        after = rows.cursor


def _entry(key: str, row: RecordRow) -> AuditEntry:
    try:
        value = decode(row.value)
        return AuditEntry(id=key, at=row.version / SECOND, **value)
    except (ValueError, TypeError):
        raise StoreCorrupt(f"the entry {key} of the audit log cannot be read") from None
