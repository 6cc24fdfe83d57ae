"""Pipelines beside ninja, on the same tree: 10,000 entities and three stages that copy."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from stepwell.pipeline.building.wave import LARGEST_CHUNK
from stepwell.pipeline.states.files.root import Root
from stepwell.pipeline.states.files.syncing import sync_file_system, sync_folders

from .rows import Row

ENTITIES = 10_000
STAGES = ("a", "b", "c")
PROGRAM = """
import json, re
from stepwell import Pipeline
copies = Pipeline("copies", root="tree")

@copies.stage(input="in/{id}.txt", output="a/{id}.txt")
def a(content: bytes) -> bytes:
    return content

@copies.stage(input="a/{id}.txt", output="b/{id}.txt")
def b(content: bytes) -> bytes:
    return content

@copies.stage(input="b/{id}.txt", output="c/{id}.txt")
def c(content: bytes) -> bytes:
    return content

if __name__ == "__main__":
    from copying import copies
    report = copies.build()
    # Not ru_maxrss, which begins with that of the process that started this one.
    memory = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
    print(json.dumps({"produced": len(report.produced), "seconds": report.seconds, "megabytes": memory}))
"""
WARM = """
import json, os, statistics, time
from copying import copies
from stepwell.pipeline.building.build import Scanner
with Scanner(copies) as scanner:
    scanner.changed([])
    taken = []
    for number in range(20):
        path = f"in/{number}.txt"
        os.utime(f"tree/{path}")
        start = time.perf_counter()
        report = scanner.changed([path])
        taken.append(time.perf_counter() - start)
        assert not report.produced
print(json.dumps({"seconds": statistics.median(taken)}))
"""


def pipelines(folder: Path) -> list[Row]:
    tree = folder / "tree"
    bare = _bare_loop(folder / "bare")
    _sources(tree)
    (folder / "copying.py").write_text(PROGRAM)
    (folder / "warm.py").write_text(WARM)
    other = folder / "ninja"
    _sources(other)
    _write_rules(other)
    first = _build(folder)
    bare = (bare + _bare_loop(folder / "bare again")) / 2  # before and after: whatever else the machine does hits both
    assert first["produced"] == ENTITIES * len(STAGES)
    _run_ninja(other)
    _build(folder)  # what was written a moment before is hashed once more
    idle, idle_ninja = _both(lambda: _timed_build(folder, 0), lambda: _run_ninja(other))
    changed, changed_ninja = _both(lambda: _changed(folder, tree), lambda: _changed_ninja(other))
    warm = json.loads(_python(folder, "warm.py"))["seconds"]
    states = ENTITIES * len(STAGES)
    rate = bare / first["seconds"]
    return [
        Row(
            f"{ENTITIES:,} x 3 states, nothing to do, cold process", "<= 3 x ninja",
            f"{idle / idle_ninja:.1f} x ({idle:.2f} and {idle_ninja:.2f} s)", idle <= 3 * idle_ninja,
        ),
        Row(
            "the same in a process that watches, after an event", "<= 10 ms", f"{warm * 1_000:.1f} ms", warm <= 0.010
        ),
        Row(
            "10 changed inputs, 30 stage runs, cold process", "<= 5 x ninja",
            f"{changed / changed_ninja:.1f} x ({changed:.2f} and {changed_ninja:.2f} s)", changed <= 5 * changed_ninja,
        ),
        Row(
            f"first build of {states:,} states", ">= 0.25 x the rate of a bare loop",
            f"{rate:.2f} x ({states / first['seconds']:,.0f} and {states / bare:,.0f} states/s)", rate >= 0.25,
        ),
        Row("peak memory of the first build", "<= 250 MB", f"{first['megabytes']:.0f} MB", first["megabytes"] <= 250),
    ]  # fmt: skip


def _sources(tree: Path) -> None:
    for name in ("in", *STAGES):
        (tree / name).mkdir(parents=True)
    for number in range(ENTITIES):
        (tree / f"in/{number}.txt").write_text(f"entity {number}\n")


def _bare_loop(folder: Path) -> float:
    """Write, sync in the same batches, rename: what a first build cannot do without. In the end all of it is durable.

    The files stay: for minutes after so many were deleted, ext4 looks through their inodes with each file that is made.
    """
    for name in STAGES:
        (folder / name).mkdir(parents=True)
    start = time.perf_counter()
    for name in STAGES:
        home = str(folder / name)  # with a Path for each file the loop would take twice as long, and not be bare
        for first in range(0, ENTITIES, LARGEST_CHUNK):
            numbers = range(first, min(first + LARGEST_CHUNK, ENTITIES))
            for number in numbers:
                descriptor = os.open(f"{home}/.{number}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                os.write(descriptor, b"entity %d\n" % number)
                os.close(descriptor)
            sync_file_system(Root(home))
            for number in numbers:
                os.rename(f"{home}/.{number}.new", f"{home}/{number}.txt")
        sync_folders(Root(home), [""])
    return time.perf_counter() - start


def _write_rules(tree: Path) -> None:
    lines = ["rule cp", "  command = cp $in $out"]
    for number in range(ENTITIES):
        for source, target in (("in", "a"), ("a", "b"), ("b", "c")):
            lines.append(f"build {target}/{number}.txt: cp {source}/{number}.txt")
    (tree / "build.ninja").write_text("\n".join(lines) + "\n")


def _both(ours: Callable[[], float], theirs: Callable[[], float], times: int = 5) -> tuple[float, float]:
    """Medians, taken in turns: whatever else the machine does hits both."""
    pairs = [(ours(), theirs()) for _ in range(times)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _python(folder: Path, *arguments: str) -> str:
    # Installed packages are compiled; an environment that forbids it would have everything compiled in each cold process.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()[-1]


def _build(folder: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(_python(folder, "copying.py"))
    return found


def _timed_build(folder: Path, produced: int) -> float:
    start = time.perf_counter()
    found = _build(folder)
    taken = time.perf_counter() - start
    assert found["produced"] == produced, found
    return taken


def _changed(folder: Path, tree: Path) -> float:
    for number in range(10):
        (tree / f"in/{number * 7}.txt").write_text(f"entity {number} {time.time_ns()}\n")
    return _timed_build(folder, 30)


def _run_ninja(tree: Path) -> float:
    own = Path(sys.prefix) / "bin" / "ninja"
    program = str(own) if own.exists() else shutil.which("ninja")
    assert program is not None, "ninja is not installed: scripts/setup dev"
    start = time.perf_counter()
    subprocess.run([program], cwd=tree, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _changed_ninja(tree: Path) -> float:
    for number in range(10):
        (tree / f"in/{number * 7}.txt").write_text(f"entity {number} {time.time_ns()}\n")
    return _run_ninja(tree)
