"""What bodies have read is given back to the system when they have ended, whichever threads they ran in."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stepwell import Builder, Context, Engine
from tests.engine.waiting import eventually

MEGABYTES = 40
READERS = 4
_all_have_read = threading.Barrier(READERS, timeout=60)


def large(item: int) -> str:
    return "x" * 1_000_000


def read_all(ctx: Context) -> int:
    """Each in a thread of its own, as none ends before all have read."""
    found = len(ctx.outputs.parents())
    _all_have_read.wait()
    return found


def resident_megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(url: str) -> None:
    with Engine(url, max_concurrent_nodes=READERS) as engine:
        builder = Builder("wide")
        parts = builder.fan_out(range(MEGABYTES), job=large, name="part")
        for number in range(READERS):
            builder.node(f"reader{number}", job=read_all, depends_on=parts)
        run = engine.run(builder, wait=60)
        assert [run.output(f"reader{number}") for number in range(READERS)] == [MEGABYTES] * READERS
        eventually(lambda: resident_megabytes() < 3 * MEGABYTES, seconds=10)


@pytest.mark.skipif(sys.platform != "linux", reason="other allocators give it back by themselves")
def test_threads_that_have_read_large_outputs_keep_none_of_their_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; from tests.engine.test_memory import main; main(sys.argv[1])"]
    subprocess.run([*command, f"sqlite:///{tmp_path}/runs.db"], check=True, timeout=120)
