"""docs/handlers.md says what the handlers say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from stepwell.base.forms.problems import Problems
from stepwell.base.services import Service
from stepwell.base.setting_types import read_table
from stepwell.base.settings import Settings, read_settings
from stepwell.base.templates import is_template
from stepwell.define.document import Document
from stepwell.handlers import Handlers
from tests.engine.waiting import eventually
from tests.handlers.page import tables
from tests.tables import field_rows

PAGE = (Path(__file__).parents[2] / "docs" / "handlers.md").read_text("utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.mark.parametrize("name", list(Handlers()))
def test_every_field_of_config_and_output_is_on_the_page(name):
    handler = Handlers()[name]
    assert "\n".join(tables(handler)) in SECTIONS[name]
    assert all(line.rsplit("|", 2)[1].strip() for line in tables(handler) if line.startswith("| `"))
    assert "`result`" in "\n".join(tables(handler)) or name == "workflow", "its output is that of another document"
    assert PAGE.count(f"[`{name}`](#{name})") == 1


@pytest.mark.parametrize("name", list(Handlers()))
def test_the_examples_are_configs_that_the_handler_takes(name):
    handler = Handlers()[name]
    assert handler.check_config(dict(handler.example), is_template) == []
    for block in blocks(SECTIONS[name], "yaml"):
        for node in yaml.safe_load(block):
            assert node["handler"] == name
            assert handler.check_config(node.get("config", {}), is_template) == []


def test_the_settings_are_read_as_they_stand():
    for name in ("call_external_service", "llm_service", "shell"):
        for block in blocks(SECTIONS[name], "toml"):
            problems = Problems()
            assert read_table(Settings, tomllib.loads(block), problems)
            assert problems == []


def test_every_field_of_a_service_is_on_the_page() -> None:
    assert field_rows(Service) <= set(PAGE.splitlines())


def test_every_setting_of_handlers_is_on_the_page(tmp_path: Path):
    told = {
        "services": '{"crm": {"base_url": "https://crm.test"}}',
        "secrets": '{"T": {"env": "TOKEN"}}',
        "secrets_folder": "/run/secrets",
        "private_networks": "10.0.0.0/8, 127.0.0.1:80",
        "shell": "git, tr",
        "handlers": "shop.handlers",
        "jobs": "shop.jobs",
    }
    section = SECTIONS["Settings"]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(told)
    environment = {f"STEPWELL_{name.upper()}": value for name, value in told.items()}
    assert all(f"`{variable}`" in section for variable in environment)
    found = read_settings({}, environment, tmp_path)
    assert all(getattr(found, name) for name in told)
    access = Handlers.of_settings(found).access
    assert (list(access.services), access.shell, len(access.private)) == (["crm"], {"git", "tr"}, 2)


def test_the_handler_of_ones_own_works():
    [code] = blocks(SECTIONS["Your own"], "python")
    made: dict[str, Any] = {"__name__": "page"}
    exec(code, made)
    geocode, handlers = made["geocode"], made["engine"].parts.code.handlers
    assert geocode.output_fields() == {"result"}

    def document(address: str) -> Document:
        place = {"id": "place", "handler": "geocode", "config": {"address": address, "key": "secret:MAPS_KEY"}}
        return Document({"name": "places", "nodes": [{**place, "dependencies": []}]}, handlers=handlers)

    with made["engine"] as engine:
        assert engine.run(document("Alexanderplatz 1")).output("place") == {"result": [52.52, 13.41]}
        nowhere = engine.run(document("Nowhere"), check=False).node("place")
        assert [str(each.status) for each in nowhere.attempts] == ["FAILED"]
        busy = engine.start(document("busy"))
        eventually(lambda: len(busy.node("place").attempts) > 1)
        busy.cancel()
