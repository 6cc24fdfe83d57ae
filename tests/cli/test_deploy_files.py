"""The files for deploying say what the command line understands."""

from __future__ import annotations

import shlex
from configparser import RawConfigParser
from pathlib import Path

import yaml

from tests.cli.conftest import Shop

FOLDER = Path(__file__).parents[2] / "deploy"


def commands() -> list[list[str]]:
    """What services are started with, without `stepwell` itself."""
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    found = [service["command"] for name, service in services.items() if name not in ("postgres", "redis")]
    for unit in sorted((FOLDER / "systemd").iterdir()):
        parser = RawConfigParser(strict=False)
        parser.read(unit)
        found.append(shlex.split(parser["Service"]["ExecStart"])[1:])
    return found


def test_every_option_exists(shop: Shop) -> None:
    helps: dict[str, str] = {}
    for command, *words in commands():
        known = helps.setdefault(command, shop(command, "--help").out)
        for word in words:
            assert not word.startswith("--") or f"{word} " in known, f"{command} has no {word}"
    assert set(helps) == {"worker", "orchestrator", "serve"}


def test_services_have_time_to_drain() -> None:
    """Longer than `close_seconds`, and the worker itself is told, not its processes."""
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert compose["services"]["worker"]["stop_grace_period"] == "30s"
    parser = RawConfigParser(strict=False)
    parser.read(FOLDER / "systemd" / "stepwell-worker@.service")
    assert parser["Service"]["TimeoutStopSec"] == "30"
    assert parser["Service"]["KillMode"] == "mixed"
