"""The command answers at once, because it loads only what it needs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepwell.cli.exits import ExitCode
from tests.cli.conftest import Shop
from tests.engine.waiting import in_time


def test_help_answers_at_once(shop: Shop) -> None:
    def seconds() -> float:
        began = time.monotonic()
        shop("--help")
        return time.monotonic() - began

    in_time(1.0, seconds)


@pytest.mark.parametrize("words", [("--version",), ("run", "--help")])
def test_help_loads_nothing_heavy(shop: Shop, words: tuple[str, ...]) -> None:
    assert {"rich", "apsw", "asyncio", "stepwell.engine", "stepwell.stores", "stepwell.define"}.isdisjoint(
        loaded(shop, *words)
    )


def test_looking_loads_no_engine(shop: Shop) -> None:
    assert {"rich", "asyncio", "stepwell.engine.engine", "stepwell.define"}.isdisjoint(loaded(shop, "ls", "--json"))


def loaded(shop: Shop, *words: str) -> set[str]:
    """The modules that a command imports."""
    command = [sys.executable, "-X", "importtime", "-m", "stepwell", *words]
    told = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, check=True).stderr
    modules = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    assert "typer" in modules
    return modules


def test_the_exit_codes_are_in_the_help(shop: Shop) -> None:
    text = shop("--help").out
    for line in ("0  all went well", "1  the run failed", "4  the store cannot be used", "130  interrupted"):
        assert line in text


def test_the_exit_codes_of_the_documentation_are_the_real_ones() -> None:
    documentation = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
    for code in ExitCode:
        assert f"| {code.value} | {code.meaning}" in documentation


def test_every_command_has_help(shop: Shop) -> None:
    for command in ("run", "ls", "show", "why", "graph", "retry", "resume", "work", "cancel", "gc", "version"):
        assert shop(command, "--help").out.startswith(f"Usage: stepwell {command} ")
