"""The files for deploying say what the command line, pip and systemd understand."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from stepwell import Engine
from stepwell.base.settings import read_settings
from stepwell.cli.app import app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
UNITS = sorted((FOLDER / "systemd").iterdir())
OURS = {name: each for name, each in COMPOSE["services"].items() if "build" in each}


def of_unit(unit: Path) -> Any:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser


def command_of(unit: Path) -> list[str]:
    return shlex.split(of_unit(unit)["Service"]["ExecStart"])


COMMANDS = [*(each["command"] for each in OURS.values()), *(command_of(unit)[1:] for unit in UNITS)]


def test_all_services_are_there() -> None:
    assert set(COMPOSE["services"]) == {"postgres", "redis", "orchestrator", "worker", "api"}
    assert set(OURS) == {"orchestrator", "worker", "api"}
    assert [unit.name for unit in UNITS] == [
        "stepwell-orchestrator.service",
        "stepwell-serve.service",
        "stepwell-worker@.service",
    ]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_is_read_by_the_command_line(words: list[str]) -> None:
    """With its values: read up to the point where it would be done."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("stepwell", [], resilient_parsing=True)
    name, command, rest = group.resolve_command(context, words)
    command.make_context(name, rest, parent=context)  # which raises for an unknown option, or a value that will not do
    with pytest.raises(Exception, match=r"No such option"):
        command.make_context(name, [*rest, "--nothing"], parent=context)


def test_services_get_settings_that_exist() -> None:
    """And whatever they are started before, they wait for: what they depend on is there and has a health check."""
    for name, each in OURS.items():
        given = {key: re.sub(r"\$\{.*?\}", "secret", value) for key, value in each["environment"].items()}
        settings = read_settings({}, given, ROOT / "deploy")
        assert settings.store == "postgresql://stepwell:secret@postgres/stepwell", name
        assert settings.broker == "redis://redis:6379/0"
        for other, wanted in each["depends_on"].items():
            assert wanted == {"condition": "service_healthy"}
            assert COMPOSE["services"][other]["healthcheck"]["test"]
        assert (ROOT / each["build"]["dockerfile"]).is_file()
    assert set(COMPOSE["volumes"]) == {"postgres"}


def test_the_image_installs_what_there_is_and_listens_to_signals() -> None:
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    (install,) = [line for line in lines if line.startswith("RUN pip install")]
    extras = re.search(r"\.\[(.*)\]", install)
    assert extras is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    assert 'ENTRYPOINT ["stepwell"]' in lines, "in exec form, so that SIGTERM reaches it"
    assert lines.index("USER app") < lines.index('ENTRYPOINT ["stepwell"]')
    assert project["scripts"].keys() >= {"stepwell"}
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv"} <= set(ignored)
    assert not {"src", "examples", "README.md", "pyproject.toml", "LICENSE", "deploy"} & set(ignored)


def test_services_have_time_to_drain() -> None:
    """Longer than `close_seconds`, and the worker itself is told, not its processes."""
    close_seconds = inspect.signature(Engine).parameters["close_seconds"].default
    assert all(int(each["stop_grace_period"].removesuffix("s")) > close_seconds for each in OURS.values())
    service = of_unit(FOLDER / "systemd" / "stepwell-worker@.service")["Service"]
    assert int(service["TimeoutStopSec"]) > close_seconds
    assert service["KillMode"] == "mixed"
    assert service["KillSignal"] == "SIGTERM"


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """As `systemd-analyze verify` sees them, where there is one; the programs they start are not on this machine."""
    for unit in UNITS:
        text = unit.read_text()
        program, *_ = command_of(unit)
        assert program == "/srv/stepwell/.venv/bin/stepwell"
        (tmp_path / unit.name).write_text(text.replace(program, sys.executable))
        assert of_unit(unit)["Install"]["WantedBy"] == "multi-user.target"
    verify = shutil.which("systemd-analyze")
    if verify is not None:
        copies = [str(tmp_path / unit.name) for unit in UNITS]
        told = subprocess.run(
            [verify, "verify", "--man=no", *copies], capture_output=True, text=True, timeout=60, check=False
        )
        assert [line for line in told.stderr.splitlines() if "stepwell" in line] == []
