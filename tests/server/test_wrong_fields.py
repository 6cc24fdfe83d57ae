"""A wrong field in an input is refused by its exact place: in Python, on the command line and over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import httpx
import pytest
from pydantic import BaseModel

from stepwell import Engine, InputError, Workflow, step
from stepwell.base.schemas import problems_of
from stepwell.cli.inputs import make_startable
from stepwell.define.types.input_schema import input_schema
from tests.server.running import client, running


@dataclass
class Line:
    sku: str
    count: int = 1
    sizes: dict[str, float] = field(default_factory=dict)


class Owner(TypedDict):
    name: str


class Address(BaseModel):
    street: str
    floor: int = 0


@dataclass
class Basket:
    lines: list[Line]
    owner: Owner
    address: Address | None = None
    gift: Line | None = None
    next: Basket | None = None


class Shop(Workflow):
    basket: Basket
    note: str | None = None

    @step
    def count(self) -> int:
        return len(self.basket.lines)


OWNER = {"name": "Ada"}
GOOD: list[dict[str, Any]] = [
    {"lines": [], "owner": OWNER},
    {"lines": [{"sku": "a", "count": 2, "sizes": {"x": 1}}], "owner": OWNER, "gift": {"sku": "b"}, "next": None},
    {"lines": [], "owner": OWNER, "address": {"street": "x", "floor": "7"}},
    {"lines": [], "owner": OWNER, "next": {"lines": [], "owner": OWNER}},
]
WRONG: list[tuple[dict[str, Any], set[str]]] = [
    ({"lines": [{"sku": "a", "count": "x"}], "owner": OWNER}, {"basket.lines[0].count"}),
    ({"lines": [{"sku": "a"}, {"count": 1}], "owner": OWNER}, {"basket.lines[1].sku"}),
    ({"lines": [{}], "ownr": OWNER}, {"basket.lines[0].sku", "basket.owner"}),
    ({"lines": [], "owner": {}}, {"basket.owner.name"}),
    ({"lines": [], "owner": OWNER, "address": {}}, {"basket.address.street"}),
    ({"lines": [], "owner": OWNER, "gift": {"sku": 7}}, {"basket.gift.sku"}),
    ({"lines": [{"sku": "a", "sizes": {"x": "wide"}}], "owner": OWNER}, {"basket.lines[0].sizes.x"}),
    ({"lines": {}, "owner": OWNER}, {"basket.lines"}),
]


def places(text: str) -> set[str]:
    return set(re.findall(r"^  - (?:\$\.input\.)?([^:\n]*):", text, re.MULTILINE))


@pytest.fixture(scope="module", params=["a server with the class", "a server of its workers"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('shop')}/shop.db"
    if request.param == "a server with the class":
        with running(url, worker={"workflows": [Shop]}) as serving, client(serving) as made:
            yield made
    else:
        with Engine(url) as worker:
            worker.work([Shop], wait=0)
            with running(url) as serving, client(serving) as made:
                yield made


@pytest.mark.parametrize(("basket", "expected"), WRONG)
def test_python_names_the_exact_fields_and_so_does_the_command_line(basket: Any, expected: set[str]) -> None:
    with pytest.raises(InputError) as in_python:
        Shop(basket=basket)
    assert places(str(in_python.value)) == expected
    with pytest.raises(InputError) as typed:
        make_startable(Shop.workflow_target, [f"basket={json.dumps(basket)}"], None)
    assert places(str(typed.value)) == expected


@pytest.mark.parametrize(("basket", "expected"), WRONG)
def test_a_server_names_the_exact_fields(api: httpx.Client, basket: Any, expected: set[str]) -> None:
    answer = api.post("/api/v1/workflows/Shop/runs", json={"input": {"basket": basket}})
    assert answer.status_code == 422, answer.text
    assert places(answer.json()["detail"]) == expected


def test_what_python_takes_a_server_takes(api: httpx.Client) -> None:
    for basket in GOOD:
        Shop(basket=basket)
        make_startable(Shop.workflow_target, [f"basket={json.dumps(basket)}"], None)
        assert problems_of(input_schema(Shop), {"basket": basket}) == []
        answer = api.post("/api/v1/workflows/Shop/runs", json={"input": {"basket": basket}})
        assert answer.status_code == 201, answer.text


def test_a_file_of_json_is_refused_by_its_exact_fields_too(tmp_path: Path) -> None:
    basket, expected = WRONG[0]
    (tmp_path / "input.json").write_text(json.dumps({"basket": basket}))
    with pytest.raises(InputError) as refused:
        make_startable(Shop.workflow_target, None, str(tmp_path / "input.json"))
    assert places(str(refused.value)) == expected
