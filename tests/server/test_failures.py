"""Failed nodes by error, and comparisons page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from stepwell import Builder, Engine
from tests.server.running import client, running

RUNS = "/api/v1/runs"


def fail(item: int) -> int:
    if item % 3:
        raise [KeyError, ValueError][item % 2](f"item {item % 3}")
    return item


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, str, str]]:
    store = f"sqlite:///{tmp_path_factory.mktemp('failures')}/runs.db"
    found = []
    for shift in (0, 30):
        builder = Builder("orders", on_failure="finish")
        items = [item + (shift if item == 3 else 0) for item in range(12)]
        builder.fan_out(items, name="part", job="tests.server.test_failures:fail")
        with Engine(store) as engine:
            found.append(engine.run(builder, check=False).id)
    with running(store) as serving, client(serving) as api:
        yield api, *found


def test_failed_nodes_are_grouped_by_error(runs: tuple[httpx.Client, str, str]) -> None:
    api, run, _ = runs
    found = api.get(f"{RUNS}/{run}/failures").json()
    assert (found["count"], found["exact"], found["run"]) == (8, True, run)
    assert found["seq"] == api.get(f"{RUNS}/{run}").json()["seq"]
    told = {(group["type"], group["message"].strip("'")): group["count"] for group in found["groups"]}
    assert told == {
        ("KeyError", "item 1"): 2,
        ("KeyError", "item 2"): 2,
        ("ValueError", "item 1"): 2,
        ("ValueError", "item 2"): 2,
    }
    failed = {node["id"] for node in api.get(f"{RUNS}/{run}/nodes", params={"status": "FAILED"}).json()["items"]}
    assert {node for group in found["groups"] for node in group["nodes"]} == failed


def test_a_comparison_is_paged_with_what_differs_first(runs: tuple[httpx.Client, str, str]) -> None:
    api, one, other = runs
    whole = api.get(f"{RUNS}/{one}/diff/{other}").json()
    assert (len(whole["nodes"]), whole["size"], whole["next"]) == (whole["size"], whole["size"], None)
    assert 0 < whole["different"] < whole["size"]
    graph = api.get(f"{RUNS}/{other}/graph").json()["groups"]
    alike = sum(not node["differs"] for node in whole["nodes"])
    assert sum(whole["groups"][name] for name in graph["ids"]) == sum(graph["sizes"]) - alike
    pages: list[Any] = []
    asked: dict[str, Any] = {"limit": 5}
    while True:
        page = api.get(f"{RUNS}/{one}/diff/{other}", params=asked).json()
        assert len(page["nodes"]) <= 5
        pages += page["nodes"]
        if page["next"] is None:
            break
        asked["cursor"] = page["next"]
    assert pages == whole["nodes"]
    differs = [bool(node["differs"]) for node in pages]
    assert differs == sorted(differs, reverse=True)
    assert sum(differs) == whole["different"]
