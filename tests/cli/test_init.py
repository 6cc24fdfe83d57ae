"""`stepwell init` writes a project whose tests pass and whose types are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.cli.commands.init import CASSETTE, FILES
from tests.cli.mistakes import MISTAKES, wrong_lines

ROOT = Path(__file__).parents[2]


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    done = run(folder, "stepwell", "init", "My shop")
    assert done.returncode == 0, done.stderr
    assert "cd My shop && python orders.py" in done.stdout or "cd 'My shop'" in done.stdout
    return folder / "My shop"


def test_its_tests_pass(project: Path) -> None:
    plugins = ("-p", "stepwell.testing.plugin", "-p", "no:cacheprovider", "-W", "error")
    done = run(project, "pytest", "-q", *plugins, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert 'name = "my-shop"' in (project / "pyproject.toml").read_text()
    assert "{name}" not in (project / "README.md").read_text()


def test_its_program_runs(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "orders.py"], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "Order 7: charged 1999 cents, as order-7. Thank you!\n", done.stderr


def test_a_changed_workflow_fails_its_recorded_run(project: Path, tmp_path: Path) -> None:
    for name in (*FILES, CASSETTE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((project / name).read_text())
    changed = (tmp_path / "orders.py").read_text().replace("Thank you!", "Thanks!")
    (tmp_path / "orders.py").write_text(changed)
    plugins = ("-p", "stepwell.testing.plugin", "-p", "no:cacheprovider")
    done = run(tmp_path, "pytest", "-q", *plugins, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 failed, 2 passed" in done.stdout
    assert "Thanks!" in done.stdout


def test_its_types_are_right_and_mistakes_are_found(project: Path) -> None:
    (project / "mistakes.py").write_text(MISTAKES)
    done = run(project, "mypy", "--strict", "orders.py", "tests", "mistakes.py", "--cache-dir", ".mypy_cache")
    found = {int(line) for line in re.findall(r"^mistakes\.py:(\d+): error", done.stdout, re.MULTILINE)}
    assert found == wrong_lines(), done.stdout + done.stderr
    assert "orders.py" not in re.sub(r"mistakes\.py.*", "", done.stdout)


def test_nothing_is_overwritten(project: Path) -> None:
    before = (project / "orders.py").stat().st_mtime_ns
    done = run(project, "stepwell", "init")
    assert done.returncode != 0
    assert "orders.py" in done.stderr
    assert "name another folder" in done.stderr
    assert (project / "orders.py").stat().st_mtime_ns == before
