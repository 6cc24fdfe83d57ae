"""`stepwell handlers`: what there is, and how it is asked for."""

from __future__ import annotations

from tests.cli.conftest import Shop

MINE = '''
from pydantic import BaseModel
from stepwell import handler

class Config(BaseModel):
    address: str

@handler("geocode", example={"address": "{{ input.address }}"})
def geocode(ctx, config: Config):
    """Find a place."""
    return {"result": None}
'''


def test_handlers_are_listed_with_those_of_the_settings(shop: Shop) -> None:
    (shop.folder / "mine.py").write_text(MINE)
    (shop.folder / "stepwell.toml").write_text('handlers = ["mine"]\n')
    shown = shop("handlers").out
    assert "http_request" in shown
    assert "Find a place." in shown
    listed = shop("handlers", "--json").json
    assert {each["name"] for each in listed} >= {"geocode", "shell", "transform", "llm_service"}


def test_one_is_shown_with_its_config_and_an_example(shop: Shop) -> None:
    shown = shop("handlers", "http_request").out
    for word in ("url", "required", "expected_status", "status_code", '"handler": "http_request"', "3 attempts"):
        assert word in shown
    data = shop("handlers", "http_request", "--json").json
    assert data["config"]["required"] == ["url"]
    assert data["max_attempts"] == 3
    assert data["output"]["properties"]["result"]


def test_a_name_that_is_none_is_told_with_what_may_be_meant(shop: Shop) -> None:
    assert "did you mean 'http_request'?" in shop("handlers", "htp_request", code=2).err
    assert "there are aggregate" in shop("handlers", "xyzzy", code=2).err


def test_a_module_of_the_settings_that_is_not_there_is_told(shop: Shop) -> None:
    (shop.folder / "stepwell.toml").write_text('handlers = ["nowhere"]\n')
    assert "nowhere" in shop("handlers", code=2).err
