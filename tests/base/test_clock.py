"""Times are whole microseconds since 1970; the clock of a store does not jump with the wall clock."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepwell.base.clock import (
    SECOND,
    BootClock,
    ManualClock,
    WallClock,
    boot_id,
    has_boot_clock,
    microseconds,
    since_boot,
)
from stepwell.stores.sqlite import SqliteStore

needs_boot_clock = pytest.mark.skipif(not has_boot_clock(), reason="this system has no boot-time clock")


def test_the_wall_clock_counts_microseconds_since_1970() -> None:
    before, now, after = time.time(), WallClock().now(), time.time()
    assert isinstance(now, int)
    assert before * SECOND - 1_000 <= now <= after * SECOND + 1_000


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(1_000)
    assert (clock.now(), clock.now()) == (1_000, 1_000)
    clock.advance(2.5)
    assert clock.now() == 1_000 + 2_500_000
    assert ManualClock().now() == ManualClock().now()


def test_seconds_become_whole_microseconds() -> None:
    assert microseconds(1.5) == 1_500_000
    assert microseconds(0) == 0
    assert isinstance(microseconds(0.1), int)


@needs_boot_clock
def test_the_boot_clock_never_goes_back() -> None:
    clock = BootClock(0)
    seen = [clock.now() for _ in range(1_000)]
    assert seen == sorted(seen)
    before = clock.now()
    assert BootClock(500).now() - before >= 500


@needs_boot_clock
def test_the_boot_clock_counts_from_boot() -> None:
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(since_boot() / SECOND - uptime) < 5


@needs_boot_clock
def test_every_process_of_one_boot_sees_the_same_time(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    code = "import sys; from stepwell.stores.sqlite import SqliteStore; print(SqliteStore(sys.argv[1]).now())"
    before = store.now()
    told = subprocess.run([sys.executable, "-c", code, str(store.path)], capture_output=True, check=True, text=True)
    assert before <= int(told.stdout) <= store.now()
    assert abs(store.now() - WallClock().now()) < 5 * SECOND
    store.close()


@needs_boot_clock
def test_setting_the_wall_clock_does_not_move_the_time_of_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SqliteStore(tmp_path / "runs.db")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 3_600 * 10**9)
    second = SqliteStore(tmp_path / "runs.db")
    before = first.now()
    assert 0 <= second.now() - before < SECOND
    first.close()
    second.close()


def test_a_system_without_a_boot_clock_uses_the_wall_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell.stores.sqlite.database.has_boot_clock", lambda: False)
    store = SqliteStore(tmp_path / "runs.db")
    assert abs(store.now() - WallClock().now()) < SECOND
    store.close()


def test_a_system_that_does_not_name_its_boot_has_no_boot_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert boot_id() is None
    assert has_boot_clock() is False
