"""What pyproject.toml names is pinned with hashes, and nothing says where packages come from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str | dict[str, str]]] = PROJECT["dependency-groups"]


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")  # type: ignore[index]


def pins(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").splitlines()
    return {name_of(line): line.split("==")[1].split()[0] for line in lines if re.match(r"[\w.-]+==", line)}


def named(requirements: list[Any]) -> set[str]:
    return {name_of(each) for each in requirements if isinstance(each, str)} - {"stepwell"}


def test_users_get_what_the_tests_run_on() -> None:
    core = named(PROJECT["project"]["dependencies"])
    assert core <= pins(ROOT / "requirements" / "core.txt").keys()
    dev = pins(ROOT / "requirements" / "dev.txt").keys()
    assert core | {name for extra in EXTRAS.values() for name in named(extra)} <= dev


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_is_pinned(group: str) -> None:
    pinned = pins(ROOT / "requirements" / f"{group}.txt")
    assert named(GROUPS[group]) <= pinned.keys()
    core = pins(ROOT / "requirements" / "core.txt")
    if group not in ("postgres", "redis", "dbos"):  # these have an environment of their own, or nothing in common
        assert {name: core[name] for name in pinned.keys() & core.keys()} == {
            name: pinned[name] for name in pinned.keys() & core.keys()
        }


@pytest.mark.parametrize("file", sorted((ROOT / "requirements").iterdir()), ids=lambda file: file.name)
def test_every_pin_has_hashes_and_no_host(file: Path) -> None:
    text = file.read_text("utf-8")
    assert text.count("==") <= text.count("--hash=sha256:")
    assert "://" not in text
    assert "--index" not in text
