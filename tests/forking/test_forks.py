"""A command that is forked cannot be told from one that Python has just started: the tests of the command line rely on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.waiting import eventually
from tests.forking.template import Template

JOBS = """
import os, signal, sys, time
from stepwell import Workflow, step

class Tell(Workflow):
    @step
    def told(self) -> dict[str, object]:
        return {
            "folder": os.getcwd(),
            "arguments": sys.argv[1:],
            "path": sys.path,
            "environment": dict(os.environ),
            "zone": time.tzname,
            "main": sys.modules["__main__"].__spec__.name,
            "stdin": sys.stdin.read(),
            "terminals": [os.isatty(fd) for fd in range(3)],
            "encodings": [stream.encoding for stream in (sys.stdin, sys.stdout, sys.stderr)],
            "signals": [str(signal.getsignal(number)) for number in (signal.SIGCHLD, signal.SIGPIPE)],
            "pipelines": "stepwell.pipeline" in sys.modules,
        }

class Killed(Workflow):
    @step
    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
"""

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def forked(template: Template, tmp_path: Path) -> Command:
    (tmp_path / "jobs.py").write_text(JOBS)
    return lambda *words, **changes: template.run(
        ["-m", "stepwell", *words], cwd=tmp_path, env={**os.environ, **changes}, timeout=60
    )


@pytest.fixture
def started(tmp_path: Path) -> Command:
    def run(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stepwell", *words]
        environment = {**os.environ, **changes}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_fork_is_as_a_new_process_is(forked: Command, started: Command, tmp_path: Path) -> None:
    def told(command: Command) -> Any:
        done = command("run", "jobs:Tell", TZ="Asia/Tokyo", OWN="ok", PYTHONPATH=f"{tmp_path}/own:relative")
        assert not done.returncode, done
        return json.loads(done.stdout)

    found = told(forked)
    assert found == told(started)
    assert str(tmp_path) in str(found)
    assert "JST" in str(found)


@pytest.mark.parametrize("words", [("--version",), ("no such command",), ("show", "nothing")])
def test_a_fork_writes_and_ends_as_a_new_process_does(
    forked: Command, started: Command, words: tuple[str, ...]
) -> None:
    one, other = forked(*words), started(*words)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


def test_a_file_is_run_as_a_new_process_runs_it(template: Template, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "beside.py").write_text("ANSWER = 42\n")
    (tmp_path / "below" / "file.py").write_text(
        "import sys, beside\nprint(beside.ANSWER, __name__, __file__, sys.argv, sys.path[0])\nsys.exit(7)\n"
    )
    words = [f"{tmp_path}/below/file.py", "-x", "y"]
    one = template.run(words, cwd=tmp_path, env=os.environ, timeout=60)
    other = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)
    assert one.returncode == 7, one


def test_a_fork_is_killed_as_a_new_process_is(forked: Command) -> None:
    assert forked("run", "jobs:Killed").returncode == -signal.SIGKILL
    assert "taken over" in forked("run", "jobs:Killed").stderr  # what it had begun is not lost


def test_commands_are_forked_at_the_same_time(forked: Command) -> None:
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(forked("ls").returncode)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 4


def test_what_python_reads_when_it_starts_needs_a_new_process(template: Template) -> None:
    assert template.can_run({**os.environ, "TZ": "Asia/Tokyo", "NO_COLOR": "1"})
    assert not template.can_run({**os.environ, "PYTHONIOENCODING": "ascii"})
    assert not template.can_run({**os.environ, "LC_ALL": "C"})


def test_a_command_that_hangs_is_killed(template: Template, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    template.run(["-m", "stepwell", "--version"], cwd=tmp_path, env=os.environ, timeout=60)  # it has begun
    with pytest.raises(subprocess.TimeoutExpired) as told:
        template.run(["slow.py"], cwd=tmp_path, env=os.environ, timeout=3.0)
    pid = int(str(told.value.stdout))

    def is_alive() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    eventually(lambda: not is_alive())
    assert template.run(["-m", "stepwell", "--version"], cwd=tmp_path, env=os.environ, timeout=60).returncode == 0
