"""The triggers of one store: added, changed, paused, fired, removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..base.clock import SECOND, WallClock
from ..base.ids import checked_run_id, time_ordered
from ..base.words import shown, suggestion
from ..core.model import PutRecord, RecordPut, RecordRow, VersionRow
from ..core.store import Store, reader, versions
from ..errors import InputError, StoreCorrupt
from ..history.audit_log import noted
from .deciding import decide
from .definition import Trigger
from .firing import NotHere, Starter
from .rendering import Start, make_start, tags_of
from .schedule import next_fires
from .state import RECORD, Backfill, TriggerState
from .times import time_text

if TYPE_CHECKING:
    from ..answers.triggers import TriggerRecord

MAX_BACKFILL = 10_000
MAX_BACKFILLS = 10


STATUS_FIELDS = frozenset(
    {"kind", "version", "paused", "declared_in", "added_at", "next", "last", "fired", "left_out", "waiting"}
    | {"backfills", "error"}
)
"""The fields of its JSON that are not of its definition."""


class StoredTrigger(NamedTuple):
    """A trigger as it is stored."""

    trigger: Trigger
    state: TriggerState
    at: int
    """When it was read."""

    @property
    def name(self) -> str:
        return self.trigger.name

    @property
    def paused(self) -> bool:
        return self.state.paused

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def error(self) -> str | None:
        """Why the latest start did not succeed."""
        return self.state.error

    @property
    def waiting(self) -> int:
        """Times, and backfills, that wait for the run before or to be started."""
        return len(self.state.queue) + len(self.state.pending) + len(self.state.backfills)

    def next_fires(self, count: int = 1) -> list[float]:
        """When it fires next, in seconds since 1970; nothing if it is paused or no schedule."""
        schedule = None if self.paused else self.trigger.schedule(self.state.added_at)
        return [] if schedule is None else [time / SECOND for time in next_fires(schedule, self.at, count)]

    def to_dict(self, count: int = 5) -> TriggerRecord:
        """As JSON, with its next `count` times."""
        state = self.state
        last = None if state.last_time is None else {"time": time_text(state.last_time), "run": state.last_run}
        status = {
            "kind": self.trigger.kind,
            "version": state.version,
            "paused": state.paused,
            "declared_in": state.declared_in,
            "added_at": time_text(state.added_at),
            "next": [time_text(int(time * SECOND)) for time in self.next_fires(count)],
            "last": last,
            "fired": state.fired,
            "left_out": state.left_out,
            "waiting": len(state.queue) + len(state.pending),
            "backfills": [{"after": time_text(each.after), "until": time_text(each.until)} for each in state.backfills],
            "error": state.error,
        }
        return cast("TriggerRecord", self.trigger.canonical | status)


class Triggers:
    """The triggers of a store: `engine.triggers`."""

    def __init__(
        self,
        store: Store,
        start: Starter,
        now: Callable[[], int] | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._start, self._told = store, start, changed
        self._now = now or store.now

    # Looking

    def all(self) -> list[StoredTrigger]:
        """By name."""
        return [self.stored(row) for row in reader.all_records(self._store, RECORD)]

    def stored(self, row: RecordRow) -> StoredTrigger:
        """What a record of the store says."""
        return self._stored(row.key, TriggerState.decoded(row.value), self._now())

    def get(self, name: str) -> StoredTrigger:
        """The trigger of this name; InputError says which there are."""
        return self._stored(name, TriggerState.decoded(self._row(name).value), self._now())

    def versions(self, name: str) -> list[VersionRow]:
        """All versions of its definition, oldest first."""
        self._row(name)
        return versions.all_versions(self._store, "trigger", name)

    # Changing

    def add(self, trigger: Trigger, *, paused: bool | None = None, declared_in: str | None = None) -> StoredTrigger:
        """Store a trigger, or a new version of it, which fires from now on. `paused=None` leaves a paused one paused."""
        if not isinstance(trigger, Trigger):
            raise InputError(f"{shown(trigger)} cannot be added: give a Trigger")
        saved = versions.save_version(self._store, "trigger", trigger.name, trigger.digest, trigger.content)
        for _ in range(_TRIES):
            now = self._time_for(trigger)
            row = reader.get_record(self._store, RECORD, trigger.name)
            if row is None:
                state = TriggerState(saved.number, trigger.digest, now, now, now, bool(paused), declared_in)
            else:
                state = self._changed(row, trigger, saved.number, now, declared_in)
                state = state.changed(declared_in=declared_in, paused=state.paused if paused is None else paused)
            same = row is not None and TriggerState.decoded(row.value) == state
            entries = () if same else noted("add", "trigger", trigger.name, version=state.version)
            if self._put(trigger.name, row, state, entries):
                return StoredTrigger(trigger, state, now)
        raise _contended(trigger.name)

    def _changed(
        self, row: RecordRow, trigger: Trigger, version: int, now: int, declared_in: str | None
    ) -> TriggerState:
        """The state of a trigger that gets another definition. Times that are due by the old one are decided by it."""
        state = TriggerState.decoded(row.value)
        if state.declared_in is not None and state.declared_in != declared_in:
            raise InputError(f"trigger {trigger.name!r} is declared in {state.declared_in}: change it there")
        if state.digest == trigger.digest:
            return state
        known = self._stored(trigger.name, state, now).trigger
        if known.form.occasion != trigger.form.occasion:
            if known.scheduled is not None:
                state = decide(known, state, now, busy=self._is_active(state.last_run)).state
            state = state.changed(mark=now, since=now, backfills=())
        return state.changed(version=version, digest=trigger.digest, error=None, tried_at=0)

    def _time_for(self, trigger: Trigger) -> int:
        """Ends of runs go by the clock of the store, everything else by the calendar."""
        return self._now() if trigger.form.followed is None else self._store.now()

    def _is_active(self, run_id: str | None) -> bool:
        row = None if run_id is None else reader.get_run(self._store, run_id)
        return row is not None and not row.status.terminal

    def pause(self, name: str) -> StoredTrigger:
        """Stop firing until it is resumed. Runs that were decided before are still started."""
        return self._change(name, lambda state, now: state.changed(paused=True), noted("pause", "trigger", name))

    def resume(self, name: str) -> StoredTrigger:
        """Continue from now. Times that passed meanwhile are not caught up; `backfill` can start them."""

        def resumed(state: TriggerState, now: int) -> TriggerState:
            return state.changed(paused=False, mark=max(state.mark, now), since=now) if state.paused else state

        return self._change(name, resumed, noted("resume", "trigger", name))

    def remove(self, name: str) -> None:
        """Forget a trigger. Runs that it started, and the versions of its definition, stay."""
        entries = noted("remove", "trigger", name)
        for _ in range(_TRIES):
            row = self._row(name)
            receipt, *_ = self._store.commit([PutRecord(RECORD, name, None, expected=row.version), *entries])
            if isinstance(receipt, RecordPut):
                return
        raise _contended(name)

    def declare(self, source: str, triggers: Iterable[Trigger]) -> list[StoredTrigger]:
        """Store the triggers that a document or class declares, and remove those it no longer declares."""
        declared = list(triggers)
        self.check_owner(source, declared)
        stored = [self.add(trigger, declared_in=source) for trigger in declared]
        names = {trigger.name for trigger in declared}
        for row in reader.all_records(self._store, RECORD):
            if row.key not in names and TriggerState.decoded(row.value).declared_in == source:
                self.remove(row.key)
        return stored

    def check_owner(self, source: str, triggers: Iterable[Trigger]) -> None:
        """Refuse a name that another source uses: one trigger would silently replace the other."""
        for trigger in triggers:
            row = reader.get_record(self._store, RECORD, trigger.name)
            owner = source if row is None else TriggerState.decoded(row.value).declared_in
            if owner != source:
                by = "was added by itself" if owner is None else f"is declared in {owner}"
                advice = "choose another name, or remove that one first"
                raise InputError(f"trigger {trigger.name!r} of {source} {by}: {advice}")

    # Firing

    def fire(self, name: str, input: Mapping[str, Any] | None = None, *, key: str | None = None) -> str:
        """Start a run now, whether it is due or not; the id of the run. The same key is the same run.

        `input` takes the place of the trigger's own, which what a webhook or an ended run brings cannot be made without.
        """
        now = self._now()
        stored = self._stored(name, TriggerState.decoded(self._row(name).value), now)
        trigger = stored.trigger
        run_id = f"{name}:{manual_key() if key is None else checked_key(key)}"
        if input is not None:
            start = Start(run_id, trigger.workflow, dict(input), trigger.priority, tags_of(trigger, now))
        else:
            start = make_start(trigger, stored.state, run_id, now)
        self._start(start)
        if trigger.scheduled is not None:
            self._change(name, lambda state, _: state.changed(last_run=run_id))
        return run_id

    def backfill(self, name: str, start: int, end: int, *, dry_run: bool = False) -> list[int]:
        """Start the runs of the times from `start` up to `end`, in microseconds since 1970, that a schedule has; the times.

        A time that has a run keeps it. With overlap `skip` or `queue` they follow one another.
        """
        stored = self.get(name)
        schedule = stored.trigger.schedule(stored.state.added_at)
        if schedule is None:
            raise InputError(f"trigger {name!r} is no schedule: only cron and every have times that can be filled in")
        if not 0 <= start < end <= self._now():
            raise InputError("a backfill needs a start before its end, and an end not later than now")
        times = list(islice(takewhile(lambda time: time < end, schedule.after(start - 1)), MAX_BACKFILL + 1))
        if len(times) > MAX_BACKFILL:
            raise InputError(f"more than {MAX_BACKFILL:,} times: choose a shorter range")
        if not dry_run and times:
            entries = noted("backfill", "trigger", name, start=time_text(start), end=time_text(end))
            self._change(name, lambda state, _: _with_backfill(state, Backfill(start - 1, end - 1)), entries)
        return times

    # Inside

    def _stored(self, name: str, state: TriggerState, now: int) -> StoredTrigger:
        try:
            content = versions.get_content(self._store, "trigger", state.digest)
        except StoreCorrupt:
            raise StoreCorrupt(f"version {state.version} of trigger {name!r} is missing from the store") from None
        return StoredTrigger(Trigger.stored(content), state, now)

    def _row(self, name: str) -> RecordRow:
        row = reader.get_record(self._store, RECORD, name) if isinstance(name, str) and name.isprintable() else None
        if row is None:
            names = [each.key for each in reader.all_records(self._store, RECORD)]
            none = None if names else "there are none: `stepwell trigger add` stores one"
            raise InputError(f"there is no trigger {shown(name)}; {suggestion(name, names, none, most=20)}")
        return row

    def _change(
        self, name: str, change: Callable[[TriggerState, int], TriggerState], entries: Sequence[PutRecord] = ()
    ) -> StoredTrigger:
        """`entries`: what the audit log gets of it."""
        for _ in range(_TRIES):
            row = self._row(name)
            before = self.stored(row)
            state = change(before.state, self._time_for(before.trigger))
            if state == before.state or self._put(name, row, state, entries):
                return before._replace(state=state)
        raise _contended(name)

    def _put(self, name: str, row: RecordRow | None, state: TriggerState, entries: Sequence[PutRecord] = ()) -> bool:
        expected = 0 if row is None else row.version
        receipt, *_ = self._store.commit([PutRecord(RECORD, name, state.encoded(), expected=expected), *entries])
        self._told()
        return isinstance(receipt, RecordPut)


_TRIES = 100


def manual_key() -> str:
    """The key of a fire for which the caller has none."""
    return f"manual-{time_ordered()}"


def checked_key(text: str) -> str:
    """A key for a fire, which becomes a part of the run id."""
    checked_run_id(text)
    if len(text) > 80:
        raise InputError(f"key {shown(text)}: expected at most 80 characters")
    return text


def _with_backfill(state: TriggerState, wanted: Backfill) -> TriggerState:
    if len(state.backfills) >= MAX_BACKFILLS:
        raise InputError(f"{MAX_BACKFILLS} backfills are not done yet: wait for one of them")
    return state.changed(backfills=(*state.backfills, wanted))


def _contended(name: str) -> InputError:
    return InputError(f"trigger {name!r} is changed by others all the time; try again")


def calendar_clock(store: Store) -> Callable[[], int]:
    """The clock of schedules. That of an embedded store counts from the boot, when the wall clock may have been wrong."""
    return WallClock().now if store.url.startswith("sqlite:") else store.now


def trigger_book(store: Store) -> Triggers:
    """The triggers of a store, to declare some without starting runs."""

    def nothing(start: Start) -> bool:
        raise NotHere(f"{start.workflow} is not started here")

    return Triggers(store, nothing, calendar_clock(store))
