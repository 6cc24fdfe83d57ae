"""When schedules fire. Pure: times are arguments, in microseconds since 1970.

`Cron` reads the calendar of a place. What its clock does when daylight saving begins and ends has two rules:

- A time that is skipped fires once, when the gap ends, however many times lie in the gap. A time that is repeated fires
  once, the first time.
- A schedule that fires in every hour (`*` for the hour) goes by elapsed time instead: it fires at every moment whose local time
  matches, so it neither rests nor hurries while the clock is changed.

`Every` counts real seconds and knows no calendar.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from ..base.clock import SECOND
from ..base.words import shown, suggestion
from ..errors import InputError

if TYPE_CHECKING:
    from cronsim import CronSim

MAX_TEXT = 200
_EPOCH = datetime(1970, 1, 1)
_ONE = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
LATEST = int((datetime(9900, 1, 1) - _EPOCH) / _ONE)
"""No schedule looks further: calendars end soon after."""
HOUR = 3_600 * SECOND
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_EXAMPLE = 'expected five fields (minute, hour, day of month, month, day of week), as in "30 2 * * 1-5"'


@dataclass(frozen=True)
class Cron:
    """`Cron("30 2 * * *", "Europe/Berlin")`. Six fields begin with seconds. InputError says what is wrong with it."""

    text: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        text = self.text
        if not isinstance(text, str) or not text.isascii() or not text.isprintable() or len(text) > MAX_TEXT:
            allowed = f"at most {MAX_TEXT} plain letters, digits and * / , - # characters"
            raise InputError(f"cron expression {shown(text)}: {_EXAMPLE}, in {allowed}")
        time_zone(self.timezone)
        if next(self._calendar(_EPOCH + timedelta(days=20_000)), None) is None:
            raise InputError(f"cron expression {shown(self.text)} never fires: no such day in the next 50 years")

    @cached_property
    def zone(self) -> tzinfo:
        return time_zone(self.timezone)

    @cached_property
    def expression(self) -> str:
        """The five or six fields, without nicknames."""
        return NICKNAMES.get(self.text.strip().lower(), self.text)

    @cached_property
    def is_hourly(self) -> bool:
        """Whether it fires in every hour, and therefore goes by elapsed time."""
        fields = self.expression.split()
        return fields[-4] in ("*", "*/1", "0-23")

    def after(self, at: int) -> Iterator[int]:
        """The times at which it fires later than `at`, in order."""
        if at >= LATEST:
            return iter(())
        return self._by_elapsed_time(at) if self.is_hourly else self._by_local_time(at)

    def latest(self, at: int, since: int) -> int | None:
        """The last time it fires not later than `at`, and later than `since`."""
        back = HOUR
        while True:
            start = max(since, at - back)
            found = None
            for time in self.after(start):
                if time > at:
                    break
                found = time
            if found is not None or start == since:
                return found
            back *= 4

    def _by_local_time(self, at: int) -> Iterator[int]:
        last = at
        for local in self._calendar(_local(at, self.zone)):
            time = _first_moment(local, self.zone)
            # Several that lie in one gap fire together; the second pass of a repeated hour does not fire.
            if time > last:
                last = time
                yield time

    def _by_elapsed_time(self, at: int) -> Iterator[int]:
        while at < LATEST:
            offset = _offset(at, self.zone)
            for local in self._calendar(_local(at, self.zone)):
                time = _number(local - offset)
                if _offset(time, self.zone) != offset:
                    # The clock was changed in between: continue with the local time after the change.
                    at = _first_change(at, time, offset, self.zone)
                    changed = _local(at, self.zone)
                    if next(self._calendar(changed - _SECOND), None) == changed:
                        yield at
                    break
                yield time
                at = time
            else:
                return

    def _calendar(self, local: datetime) -> Iterator[datetime]:
        """The matching local times after `local`, ignoring clock changes. Gives up after 50 years without a match."""
        walk = copy(self._walk)
        walk.dt = local.replace(microsecond=0)
        with suppress(OverflowError):  # calendars end
            yield from walk

    @cached_property
    def _walk(self) -> CronSim:
        """Parsed once; a copy of it goes through the calendar from wherever it is put."""
        return _read_cron(self.expression, self.text)


@dataclass(frozen=True)
class Every:
    """Every `interval` microseconds of real time, counted from `start`."""

    interval: int
    start: int

    def after(self, at: int) -> Iterator[int]:
        time = self.start + max(1, (at - self.start) // self.interval + 1) * self.interval
        while time < LATEST:
            yield time
            time += self.interval

    def latest(self, at: int, since: int) -> int | None:
        count = (at - self.start) // self.interval
        time = self.start + count * self.interval
        return time if count >= 1 and time > since else None


Schedule = Cron | Every


def next_fires(schedule: Schedule, at: int, count: int) -> list[int]:
    return list(islice(schedule.after(at), count))


def time_zone(name: str) -> tzinfo:
    """The time zone of this name; InputError says which may have been meant."""
    if name == "UTC":
        return UTC  # without asking the system
    from zoneinfo import ZoneInfo, available_timezones

    try:
        if isinstance(name, str) and len(name) <= MAX_TEXT and name.isprintable():
            return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a folder, a path that leads elsewhere, an unknown name
        pass
    meant = suggestion(name, sorted(available_timezones()), "expected a name as 'Europe/Berlin' or 'UTC'")
    raise InputError(f"there is no time zone {shown(name)}; {meant}")


def _read_cron(expression: str, text: str) -> CronSim:
    from cronsim import CronSim, CronSimError

    what = f"cron expression {shown(text)}"
    if text.strip().startswith("@") and expression == text:
        raise InputError(f"{what}: there is no such nickname; there are {', '.join(NICKNAMES)}")
    fields = expression.split()
    if len(fields) not in (5, 6):
        raise InputError(f"{what} has {len(fields)} field{'' if len(fields) == 1 else 's'}: {_EXAMPLE}")
    try:
        return CronSim(expression, _EPOCH)
    except CronSimError as error:
        raise InputError(f"{what}: {_what_is_wrong(str(error), fields)}") from None


_RANGES = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31 that some chosen month has, or L for the last day",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "0 to 7 (0 and 7 are Sunday), SUN to SAT, MON#2 for the second Monday, or 5L for the last Friday",
}


def _what_is_wrong(said: str, fields: list[str]) -> str:
    """The error of the library names only the field; add its text and the allowed values."""
    name = said.removeprefix("Bad ")
    if name not in _RANGES:
        return said
    place = list(_RANGES).index(name) - (6 - len(fields))
    field = name.replace("-", " ")
    return f"{field} {shown(fields[place])} is not possible: {_RANGES[name]}; also lists (1,2), ranges (1-5) and steps (*/15)"


# Local times and moments. Zones are asked about moments, because local times at a change are ambiguous.


def _moment(time: int) -> datetime:
    return (_EPOCH + timedelta(microseconds=time)).replace(tzinfo=UTC)


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // _ONE


def _local(time: int, zone: tzinfo) -> datetime:
    return _moment(time).astimezone(zone).replace(tzinfo=None)


def _offset(time: int, zone: tzinfo) -> timedelta:
    return _moment(time).astimezone(zone).utcoffset() or timedelta()


def _first_moment(local: datetime, zone: tzinfo) -> int:
    """The first moment at which the clock shows `local`; if it never does, the one at which the gap ends."""
    before = local.replace(tzinfo=zone, fold=0).utcoffset() or timedelta()
    time = _number(local - before)
    if _offset(time, zone) == before:
        return time
    after = local.replace(tzinfo=zone, fold=1).utcoffset() or timedelta()
    return _first_change(_number(local - after), time, before, zone)


def _first_change(before: int, after: int, offset: timedelta, zone: tzinfo) -> int:
    """The first second after `before`, at most `after`, at which the offset is no longer `offset`."""
    low, high = before // SECOND, after // SECOND
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle * SECOND, zone) == offset:
            low = middle
        else:
            high = middle
    return high * SECOND
