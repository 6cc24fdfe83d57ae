"""Runs in every Python of a private tree while the tests are measured, also in those that a test has started.

It notes which lines of the package are run; the file `test` beside its notes says for which test. A process that may be killed
at any time notes what it knows five times a second, and before it ends in a way that it knows of.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from pathlib import Path

import coverage

SAVE_SECONDS = 0.2


def start(notes: str, package: str) -> None:
    """Called first thing in every process."""
    folder = Path(notes)
    _measure(package)
    os.register_at_fork(after_in_child=lambda: _go_on_in_a_fork(folder, package))
    if (folder / "test").exists():
        _serve_one_test(folder)


def _measure(package: str) -> None:
    measuring = coverage.Coverage(data_file=None, config_file=False, include=[f"{package}/*"])
    measuring.set_option("run:core", "ctrace")  # the one that later versions of Python prefer cannot tell tests apart
    # In tests warnings are errors, and it is all right that a test runs nothing of the package, or traces by itself.
    measuring.set_option("run:disable_warnings", ["no-data-collected", "trace-changed", "module-not-measured"])
    measuring.start()


def _go_on_in_a_fork(notes: Path, package: str) -> None:
    current().stop()
    _measure(package)
    _serve_one_test(notes)


def current() -> coverage.Coverage:
    measuring = coverage.Coverage.current()
    assert measuring is not None
    return measuring


def _serve_one_test(notes: Path) -> None:
    """All that this process runs is for the test of this moment."""
    measuring = current()
    measuring.switch_context((notes / "test").read_text())
    file = notes / f"lines-{os.getpid()}-{time.monotonic_ns()}.json"
    saving = threading.Lock()
    kill, leave = os.kill, os._exit

    def save() -> None:
        if saving.acquire(timeout=1.0):
            try:
                write_lines(measuring, file)
            finally:
                saving.release()

    def save_again_and_again() -> None:
        while True:
            time.sleep(SAVE_SECONDS)
            save()

    def save_and_kill(pid: int, number: int) -> None:
        if pid == os.getpid():
            save()
        kill(pid, number)

    def save_and_leave(code: int) -> None:
        save()
        leave(code)

    os.kill, os._exit = save_and_kill, save_and_leave  # type: ignore[assignment]
    atexit.register(save)
    threading.Thread(target=save_again_and_again, name="tracing", daemon=True).start()


def write_lines(measuring: coverage.Coverage, file: Path) -> None:
    """For each test the lines of each module, as they are known now."""
    data = measuring.get_data()
    lines: dict[str, dict[str, list[int]]] = {}
    for module in data.measured_files():
        for line, tests in data.contexts_by_lineno(module).items():
            for test in tests:
                lines.setdefault(test, {}).setdefault(module, []).append(line)
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(lines))
    draft.replace(file)
