"""The second process, which reads, writes and renames many files: the same as this process does, also when either dies."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepwell.pipeline.states import single
from stepwell.pipeline.states.files import second_process
from stepwell.pipeline.states.files.lease import lock_file
from stepwell.pipeline.states.files.second_process import SecondProcess


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "MANY", 1)
    monkeypatch.setattr(second_process, "_has_two_cores", lambda: True)


@pytest.fixture
def second() -> Iterator[SecondProcess]:
    made = SecondProcess()
    yield made
    if made._peer is not None:
        made._peer.end()


def children_of(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and status != "Z":
                found.append(int(folder.name))
    return found


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 30
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def pid_of(second: SecondProcess) -> int:
    assert second._peer is not None
    return second._peer.process.pid


def test_it_does_what_this_process_does(tmp_path: Path, second: SecondProcess) -> None:
    (tmp_path / "a").write_bytes(b"\0text\n" * 50_000)
    (tmp_path / "ö\udc80").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    files = [f"{tmp_path}/{name}" for name in ("a", "ö\udc80", "link", "gone", "a/below", "")]
    for name in ("read", "stamp"):
        assert second.call_each(name, [(file,) for file in files]) == single.call_each(
            name, [(file,) for file in files]
        )  # type: ignore[arg-type]
    _, stamp, digest = single.read_file(files[0])
    questions = [(files[0], stamp, digest), (files[0], stamp, "another"), (files[0], (0, 0, 0, 0), digest)]
    questions += [(files[0], (0, 0, 0, 0), "another"), (files[3], stamp, digest)]
    assert second.call_each("still", questions) == single.call_each("still", questions)
    written = [(f"{tmp_path}/new", b"content"), (f"{tmp_path}/a", b"shorter"), (f"{tmp_path}/no/such", b"")]
    assert second.call_each("write", written) == [None, None, 2]
    assert (tmp_path / "new").read_bytes() == b"content"
    assert (tmp_path / "a").read_bytes() == b"shorter"
    assert second._peer is not None, "it was not asked"


def test_what_is_too_new_to_be_told_by_its_stamp_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1")
    _, stamp, digest = single.read_file(str(file))
    assert single.still_is(str(file), stamp, digest)
    assert not single.still_is(str(file), stamp, "another"), "it may have changed within the same tick of the clock"
    old = (stamp[0], stamp[1], stamp[2] - 10 * single.SLOW_TICK_NS, stamp[3])
    assert single.still_is(str(file), old, digest)


def test_work_goes_on_when_it_is_killed(tmp_path: Path, second: SecondProcess) -> None:
    (tmp_path / "a").write_bytes(b"text")
    question = [(f"{tmp_path}/a",)]
    expected = single.call_each("read", question)
    for _ in range(3):
        assert second.call_each("read", question) == expected
        os.kill(pid_of(second), signal.SIGKILL)
        assert second.call_each("read", question) == expected
        assert second._peer is None


def test_drafts_are_renamed_once_whoever_began(tmp_path: Path, second: SecondProcess) -> None:
    digest = hashlib.sha256(b"made").hexdigest()
    for name in ("draft a", "b", "draft d"):
        (tmp_path / name).write_bytes(b"made")
    (tmp_path / "c").write_bytes(b"other")
    asked = [(f"{tmp_path}/draft {name}", f"{tmp_path}/{name}", digest) for name in ("a", "b", "c", "d", "gone")]
    asked.append((f"{tmp_path}/a", f"{tmp_path}/no/such", digest))
    answers = second.call_each("reveal", asked)
    assert second._peer is not None, "it was not asked"
    stamps = [single.stamp_of(f"{tmp_path}/{name}") for name in ("a", "b")]
    # Nobody knows whether b was renamed, but it is what it should be; c is what somebody else wrote.
    assert answers == [*stamps, None, single.stamp_of(f"{tmp_path}/d"), None, None]
    assert single.call_each("reveal", asked) == answers
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "d"]


HOLDING = """
import os, signal, threading, time
from stepwell.pipeline.states.files import second_process
from stepwell.pipeline.states.files.lease import locked
second_process.MANY = 1
second_process._has_two_cores = lambda: True
second = second_process.SecondProcess()
second.call_each("stamp", [("draft",)])
os.kill(second._peer.process.pid, signal.SIGSTOP)
with locked("lock") as lock:
    threading.Thread(target=second.call_each, args=("reveal", [("draft", "file", "")], lock)).start()
    while second._peer._sent < 2 or second._peer._sending.locked():
        time.sleep(0.001)
    print(second._peer.process.pid, flush=True)
    time.sleep(100)
"""


def test_the_lock_is_free_only_when_all_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "draft").write_text("made")
    process = subprocess.Popen([sys.executable, "-c", HOLDING], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        second = int(process.stdout.readline())
    process.kill()
    process.wait()
    lock = os.open(tmp_path / "lock", os.O_RDWR)
    assert not lock_file(lock), "somebody else could publish before the second process renames"
    assert (tmp_path / "draft").exists()
    os.kill(second, signal.SIGCONT)
    assert eventually(lambda: lock_file(lock))
    os.close(lock)
    assert (tmp_path / "file").read_text() == "made"
    assert eventually(lambda: not Path(f"/proc/{second}").exists())


def test_it_answers_everybody_who_asks_at_once(tmp_path: Path, second: SecondProcess) -> None:
    for number in range(8):
        (tmp_path / f"{number}").write_bytes(b"%d" % number * 100_000)
    wrong: list[object] = []

    def ask(number: int) -> None:
        for _ in range(10):
            ((content, _, _),) = second.call_each("read", [(f"{tmp_path}/{number}",)])
            if content != b"%d" % number * 100_000:
                wrong.append(content)
            if number == 7 and second._peer is not None:
                second._peer.process.kill()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


def test_it_ends_when_it_is_idle(tmp_path: Path, second: SecondProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "single.py"
    program.write_text(Path(single.__file__).read_text().replace("IDLE_SECONDS = 10.0", "IDLE_SECONDS = 0.05"))
    monkeypatch.setattr(single, "__file__", str(program))
    assert second.call_each("stamp", [(str(tmp_path / "gone"),)]) == [None]
    pid = pid_of(second)
    assert eventually(lambda: pid not in children_of(os.getpid()))
    assert second.call_each("stamp", [(str(tmp_path / "gone"),)]) == [None]


@pytest.mark.parametrize(("name", "times"), [("python-like", 1), ("editor", 0)])
def test_what_is_no_python_is_started_once_at_most(
    tmp_path: Path, name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    started.write_text("")
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\necho >> {started}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    second = SecondProcess()
    for _ in range(3):
        assert second.call_each("stamp", [(str(tmp_path / "gone"),)]) == [None]
    assert started.read_text() == "\n" * times


def _ask(second: SecondProcess, file: str, answers: multiprocessing.Queue[object]) -> None:
    answers.put((second.call_each("stamp", [(file,)]), pid_of(second)))
    assert second._peer is not None
    second._peer.end()


def test_a_forked_process_has_one_of_its_own(tmp_path: Path, second: SecondProcess) -> None:
    second.call_each("stamp", [(str(tmp_path / "gone"),)])
    pid = pid_of(second)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    forked = context.Process(target=_ask, args=(second, str(tmp_path / "gone"), answers))
    forked.start()
    answer, other = answers.get(timeout=30)
    forked.join()
    assert answer == [None]
    assert other != pid
    assert second.call_each("stamp", [(str(tmp_path / "gone"),)]) == [None]
    assert pid_of(second) == pid


BUILDING = """
import sys
from stepwell import Pipeline
copies = Pipeline("copies", root="root")

@copies.stage(input="in/{id}.txt", output="a/{id}.txt", version="1")
def a(content: bytes) -> bytes:
    return content.upper()

@copies.stage(input="a/{id}.txt", output="b/{id}.txt", version="1")
def b(content: bytes) -> bytes:
    return content + content

if __name__ == "__main__":
    from building import copies
    report = copies.build(engine="sqlite:///engine.db")
    print(len(report.failed), len(report.left))
"""


def test_a_build_with_a_second_process_is_killed_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(7)
    (tmp_path / "building.py").write_text(BUILDING)
    (tmp_path / "root/in").mkdir(parents=True)
    entities = range(1_500)
    for number in entities:
        (tmp_path / f"root/in/{number}.txt").write_text(f"text {number}")
    had_second = 0
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "building.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while process.poll() is None and not children_of(process.pid) and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.3)
        others = children_of(process.pid)
        had_second += bool(others)
        process.kill()
        process.wait()
        assert eventually(lambda pids=others: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        for name in ("a", "b"):
            for path in (tmp_path / "root" / name).glob("[!.]*"):
                text = f"TEXT {path.stem}"
                assert path.read_text() == (text if name == "a" else text * 2), "a state is seen and not whole"
    assert had_second
    ended = subprocess.run(
        [sys.executable, "building.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100
    )
    assert ended.stdout.split() == ["0", "0"], ended.stderr
    for number in entities:
        assert (tmp_path / f"root/b/{number}.txt").read_text() == f"TEXT {number}" * 2
    assert not list((tmp_path / "root").glob("[ab]/.stepwell-*")), "drafts are left"
