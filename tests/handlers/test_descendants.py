"""All that a program has started is ended, however it hides; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stepwell.handlers.descendants import MARK, kill_descendants

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system has no /proc")

PROGRAM = """
import subprocess, sys
sleep = ["sleep", "300"]
in_own_session = subprocess.Popen(sleep, start_new_session=True)
without_mark = subprocess.Popen(["env", "-i", *sleep], start_new_session=True)
below = subprocess.Popen(["sh", "-c", "env -i sh -c 'sleep 300; true'; true"])
orphan = subprocess.run(["sh", "-c", "setsid sleep 300 > /dev/null 2>&1 & echo $!"], capture_output=True, text=True).stdout
print(in_own_session.pid, without_mark.pid, below.pid, orphan.strip(), flush=True)
in_own_session.wait()
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user, with another mark."""
    with subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: "this-one-2"}) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("knows_root", [True, False])
def test_everything_that_a_program_started_is_ended_and_nothing_else(
    bystander: subprocess.Popen[bytes], knows_root: bool
) -> None:
    environment = {**os.environ, MARK: "this-one"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        started = [psutil.Process(int(each)) for each in program.stdout.readline().split()]
        started += [child for process in started for child in process.children(recursive=True)]
        assert len(started) >= 5
        kill_descendants("this-one", program.pid if knows_root else None)
        _, alive = psutil.wait_procs(started, timeout=10)
        assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
        assert program.wait(10) == -9
        kill_descendants("this-one", None)
    assert bystander.poll() is None
    kill_descendants("nobody has this", None)
    assert bystander.poll() is None
