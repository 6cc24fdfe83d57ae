"""The fixture of the pytest plugin, in real test runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASSETTES = Path(__file__).parent / "cassettes"


def run_pytest(folder: Path, test: str, *options: str, allowed: str = '["tests"]') -> subprocess.CompletedProcess[str]:
    (folder / "pyproject.toml").write_text(f"[tool.stepwell]\njobs = {allowed}\n", encoding="utf-8")
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    metadata = ["-p", "stepwell.testing.plugin"]
    paths = os.pathsep.join(map(str, (folder, ROOT / "src", ROOT)))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *metadata, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_pytest_finds_the_plugin_by_itself_where_stepwell_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"stepwell": "stepwell.testing.plugin"}


def test_a_cassette_that_replays_passes(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_bytes((CASSETTES / "order-format-1.cassette.json").read_bytes())
    done = run_pytest(
        tmp_path, "def test_it(stepwell_replay):\n    assert len(stepwell_replay('order.json').executed) == 4\n"
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_what_nobody_allowed_is_not_replayed(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_bytes((CASSETTES / "order-format-1.cassette.json").read_bytes())
    test = """
import sys
def test_refused(stepwell_replay):
    try:
        stepwell_replay("order.json")
    finally:
        assert "tests.history.replayed" not in sys.modules
def test_allowed(stepwell_replay):
    assert len(stepwell_replay("order.json", jobs=["tests.history"]).executed) == 4
"""
    done = run_pytest(tmp_path, test, allowed="[]")
    assert "1 failed, 1 passed" in done.stdout
    assert "is not registered here" in done.stdout


def test_a_changed_body_fails_with_the_difference(tmp_path: Path) -> None:
    test = f"""
from tests.history import replayed
def test_it(stepwell_replay):
    replayed.CHANGED.add("cents")
    stepwell_replay({str(CASSETTES / "order-format-1.cassette.json")!r})
"""
    done = run_pytest(tmp_path, test)
    assert done.returncode == 1, done.stdout
    assert "node 'convert', attempt 1" in done.stdout
    assert "$.cents: recorded 4998, now 8996" in done.stdout


def test_a_replay_that_executed_nothing_fails(tmp_path: Path) -> None:
    test = """
from stepwell import Engine
from tests.history.replayed import Opaque
def test_it(stepwell_replay, tmp_path):
    with Engine("memory://") as engine:
        engine.run(Opaque()).export(tmp_path / "opaque.json")
    stepwell_replay(tmp_path / "opaque.json")
"""
    done = run_pytest(tmp_path, test)
    assert done.returncode == 1, done.stdout
    assert "no body was executed" in done.stdout


def test_a_class_that_cannot_be_imported_is_given(tmp_path: Path) -> None:
    test = """
from stepwell import Engine, Workflow, step
def test_it(stepwell_replay, tmp_path):
    class Local(Workflow):
        @step(side_effects="pure")
        def one(self) -> int:
            return 1
    with Engine("memory://") as engine:
        engine.run(Local()).export(tmp_path / "local.json")
    assert stepwell_replay(tmp_path / "local.json", workflow=Local).executed == ("one",)
"""
    done = run_pytest(tmp_path, test)
    assert done.returncode == 0, done.stdout


def test_loading_the_plugin_imports_no_other_part_of_stepwell() -> None:
    script = (
        "import sys, stepwell.testing.plugin\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('stepwell', 'apsw', 'rich', 'typer')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.strip() == str(
        ["stepwell", "stepwell.base", "stepwell.base.version", "stepwell.testing", "stepwell.testing.plugin"]
    )


@pytest.mark.parametrize("name", ["none.json", "sub/none.json"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    done = run_pytest(tmp_path, f"def test_it(stepwell_replay):\n    stepwell_replay({name!r})\n")
    assert done.returncode == 1
    assert "cannot be read" in done.stdout
