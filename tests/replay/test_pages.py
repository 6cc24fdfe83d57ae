"""What docs/replay.md and docs/checkpoints.md show is what happens."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell import Engine
from stepwell.cli.app import app

ROOT = Path(__file__).parents[2]
Ask = Callable[..., subprocess.CompletedProcess[str]]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def write_files(page: str, folder: Path) -> None:
    for block in blocks(page, "python"):
        if named := re.match(r"# (\w+\.py)\n", block):
            (folder / named[1]).write_text(block, encoding="utf-8")


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", tmp_path)))},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_the_story_of_the_replay_page(tmp_path: Path, ask: Ask) -> None:
    write_files("replay.md", tmp_path)
    first, changed, exported = blocks("replay.md", "console")
    (settings,) = blocks("replay.md", "toml")
    ask("stepwell", "run", "orders:Order", "--run-id", "order-7")
    told = ask("stepwell", "replay", "order-7").stdout
    assert re.sub(r"in [\d.]+ s", "in 0.004 s", told) == first.split("replay order-7\n")[1]
    assert ask("stepwell", "export", "order-7", "order-7.cassette.json").stdout == exported.split("json\n", 1)[1]
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    pytest_options = ("-q", "-p", "no:cacheprovider", "-p", "stepwell.testing.plugin", "test_orders.py")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        assert "1 passed" in ask("pytest", *pytest_options).stdout
        orders = tmp_path / "orders.py"
        orders.write_text(orders.read_text(encoding="utf-8").replace("round(", "int("), encoding="utf-8")
        assert "recorded 2499, now 2498" in ask("pytest", *pytest_options, code=1).stdout
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    assert ask("stepwell", "replay", "order-7", code=1).stderr == changed.split("replay order-7\n")[1]
    with Engine(f"sqlite:///{tmp_path}/.stepwell/stepwell.db", runner=None) as engine:
        assert engine.get("order-7").workflow == "Order"


def test_the_story_of_the_checkpoints_page(tmp_path: Path) -> None:
    definition, story = blocks("checkpoints.md", "python")
    names: dict[str, object] = {"__name__": "imports_of_the_page"}
    exec(compile(definition, "imports.py", "exec", dont_inherit=True), names)
    expected = [found.strip() for found in re.findall(r"print\(.*\)\s+# (.*)$", story, re.MULTILINE)]
    with Engine(f"sqlite:///{tmp_path}/page.db", workflows=[names["Import"]]) as engine:  # type: ignore[list-item]
        names["engine"] = engine
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(story, "story.py", "exec", dont_inherit=True), names)
    assert len(expected) == 4
    assert said.getvalue().splitlines() == expected


def test_the_fields_of_the_page_are_those_there_are(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    table = text[text.index("| field |") : text.index("A work item has")]
    told = [name for row in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    definition, _ = blocks("checkpoints.md", "python")
    names: dict[str, object] = {"__name__": "imports_of_the_page"}
    exec(compile(definition, "imports.py", "exec", dont_inherit=True), names)
    with Engine("memory://") as engine:
        data = engine.run(names["Import"]()).checkpoint("prices loaded").data()  # type: ignore[operator]
    assert told == list(data)
    items = re.search(r"A work item has (.*?), and\n`edge`", text, re.DOTALL)
    assert items is not None
    for name in data["frontier"][0]:
        assert f"`{name}`" in text


def test_the_commands_of_the_page_exist() -> None:
    known = {
        command.name or (command.callback.__name__ if command.callback else "") for command in app.registered_commands
    }
    assert {"replay", "export"} <= known
