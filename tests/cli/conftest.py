"""The real command, in real processes, each test in a folder of its own.

A command that a test runs to its end is forked from a process that has imported everything (`tests/forking`); one that a test
only starts is a new Python.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forking.template import Template

COMMAND = [sys.executable, "-m", "stepwell"]
PATIENCE = 120.0
"""Seconds until something is taken to hang; only a test that fails waits for so long."""


class Ended:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"<exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}>"


class Shop:
    """A folder with `shop.py` in it, and the command line working there."""

    def __init__(self, folder: Path, template: Template) -> None:
        self.folder = folder
        self._template = template
        self._started: list[subprocess.Popen[str]] = []
        shutil.copy(Path(__file__).parent / "shop.py", folder / "shop.py")

    def __call__(self, *words: object, code: int = 0, stdin: str | None = None, **environment: str) -> Ended:
        """Run a command to its end, which must be this exit code."""
        done = self._run(list(map(str, words)), self._environment(environment), stdin)
        ended = Ended(done.returncode, done.stdout, done.stderr)
        assert ended.code == code, ended
        assert environment.get("STEPWELL_DEBUG") or "Traceback" not in ended.err, ended
        return ended

    def _run(
        self, words: list[str], environment: dict[str, str], stdin: str | None
    ) -> subprocess.CompletedProcess[str]:
        if stdin is None and self._template.can_run(environment):
            return self._template.run(["-m", "stepwell", *words], cwd=self.folder, env=environment, timeout=PATIENCE)
        return subprocess.run(
            [*COMMAND, *words],
            cwd=self.folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *words: object, **environment: str) -> subprocess.Popen[str]:
        """Start a command in a process group of its own and leave it running."""
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self._environment(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], *, code: int) -> Ended:
        out, err = process.communicate(timeout=PATIENCE)
        ended = Ended(process.returncode, out, err)
        assert ended.code == code, ended
        return ended

    def ledger(self) -> list[str]:
        try:
            return (self.folder / "ledger.txt").read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something that other processes do."""
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < give_up_at, "it never happened"
            time.sleep(0.01)

    def status(self, run_id: str) -> str:
        found: str = self("show", run_id, "--json").json["status"]
        return found

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def _environment(self, changes: dict[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("STEPWELL_")}
        for name in ("COLUMNS", "FORCE_COLOR"):
            inherited.pop(name, None)
        return inherited | changes


@pytest.fixture(scope="module")
def old_shop(tmp_path_factory: pytest.TempPathFactory, template: Template) -> Iterator[Shop]:
    """A shop that already has runs, for tests that only look. The names of the runs say what became of them."""
    made = Shop(tmp_path_factory.mktemp("old_shop"), template)
    made("run", "shop:Again", "--run-id", "again")
    made("run", "shop:fan", "-i", "width=12", "--run-id", "fan-12")
    made("run", "shop:Order", "-i", "order_id=-1", "--run-id", "shop:failed", "--key", "k", code=1)
    made("run", "shop:fan", "-i", "width=100", "-i", "odd=77", "--run-id", "fan-100", code=1)
    made("run", "shop:Again")
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path: Path, template: Template) -> Iterator[Shop]:
    made = Shop(tmp_path, template)
    yield made
    made.close()
