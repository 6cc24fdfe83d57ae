"""Private copies of the project, each with an environment of its own, in which tests run against changed sources.

The work tree is never changed. An environment is a folder with a Python that finds the packages of `.venv`, but Stepwell in the
copy: so do the programs that tests start, whatever environment variables they are given.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "stepwell"
MARK = "STEPWELL_MUTATION_TREE"
"""What every process of a tree has in its environment, so that none is left."""
_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
MOST_MEMORY = 8 << 30
"""A mutant that never stops taking memory must not take all of it."""
NO_END = "no end"
"""What tests came to that took longer than they may."""


class Closed(Exception):
    """The tree was closed while tests ran in it."""


class Outcome(NamedTuple):
    """What came of some tests."""

    passed: bool
    by: str
    """The first test that failed, or why none was run to its end."""


class Tree:
    """A copy of the project in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.notes = folder / "notes"
        """What the processes of the tests write down for us."""
        self._changes = 0
        self._runs = 0
        self._closed = False
        self.notes.mkdir(parents=True)
        for name in tracked_files():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        self._make_environment()

    def _make_environment(self) -> None:
        binaries = self.folder / "env" / "bin"
        binaries.mkdir(parents=True)
        shutil.copy(Path(sys.prefix) / "pyvenv.cfg", self.folder / "env")
        self.python = binaries / "python"
        self.python.symlink_to(os.path.realpath(sys.executable))
        (binaries / "stepwell").write_text(f"#!{self.python}\nfrom stepwell.cli import main\nmain()\n")
        (binaries / "stepwell").chmod(0o755)
        self.packages = Path(sysconfig.get_path("purelib", vars={"base": str(self.folder / "env")}))
        self.packages.mkdir(parents=True)
        self.set_up_every_python("")

    def set_up_every_python(self, line: str) -> None:
        """What every Python of the tree does first: finds its packages, then runs this line."""
        paths = f"{self.root / 'src'}\n{sysconfig.get_path('purelib')}\n"
        (self.packages / "private.pth").write_text(paths + line)

    @contextlib.contextmanager
    def changed(self, module: str, source: str) -> Iterator[None]:
        """While the source of a module is another one."""
        path = self.root / "src" / "stepwell" / module
        original = path.read_text("utf-8")
        try:
            self._write(path, source)
            yield
        finally:
            self._write(path, original)

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source, "utf-8")
        # Compiled files are found stale by time, in whole seconds, and size: both may be equal.
        self._changes += 1
        os.utime(path, (self._changes, self._changes))

    def run_tests(self, tests: Sequence[str], seconds: float, *options: str, each_seconds: float = 60.0) -> Outcome:
        """Run those of these tests that there are, in this order, up to the first that fails. What takes longer has failed."""
        chosen, said = self.notes / "chosen.json", self.notes / "failed.txt"
        chosen.write_text(json.dumps(tests))
        said.unlink(missing_ok=True)
        files = dict.fromkeys(test.split("::")[0] for test in tests)
        options = ("-p", "tests.mutation.choosing", "-x", f"--timeout={each_seconds:.0f}", *options)
        code = self.pytest(*options, *files, seconds=seconds)
        if code is None:
            return Outcome(False, NO_END)
        return Outcome(
            code in _PASSED,
            said.read_text() if said.exists() else f"pytest ended with {code}",
        )

    def pytest(self, *arguments: str, seconds: float | None = None) -> int | None:
        """The exit code, or None if it took longer."""
        if self._closed:
            raise Closed
        self._runs += 1
        # A folder of its own: what a server of the tests before still writes may outlast theirs.
        scratch = self.folder / f"scratch{self._runs}"
        scratch.mkdir()
        command = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
        environment = {
            **os.environ,
            MARK: str(self.folder),
            "TMPDIR": str(scratch),
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
        }
        environment.pop("PYTHONPATH", None)
        try:
            with (self.notes / "output.txt").open("wb") as output:
                process = subprocess.Popen(
                    command,
                    cwd=self.root,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
                try:
                    code = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    code = None
                finally:
                    self._end_processes()
                    process.wait()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if self._closed:
            raise Closed
        return code

    def close(self) -> None:
        """End what runs; whoever waits for it gets no answer."""
        self._closed = True
        self._end_processes()

    def _end_processes(self) -> None:
        """Also those that a test has started and forgotten."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.folder) or str(self.python) in process.cmdline():
                    process.send_signal(signal.SIGKILL)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_sources() -> dict[str, str]:
    """All modules of the package, SQL and Lua too, by their paths below it."""
    files = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".sql", ".lua")]
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in files}


def tracked_files() -> list[str]:
    """What git knows or would know of."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return sorted(name for name in told.split("\0") if name and (ROOT / name).is_file())


@contextlib.contextmanager
def private_trees(folder: Path, count: int) -> Iterator[list[Tree]]:
    """Trees below a folder; nothing of them is left afterwards, not even a process."""
    trees = [Tree(folder / str(number)) for number in range(count)]
    try:
        yield trees
    finally:
        for tree in trees:
            tree.close()
