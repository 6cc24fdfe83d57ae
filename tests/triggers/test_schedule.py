"""When schedules fire: the calendar of a place, whatever its clock does, and every time once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepwell.base.clock import SECOND
from stepwell.errors import InputError
from stepwell.triggers.schedule import LATEST, NICKNAMES, Cron, Every, Schedule, next_fires, time_zone

DAY = 86_400 * SECOND


def at(text: str) -> int:
    """A time in UTC, in microseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def local(times: list[int], zone: str) -> list[str]:
    return [datetime.fromtimestamp(time / SECOND, ZoneInfo(zone)).isoformat(timespec="minutes") for time in times]


CHANGES = [
    # Skipped: 02:00 to 03:00 does not exist. It fires once, when the gap ends.
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
    ("*/10 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
    ("0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]),
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00", ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"]),
    # At midnight, and by half an hour.
    ("0 0 * * *", "America/Havana", "2026-03-07T12:00", ["2026-03-08T01:00-04:00", "2026-03-09T00:00-04:00"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
    # A whole day, in Samoa.
    ("0 6 * * *", "Pacific/Apia", "2011-12-30T00:00", ["2011-12-31T00:00+14:00", "2011-12-31T06:00+14:00"]),
    # Repeated: 02:30 comes twice. It fires once, the first time.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00", ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
    ("0 2-3 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T02:00+02:00", "2026-10-25T03:00+01:00"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00", ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
    # Between the two.
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45", ["2026-10-26T02:30+01:00", "2026-10-27T02:30+01:00"]),
    # Every hour goes by elapsed time.
    ("30 * * * *", "Europe/Berlin", "2026-03-29T00:00", ["2026-03-29T01:30+01:00", "2026-03-29T03:30+02:00"]),
    ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", ["2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"]),
    ("0 * * * *", "Asia/Kolkata", "2026-03-29T00:00", ["2026-03-29T06:00+05:30", "2026-03-29T07:00+05:30"]),
    # Where no clock is changed.
    ("0 9 * * MON-FRI", "Asia/Tokyo", "2026-03-27T12:00", ["2026-03-30T09:00+09:00", "2026-03-31T09:00+09:00"]),
    ("0 12 L * *", "UTC", "2026-02-01T00:00", ["2026-02-28T12:00+00:00", "2026-03-31T12:00+00:00"]),
    ("0 0 29 2 *", "UTC", "2026-01-01T00:00", ["2028-02-29T00:00+00:00", "2032-02-29T00:00+00:00"]),
]


@pytest.mark.parametrize(("cron", "zone", "since", "fires"), CHANGES)
def test_a_skipped_time_fires_after_the_gap_and_a_repeated_one_once(
    cron: str, zone: str, since: str, fires: list[str]
) -> None:
    assert local(next_fires(Cron(cron, zone), at(since), len(fires)), zone) == fires


ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Casablanca",
    "Asia/Beirut",
)
CRONS = ("30 2 * * *", "*/20 0-3 * * *", "0 * * * *", "*/15 * * * *", "0 0 1,15 * *", "45 23 * * SUN", "0 */2 * * *")


def expected(cron: str, zone: str, start: int, end: int) -> list[int]:
    """The same, minute by minute: what a patient person with a calendar would write down."""
    here, plain = ZoneInfo(zone), Cron(cron)  # whose times are local times, as if they were UTC
    first = int(start - DAY) // (60 * SECOND) * 60 * SECOND
    if plain.is_hourly:
        fires = []
        for time in range(first, end + 1, 60 * SECOND):
            shown = datetime.fromtimestamp(time / SECOND, here).replace(tzinfo=UTC)
            wanted = int(shown.timestamp()) * SECOND
            if next_fires(plain, wanted - 1, 1) == [wanted]:
                fires.append(time)
        return [time for time in fires if start < time <= end]
    found = set()
    for wanted in takewhile(lambda time: time <= end + 2 * DAY, plain.after(first - DAY)):
        shown = datetime.fromtimestamp(wanted / SECOND, UTC).replace(tzinfo=None)
        moments = [
            time
            for hours in range(-15 * 4, 15 * 4 + 1)
            if datetime.fromtimestamp((time := wanted + hours * 900 * SECOND) / SECOND, here).replace(tzinfo=None)
            == shown
        ]
        if moments:
            found.add(min(moments))
        else:  # the first moment at which the clock shows something later
            time = wanted - wanted % (3_600 * SECOND) - 15 * 3_600 * SECOND
            while datetime.fromtimestamp(time / SECOND, here).replace(tzinfo=None) < shown:
                time += 900 * SECOND
            found.add(time)
    return sorted(time for time in found if start < time <= end)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
def test_every_time_of_the_calendar_fires_once(cron: str, zone: str) -> None:
    """Around both changes of the clock of 2026, against a search minute by minute."""
    here = ZoneInfo(zone)
    days = [at("2026-01-01T00:00") + day * DAY for day in range(365)]
    changes = [day for day in days if _offset(day, here) != _offset(day + DAY, here)] or days[100:101]
    for day in changes[:4]:
        start, end = day - DAY // 2, day + 3 * DAY // 2
        fires = list(takewhile(lambda time, end=end: time <= end, Cron(cron, zone).after(start)))
        assert fires == expected(cron, zone, start, end), local(fires, zone)


def _offset(time: int, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(time / SECOND, zone).utcoffset()


@pytest.mark.parametrize("zone", ZONES)
def test_the_latest_time_may_be_long_ago(zone: str) -> None:
    """It is sought backwards, an hour first."""
    schedule = Cron("0 0 1 1 *", zone)
    (new_year,) = next_fires(schedule, at("2025-06-01T00:00"), 1)
    assert schedule.latest(at("2026-12-01T00:00"), at("2020-06-01T00:00")) == new_year
    assert schedule.latest(at("2026-12-01T00:00"), new_year) is None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(CRONS), st.sampled_from(ZONES), st.integers(at("2026-01-01T00:00"), at("2026-12-31T00:00")))
def test_it_does_not_matter_when_one_looks(cron: str, zone: str, time: int) -> None:
    """Whoever starts to look at any moment sees the same times as who has looked all along."""
    schedule = Cron(cron, zone)
    first = next_fires(schedule, time, 3)
    assert first == sorted(set(first))
    assert first[0] > time
    assert next_fires(schedule, first[0] - 1, 3) == first
    assert next_fires(schedule, first[0], 2) == first[1:]
    assert schedule.latest(first[1], time) == first[1]
    assert schedule.latest(first[1] - 1, time) == first[0]
    assert schedule.latest(first[0] - 1, time) is None


def test_seconds_and_nicknames() -> None:
    assert next_fires(Cron("*/20 * * * * *"), at("2026-01-01T00:00"), 3) == [
        at(f"2026-01-01T00:{text}") for text in ("00:20", "00:40", "01:00")
    ]
    for name, text in NICKNAMES.items():
        assert next_fires(Cron(name), at("2026-01-01T00:00"), 2) == next_fires(Cron(text), at("2026-01-01T00:00"), 2)


def test_a_day_of_every_minute_has_as_many_minutes_as_the_day() -> None:
    zone = "Europe/Berlin"
    for day, minutes in (("2026-03-29", 23 * 60), ("2026-10-25", 25 * 60), ("2026-06-01", 24 * 60)):
        start = int(datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).timestamp()) * SECOND
        times = list(islice(Cron("* * * * *", zone).after(start - 1), minutes + 1))
        assert {later - earlier for earlier, later in pairwise(times)} == {60 * SECOND}
        assert local(times[-1:], zone)[0][11:16] == "00:00"


def test_intervals_count_real_time() -> None:
    start = at("2026-03-29T00:00")
    every = Every(3_600 * SECOND, start)
    assert next_fires(every, start - 5 * DAY, 2) == [start + 3_600 * SECOND, start + 7_200 * SECOND]
    assert next_fires(every, start + 3_600 * SECOND, 1) == [start + 7_200 * SECOND]
    assert next_fires(every, start + 3_600 * SECOND - 1, 1) == [start + 3_600 * SECOND]
    assert every.latest(start + DAY + 5, start) == start + DAY
    assert every.latest(start + 5, start) is None
    assert every.latest(start + DAY, start + DAY) is None


@pytest.mark.parametrize(
    "schedule", [Cron("0 0 * * *", "Asia/Tokyo"), Cron("* * * * *"), Every(SECOND, 0)], ids=["day", "minute", "second"]
)
def test_a_schedule_ends_shortly_before_the_calendar_does(schedule: Schedule) -> None:
    assert len(next_fires(schedule, LATEST - 3 * DAY, 2)) == 2
    for at in (LATEST, LATEST + DAY):
        assert next_fires(schedule, at, 1) == []


HOSTILE = [
    ("", "0 fields"),
    ("* * * *", "4 fields"),
    ("* * * * * * *", "7 fields"),
    ("60 * * * *", "minute '60'"),
    ("-1 * * * *", "minute"),
    ("* 24 * * *", "hour '24'"),
    ("* * 0 * *", "day of month '0'"),
    ("0 0 30 2 *", "day of month '30'"),
    ("0 0 31 2,4,6 *", "day of month '31'"),
    ("* * * 13 *", "month '13'"),
    ("* * * * 8", "day of week '8'"),
    ("* * * * MON#6", "day of week"),
    ("* * * * L", "day of week 'L'"),
    ("*/0 * * * *", "minute '*/0'"),
    ("5-1 * * * *", "minute '5-1'"),
    ("1-2-3 * * * *", "minute"),
    (", * * * *", "minute ','"),
    ("1/2/3 * * * *", "minute"),
    ("60 0 0 * * *", "second '60'"),
    ("* * */20 * 1L", "never fires"),
    ("@every 5m", "nickname"),
    ("@reboot", "nickname"),
    ("١ * * * *", "plain letters"),
    ("* * * *\n*", "plain letters"),
    ("* * * * \0", "plain letters"),
    ("1," * 5_000 + "1 * * * *", "at most 200"),
    ("9" * 190 + " * * * *", "minute"),
    (None, "five fields"),
    (5, "five fields"),
    (["* * * * *"], "five fields"),
]


@pytest.mark.parametrize(("text", "told"), HOSTILE, ids=lambda value: str(value)[:20])
def test_what_is_no_cron_expression_is_refused_with_what_is_wrong(text: object, told: str) -> None:
    with pytest.raises(InputError, match="cron expression") as refused:
        Cron(text)  # type: ignore[arg-type]
    assert told in str(refused.value)
    assert len(str(refused.value)) < 500


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(alphabet="0123456789*/,-#LW @MONJA", max_size=30))
@example("*/7 1-5/2 L,15 FEB 1#2,5L")
def test_any_text_is_a_schedule_or_a_clear_error(text: str) -> None:
    try:
        schedule = Cron(text)
    except InputError:
        return
    fires = next_fires(schedule, at("2026-01-01T00:00"), 3)
    assert fires == sorted(set(fires))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("Europe", "no time zone"),
        ("../../etc/passwd", "no time zone"),
        ("/etc/localtime", "no time zone"),
        ("", "no time zone"),
        ("x" * 5_000, "no time zone"),
        ("Europe/\0", "no time zone"),
        (7, "no time zone"),
    ],
    ids=lambda value: str(value)[:20].replace("\0", "0"),
)
def test_what_is_no_time_zone_is_refused(name: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        time_zone(name)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 300
