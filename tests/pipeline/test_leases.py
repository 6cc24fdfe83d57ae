"""The lease of a scanner, step by step: who has it, who takes it over, and how a scan knows that one before it died."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine
from stepwell.errors import InputError, PipelineBusy
from stepwell.pipeline.states.files import lease
from stepwell.pipeline.states.files.lease import LEASE_SECONDS, renewing
from stepwell.pipeline.states.files.store import FileStates
from tests.pipeline.blog import make_blog

OLD = LEASE_SECONDS + 5


def _change(root: Path, *, mtime: float = 0.0, **changed: Any) -> None:
    """Have the holder say something else than it did."""
    file = root / ".stepwell/p.lease"
    told = json.loads(file.read_text()) | changed
    file.write_text(json.dumps(told).ljust(200))
    os.utime(file, (time.time() - mtime,) * 2)


def test_the_number_is_odd_while_somebody_scans_and_after_it_died(root: Path) -> None:
    states = FileStates(str(root))
    numbers = [states.lease_number("p")]
    for _ in range(2):
        with states.lease("p", 0.0):
            numbers.append(states.lease_number("p"))
        numbers.append(states.lease_number("p"))
    assert numbers == [0, 1, 2, 3, 4]
    _change(root, number=5)  # somebody took it, and died: the system has released its lock
    with states.lease("p", 0.0) as holds:
        assert states.lease_number("p") == 7  # so that whoever saw 5 knows that it was taken since
        assert holds()
    assert states.lease_number("p") == 8
    assert states.lease_number("other") == 0


@pytest.mark.parametrize(
    ("renewed", "mtime", "is_taken_over"),
    [
        (OLD, OLD, True),
        (OLD, 0.0, False),
        (0.0, OLD, False),
        (-OLD, OLD, True),
        (OLD - 10, OLD, False),
        (None, OLD, False),
    ],
)
def test_only_who_is_silent_by_both_clocks_loses_the_lease(
    root: Path, renewed: float | None, mtime: float, is_taken_over: bool
) -> None:
    """The time that it wrote down may be of a clock that was set since, or of a machine whose clock is wrong."""
    first, second = FileStates(str(root)), FileStates(str(root))
    with first.lease("p", 0.0) as holds:
        _change(root, renewedAt=None if renewed is None else time.time() - renewed, mtime=mtime)
        if not is_taken_over:
            with pytest.raises(PipelineBusy, match=f"process {os.getpid()} on "), second.lease("p", 0.0):
                pass
            assert holds()
            return
        with second.lease("p", 5.0) as holds_too:
            assert holds_too()
            assert not holds()
            assert second.lease_number("p") == 3  # odd, and another one: the former had 1
    assert second.lease_number("p") == 4  # the former holder has signed a file that nobody reads any more


def test_a_build_waits_as_long_as_it_may(root: Path, engine: Engine) -> None:
    blog = make_blog(root)
    with blog.store.lease(blog.name, 0.0):
        for patience in (0, timedelta(milliseconds=1)):
            with pytest.raises(PipelineBusy):
                blog.build(engine=engine, patience=patience)
    for wrong in (-1, "60", timedelta(seconds=-1)):
        with pytest.raises(InputError, match=r"patience=.*: expected a number of seconds from 0"):
            blog.build(engine=engine, patience=wrong)  # type: ignore[arg-type]


def test_who_comes_while_another_takes_over_replaces_nothing(root: Path) -> None:
    states = FileStates(str(root))
    with states.lease("p", 0.0):
        former = os.open(root / ".stepwell/p.lease", os.O_RDWR)
        try:
            inode = os.stat(root / ".stepwell/p.lease").st_ino
            guard = os.open(root / ".stepwell/p.lease.guard", os.O_RDWR | os.O_CREAT)
            assert lease.lock_file(guard)
            lease._replace(states.root, ".stepwell/p.lease", former)  # another process is at it
            assert os.stat(root / ".stepwell/p.lease").st_ino == inode
            os.close(guard)
            lease._replace(states.root, ".stepwell/p.lease", former)
            replaced = os.stat(root / ".stepwell/p.lease").st_ino
            assert replaced != inode
            lease._replace(states.root, ".stepwell/p.lease", former)  # it was replaced in the meantime
            assert os.stat(root / ".stepwell/p.lease").st_ino == replaced
        finally:
            os.close(former)


def test_a_lock_on_a_file_that_was_just_replaced_is_no_lease(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes over between the opening and the locking."""
    states, lock, file = FileStates(str(root)), lease.lock_file, root / ".stepwell/p.lease"
    locked: list[int] = []

    def replace_and_lock(descriptor: int) -> bool:
        locked.append(os.fstat(descriptor).st_ino)
        if len(locked) == 1:
            file.with_suffix(".new").write_text('{"number": 4}')
            file.with_suffix(".new").replace(file)
        return lock(descriptor)

    monkeypatch.setattr(lease, "lock_file", replace_and_lock)
    with states.lease("p", 5.0) as holds:
        assert holds()
        assert states.lease_number("p") == 5
    assert len(locked) == 2


@pytest.mark.parametrize("written", ["", "nonsense", "[1]", '{"number": "many"}', '{"renewedAt": "soon"}'])
def test_whatever_a_lease_holds_it_can_be_taken(root: Path, written: str) -> None:
    states = FileStates(str(root))
    (root / ".stepwell").mkdir()
    (root / ".stepwell/p.lease").write_text(written)
    assert states.lease_number("p") == 0
    with states.lease("p", 0.0) as holds:
        assert holds()
        assert states.lease_number("p") == 1
        (root / ".stepwell/p.lease").unlink()
        assert not holds()


def test_a_lease_is_renewed_until_it_ends_also_when_the_disk_refused_once() -> None:
    renewed, thrice = [], threading.Event()

    def renew() -> None:
        renewed.append(time.monotonic())
        if len(renewed) >= 3:
            thrice.set()
        raise OSError("the disk is full")

    began = time.monotonic()
    with renewing(renew, 0.06):
        assert thrice.wait(60)
    assert renewed[0] - began >= 0.02
    number = len(renewed)
    assert not any(thread.name == "stepwell-scanner-lease" and thread.is_alive() for thread in threading.enumerate())
    assert len(renewed) == number


def test_a_held_lease_says_that_its_holder_is_alive(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_SECONDS", 0.1)
    states = FileStates(str(root))
    with states.lease("p", 0.0):
        _change(root, renewedAt=1.0)
        until = time.monotonic() + 60
        while json.loads((root / ".stepwell/p.lease").read_text())["renewedAt"] == 1.0:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert states.lease_number("p") == 1
