"""Lists that come in pages: joined, pages of any size are the whole list, and the last one says that it is the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.server.running import ADD, client, ended, running

LISTS = {
    "/audit-log",
    "/runs",
    "/runs/{run_id}/audit-log",
    "/runs/{run_id}/diff/{other}",
    "/runs/{run_id}/effects",
    "/runs/{run_id}/journal",
    "/runs/{run_id}/logs",
    "/runs/{run_id}/nodes",
    "/runs/{run_id}/nodes/{node}/inputs",
    "/runs/{run_id}/outputs",
    "/triggers",
    "/workers",
    "/workflows",
    "/workflows/{name}/versions",
}
"""All but columns of attempts (`test_attempts`) and what pipelines have (`tests/pipeline`)."""
PASSING = {"lease_seconds_left", "renewed_seconds_ago"}
"""What is another number at every look."""
EMPTY = {"/runs/{run_id}/effects", "/runs/{run_id}/logs"}
"""Nodes of documents leave none."""
PLACES = {"run_id": "page-1", "other": "page-2", "node": "y", "name": "add"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with two or more of everything."""
    url = f"sqlite:///{tmp_path_factory.mktemp('pages')}/pages.db"
    second = ADD | {"nodes": [*ADD["nodes"], {"id": "z", "handler": "transform", "config": {"template": 1}}]}
    with running(url, worker={}) as serving, client(serving) as api:
        for document in (ADD, second, ADD | {"name": "other"}):
            assert api.post("/api/v1/workflows", json=document).status_code == 201
        for number in (1, 2):
            started = {"input": {"a": number}, "run_id": f"page-{number}"}
            assert api.post("/api/v1/workflows/add/runs", json=started).status_code == 201
            ended(api, f"page-{number}")
            trigger = {"name": f"nightly-{number}", "workflow": "add", "cron": "30 2 * * *", "input": {"a": 1}}
            assert api.post("/api/v1/triggers", json=trigger).status_code == 201
        yield api


def page_of(api: httpx.Client, path: str, **asked: Any) -> tuple[list[Any], str | None]:
    """The items, and where the next page begins."""
    page = api.get(f"/api/v1{path}", params=asked).json()
    items = page["items"] if "items" in page else page["nodes"]
    return [{name: value for name, value in item.items() if name not in PASSING} for item in items], page["next"]


def list_of(api: httpx.Client, path: str, limit: int) -> list[Any]:
    """The items of all pages."""
    whole, following = page_of(api, path, limit=limit)
    while following is not None:
        items, following = page_of(api, path, limit=limit, cursor=following)
        assert len(items) <= limit
        whole += items
        assert len(whole) < 100, "it has no end"
    return whole


@pytest.mark.parametrize("path", sorted(LISTS))
def test_pages_are_the_list_whatever_their_size(api: httpx.Client, path: str) -> None:
    place = path.format(**PLACES)
    whole, following = page_of(api, place, limit=100)
    assert following is None
    assert bool(whole) == (path not in EMPTY)
    assert [list_of(api, place, limit) for limit in (1, 2, 3)] == [whole] * 3


def test_no_list_is_left_out(api: httpx.Client) -> None:
    described = api.get("/api/v1/openapi.json").json()["paths"]
    lists = {
        path.removeprefix("/api/v1")
        for path, methods in described.items()
        if {"cursor", "limit"} <= {each["name"] for each in methods.get("get", {}).get("parameters", ())}
    }
    assert {path for path in lists if "pipelines" not in path} - {"/runs/{run_id}/attempts"} == LISTS
