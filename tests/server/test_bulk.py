"""What is done to many runs is done to those of the preview, as they were then, and to no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell.base.words import iso
from stepwell.core.store import Store
from stepwell.engine.runs import bulk
from stepwell.stores import open_store
from tests.conformance.ops import claim, enlist
from tests.server.running import ADD, client, serving_of

RUNS, BULK = "/api/v1/runs", "/api/v1/bulk"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    yield store
    store.close()


@pytest.fixture
def api(store: Store) -> Iterator[httpx.Client]:
    """A server without a worker: a run stays as it is until something is requested of it."""
    with serving_of(store) as serving, client(serving) as api:
        assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        for run in ("one", "two"):
            start(api, run)
        yield api


def start(api: httpx.Client, run: str) -> None:
    body = {"input": {"a": 1}, "run_id": run, "tags": {"batch": "a"}}
    assert api.post("/api/v1/workflows/add/runs", json=body).status_code == 201


def preview(api: httpx.Client, verb: str, **more: Any) -> dict[str, Any]:
    answer = api.post(f"{BULK}/{verb}", json={"filter": {"tag": ["batch=a"]}, "dry_run": True, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def apply(api: httpx.Client, verb: str, runs: list[Any]) -> dict[str, Any]:
    answer = api.post(f"{BULK}/{verb}", json={"preview": runs})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def request(api: httpx.Client, run: str, *verbs: str) -> None:
    for verb in verbs:
        answer = api.post(f"{RUNS}/{run}/{verb}", json={"grace_seconds": 0} if verb == "cancel" else {})
        assert answer.status_code == 200, answer.text


def statuses(api: httpx.Client) -> dict[str, str]:
    return {run["id"]: run["status"] for run in api.get(RUNS).json()["items"]}


def outcomes(record: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {each["run"]: (each["outcome"], each["detail"]) for each in record["runs"]}


def test_a_preview_counts_runs_and_nodes_and_says_when_it_was_made(api: httpx.Client, store: Store) -> None:
    before = store.now()
    record = preview(api, "cancel")
    assert (record["matched"], record["done"], record["nodes"], record["dry_run"]) == (2, 2, 4, True)
    assert [each["nodes"] for each in record["runs"]] == [2, 2]
    assert iso(before) <= record["at"] <= iso(store.now())
    assert statuses(api) == {"one": "PENDING", "two": "PENDING"}
    done = apply(api, "cancel", record["preview"])
    assert (done["done"], done["refused"], done["changed"], done["dry_run"]) == (2, 0, 0, False)
    assert statuses(api) == {"one": "CANCELLED", "two": "CANCELLED"}


def test_a_run_that_starts_to_match_after_the_preview_is_not_touched(api: httpx.Client) -> None:
    runs = preview(api, "pause")["preview"]
    start(api, "three")
    assert [each["run"] for each in apply(api, "pause", runs)["runs"]] == ["two", "one"]
    assert statuses(api) == {"one": "PAUSED", "two": "PAUSED", "three": "PENDING"}


def test_a_run_with_another_status_is_not_touched(api: httpx.Client) -> None:
    runs = preview(api, "pause")["preview"]
    request(api, "one", "cancel")
    done = apply(api, "pause", runs)
    assert outcomes(done) == {"one": ("changed", "it was PENDING and is CANCELLED"), "two": ("done", None)}
    assert (done["done"], done["changed"]) == (1, 1)
    assert statuses(api) == {"one": "CANCELLED", "two": "PAUSED"}


def test_a_run_to_which_something_was_done_is_not_touched_although_its_status_is_the_same(api: httpx.Client) -> None:
    for run in ("one", "two"):
        request(api, run, "cancel")
    runs = preview(api, "retry")["preview"]
    request(api, "one", "retry", "cancel")
    assert outcomes(apply(api, "retry", runs)) == {
        "one": ("changed", "something was done to it after the preview"),
        "two": ("done", None),
    }
    assert statuses(api)["one"] == "CANCELLED"


def test_a_run_that_only_went_on_is_touched(api: httpx.Client, store: Store) -> None:
    runs = preview(api, "cancel")["preview"]
    enlist(store)
    assert len(claim(store, runs=("one",))) == 1
    assert statuses(api)["one"] == "RUNNING"
    assert outcomes(apply(api, "cancel", runs)) == {"one": ("done", None), "two": ("done", None)}


def test_a_run_that_was_deleted_is_not_touched_nor_is_another_with_its_id(api: httpx.Client) -> None:
    request(api, "one", "cancel")
    request(api, "two", "cancel")
    runs = preview(api, "retry")["preview"]
    for run in ("one", "two"):
        assert api.delete(f"{RUNS}/{run}").status_code == 204
    start(api, "two")
    request(api, "two", "cancel")
    done = apply(api, "retry", runs)
    gone = ("changed", "it was deleted after the preview")
    assert outcomes(done) == {"one": gone, "two": gone}
    assert {each["run"]: each["status"] for each in done["runs"]} == {"one": None, "two": "CANCELLED"}
    assert statuses(api) == {"two": "CANCELLED"}


def test_the_same_request_again_changes_nothing(api: httpx.Client) -> None:
    runs = preview(api, "cancel")["preview"]
    apply(api, "cancel", runs)
    before = {run: api.get(f"{RUNS}/{run}").json()["seq"] for run in ("one", "two")}
    assert apply(api, "cancel", runs)["changed"] == 2
    assert {run: api.get(f"{RUNS}/{run}").json()["seq"] for run in ("one", "two")} == before


def test_part_of_a_preview_can_be_applied(api: httpx.Client) -> None:
    runs = preview(api, "cancel")["preview"]
    apply(api, "cancel", [each for each in runs if each["run"] == "two"])
    assert statuses(api) == {"one": "PENDING", "two": "CANCELLED"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"filter": {}},
        {"preview": None},
        {"preview": [], "dry_run": True},
        {"preview": ["one"]},
        {"preview": [{"run": "one", "created_at": "", "status": "NONE", "seq": 1}]},
    ],
)
def test_nothing_is_done_without_a_preview(api: httpx.Client, body: dict[str, Any]) -> None:
    assert api.post(f"{BULK}/cancel", json=body).status_code == 422
    assert statuses(api) == {"one": "PENDING", "two": "PENDING"}


def test_a_preview_goes_on_where_the_one_before_ended(api: httpx.Client) -> None:
    start(api, "three")
    first = preview(api, "cancel", limit=2)
    assert (first["more"], [each["run"] for each in first["runs"]]) == (True, ["three", "two"])
    apply(api, "cancel", first["preview"])
    rest = preview(api, "cancel", limit=2, cursor=first["next"])
    assert (rest["more"], rest["next"], [each["run"] for each in rest["runs"]]) == (False, None, ["one"])


def test_a_preview_looks_at_a_limited_number_of_nodes_but_at_one_run_at_least(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(api, "three")
    monkeypatch.setattr(bulk, "MAX_NODES", 4)
    first = preview(api, "cancel")
    assert [each["run"] for each in first["runs"]] == ["three", "two"]
    monkeypatch.setattr(bulk, "MAX_NODES", 1)
    rest = preview(api, "cancel", cursor=first["next"])
    assert ([each["run"] for each in rest["runs"]], rest["more"]) == (["one"], False)
