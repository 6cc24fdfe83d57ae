"""A process that is killed between any two steps of writing and recording: the next one finishes, and nothing is half done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.forking.template import Template
from tests.pipeline.blog import write

PROGRAM = Path(__file__).parent / "crashing.py"
NAMES = ("a", "b", "c")


@pytest.fixture
def run(template: Template) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(folder: Path, *fault: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CRASH_ROOT": str(folder / "root"), "PYTHONPATH": str(PROGRAM.parent)}
        words = [str(PROGRAM), str(folder / "engine.db"), *fault]
        return template.run(words, cwd=folder, env=environment, timeout=100)

    return run


def check(folder: Path) -> None:
    root = folder / "root"
    for name in NAMES:
        text = (root / f"in/{name}.txt").read_text().upper()
        assert (root / f"up/{name}.txt").read_text() == text
        assert (root / f"dir/{name}/a").read_text() == text
        assert (root / f"dir/{name}/b").read_text() == text * 2
        made = sorted(path for path in (root / f"parts/{name}").iterdir() if path.name[0] != ".")
        assert [path.read_text() for path in made] == text.split()
    assert [path for path in root.rglob(".stepwell-*") if path.parent != root / ".stepwell"] == [], "drafts are left"


def half_done(root: Path) -> list[str]:
    """States that are seen and not whole: there must never be any."""
    found = []
    for name in NAMES:
        up = root / f"up/{name}.txt"
        texts = {f"{name} one", f"{name} two three"}
        if up.exists() and up.read_text().lower() not in texts:
            found.append(str(up))
        inside = root / f"dir/{name}"
        if inside.exists() and {path.name for path in inside.iterdir()} != {"a", "b"}:
            found.append(str(inside))
    return found


FAULTS = [
    ("write", 12),
    ("syncfs", 6),
    ("replace", 14),
    ("rename", 5),
    ("mkdir", 8),
    ("unlink", 3),
    ("commit", 14),
    ("open", 40),
]


@pytest.mark.parametrize("seed", range(6))
def test_killed_between_any_two_steps(
    tmp_path: Path, run: Callable[..., subprocess.CompletedProcess[str]], seed: int
) -> None:
    chance = random.Random(seed)
    for name in NAMES:
        write(tmp_path / "root", f"in/{name}.txt", f"{name} one")
    if seed % 2:  # what is rebuilt is killed, too
        assert run(tmp_path).returncode == 0
        for name in NAMES:
            write(tmp_path / "root", f"in/{name}.txt", f"{name} two three")
    for _ in range(3):
        step, most = chance.choice(FAULTS)
        died = run(tmp_path, f"{step}:{chance.randint(1, most)}")
        assert died.returncode in (0, -signal.SIGKILL), died.stderr
        assert half_done(tmp_path / "root") == []
    last = run(tmp_path)
    assert last.returncode == 0, last.stderr
    assert last.stdout.split()[1:] == ["0", "0"], last.stdout + last.stderr
    check(tmp_path)
    assert run(tmp_path).stdout.split() == ["0", "0", "0"]


def test_two_processes_never_build_one_state_twice(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(40)]
    for name in names:
        write(tmp_path / "root", f"in/{name}.txt", f"{name} one")
    environment = {**os.environ, "CRASH_ROOT": str(tmp_path / "root"), "PYTHONPATH": str(PROGRAM.parent)}
    both = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(tmp_path / "engine.db")],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    produced = [int(process.communicate(timeout=100)[0].split()[0]) for process in both]
    assert sum(produced) == 3 * len(names)
    ledger = (tmp_path / "ledger").read_text().splitlines()
    assert len(ledger) == len(set(ledger)) == 3 * len(names)


def stop_outside_of_transactions(pid: int, database: Path) -> None:
    """A process that is stopped inside a transaction keeps everybody out for as long as it is stopped."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)
        connection = apsw.Connection(str(database))
        try:
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")
            return
        except apsw.BusyError:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.02)
        finally:
            connection.close()


def test_a_fenced_worker_renames_nothing(tmp_path: Path) -> None:
    """A process is stopped inside a body; another takes over; the first goes on and must change nothing."""
    program = tmp_path / "stopping.py"
    program.write_text(
        """
import os, sys, time
from pathlib import Path
from stepwell import Engine, Pipeline
from stepwell.pipeline.states.files import lease
lease.LEASE_SECONDS = 1.0
stopping = Pipeline("stopping", root=os.environ["ROOT"])

@stopping.stage(input="in/{x}", output="out/{x}", version="1")
def body(text: str) -> str:
    if os.environ["WHO"] == "first":
        folder = Path(os.environ["ROOT"]).parent
        folder.joinpath("inside").touch()
        while not folder.joinpath("go").exists():
            time.sleep(0.01)
    return os.environ["WHO"]

if __name__ == "__main__":
    from stopping import stopping as imported
    with Engine(sys.argv[1], lease_seconds=1, close_seconds=0.1) as engine:
        print(imported.build(engine=engine))
"""
    )
    write(tmp_path / "root", "in/a", "text")

    def start(who: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "ROOT": str(tmp_path / "root"), "WHO": who, "PYTHONPATH": str(tmp_path)}
        return subprocess.Popen(
            [sys.executable, str(program), f"sqlite:///{tmp_path}/engine.db"], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    first = start("first")
    while not (tmp_path / "inside").exists():
        time.sleep(0.01)
        assert first.poll() is None, first.communicate()[0]
    stop_outside_of_transactions(first.pid, tmp_path / "engine.db")
    second = start("second")
    try:
        out = second.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        second.kill()
        raise AssertionError(second.communicate()[0]) from None
    assert second.returncode == 0, out
    assert (tmp_path / "root/out/a").read_text() == "second"
    manifest = (tmp_path / "root/out/.manifest.json").read_text()
    (tmp_path / "go").touch()
    os.kill(first.pid, signal.SIGCONT)
    first.communicate(timeout=60)
    assert (tmp_path / "root/out/a").read_text() == "second"
    assert (tmp_path / "root/out/.manifest.json").read_text() == manifest
