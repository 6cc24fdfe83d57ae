"""`stepwell init` writes a project whose tests pass and whose types are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.cli.commands.init import CASSETTE, FILES

ROOT = Path(__file__).parents[2]
MISTAKES = """
from orders import Order
from stepwell import Engine, RunFailed, Retry, Workflow, step

with Engine("memory://", node_timeout=3) as engine:
    engine.run(Order(order_id=7), runid="r")  # wrong
    engine.start(Order(order_id=7), priority="high")  # wrong
    engine.start_many([Order(order_id=7)], tag={})  # wrong
    Order(order_id="seven")  # wrong
    run = engine.run(Order(order_id=7), run_id="r", wait=3)
    for node in run.nodes():
        node.status.lower()
        node.statu  # wrong


async def main() -> None:
    async with Engine("memory://") as engine:
        await engine.run(Order(order_id=7), runid="r")  # wrong
        run = await engine.start(Order(order_id=7), run_id="r")
        (await run.status).lower()
        run.status.lower()  # wrong
        (await run.wait(timeout=3)).id.lower()
        (await run.retry()).id.lower()


class Typed(Workflow):
    @step(retries=3)  # wrong
    def one(self) -> None: ...

    @step(retry=Retry(3, retry_on=lambda error: error.status > 3), timeout=3)
    def two(self) -> None: ...
"""


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
    wrong = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if line.endswith("# wrong")}
    assert found == wrong, done.stdout + done.stderr
    assert "orders.py" not in re.sub(r"mistakes\.py.*", "", done.stdout)


def test_nothing_is_overwritten(project: Path) -> None:
    before = (project / "orders.py").stat().st_mtime_ns
    done = run(project, "stepwell", "init")
    assert done.returncode != 0
    assert "orders.py" in done.stderr
    assert "nothing is overwritten" in done.stderr
    assert (project / "orders.py").stat().st_mtime_ns == before
