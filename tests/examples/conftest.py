"""The examples as their readers run them: real commands in real processes, each test in a folder of its own.

A command that a test runs to its end is forked from a process that has imported Stepwell, unless it needs a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepwell import Engine, RunNotFound
from stepwell.engine import NodeView
from tests.forking.template import Template

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds until something is taken to hang; only a test that fails waits for so long."""


SHELL = re.compile(r"[|&;<>$`*?#\n]")
BEFORE = (None, "PENDING", "READY")
TRIES = 20


class Missed(Exception):
    """A process was killed later than it should have been."""


class Ended:
    def __init__(self, command: str, code: int, out: str, err: str) -> None:
        self.command = command
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"<{self.command!r}: exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}>"


class Scheduler:
    """A folder in which commands are typed. `python` and `stepwell` are those that run the tests."""

    def __init__(self, folder: Path, template: Template) -> None:
        self.folder = folder
        self._template = template
        self._started: list[subprocess.Popen[str]] = []

    def __call__(self, command: str, *, code: int | None = 0) -> Ended:
        """Type a command and wait for its end, which must be this exit code; None is any."""
        ended = self._fork(command) or self.end(self.start(command))
        assert code is None or ended.code == code, ended
        assert "Traceback" not in ended.err, ended
        return ended

    def start(self, command: str) -> subprocess.Popen[str]:
        """Type a command, in a process group of its own, and leave it running."""
        process = subprocess.Popen(
            command,
            shell=True,
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def _fork(self, command: str) -> Ended | None:
        """Run a command to its end, if nothing in it is for the shell."""
        environment = self._environment()
        program, *words = shlex.split(command)
        if program not in ("python", "stepwell") or SHELL.search(command) or not self._template.can_run(environment):
            return None
        file = [] if program == "python" else [str(Path(sys.executable).with_name(program))]
        done = self._template.run([*file, *words], cwd=self.folder, env=environment, timeout=PATIENCE)
        return Ended(command, done.returncode, done.stdout, done.stderr)

    def end(self, process: subprocess.Popen[str]) -> Ended:
        out, err = process.communicate(timeout=PATIENCE)
        return Ended(str(process.args), process.returncode, out, err)

    def kill(self, process: subprocess.Popen[str]) -> Ended:
        """With SIGKILL, and all that it started."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        return self.end(process)

    def kill_while(self, process: subprocess.Popen[str], database: str, *, run_id: str, node: str) -> Ended:
        """Kill it while a node runs; Missed when it was too late for that."""
        until(lambda: process.poll() is not None or self._status(database, run_id, node) not in BEFORE)
        ended = self.kill(process)
        if self._status(database, run_id, node) != "RUNNING":
            raise Missed(ended)
        return ended

    def look(self, database: str, run_id: str) -> dict[str, NodeView]:
        """How the nodes of a run stand; nothing while there is no such run."""
        if not (self.folder / database).exists():
            return {}
        with Engine(f"sqlite:///{self.folder / database}", runner=None) as engine:
            try:
                return {node.name: node for node in engine.get(run_id).nodes()}
            except RunNotFound:
                return {}

    def _status(self, database: str, run_id: str, node: str) -> str | None:
        found = self.look(database, run_id).get(node)
        return None if found is None else str(found.status)

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                self.kill(process)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("STEPWELL_")}
        kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
        kept |= {"COLUMNS": "100", "PYTHONUTF8": "1"}
        return kept


def until(condition: Callable[[], object]) -> None:
    """Wait for something that other processes do."""
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at, "it never happened"
        time.sleep(0.005)


def until_in_time(folder: Path, template: Template, story: Callable[[Scheduler], None]) -> None:
    """Do it, each time in another folder, until a process was killed in time: nobody can promise that on a busy machine."""
    for number in range(TRIES):
        place = folder / str(number)
        place.mkdir()
        scheduler = Scheduler(place, template)
        try:
            return story(scheduler)
        except Missed as missed:
            last = missed
        finally:
            scheduler.close()
    pytest.fail(f"in {TRIES} tries the process was never killed in time; the last one: {last}")


@pytest.fixture
def scheduler(tmp_path: Path, utf8_template: Template) -> Iterator[Scheduler]:
    made = Scheduler(tmp_path, utf8_template)
    yield made
    made.close()
