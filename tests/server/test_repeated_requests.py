"""Requests that are sent again because their answer was lost: with the same key they are done once."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from stepwell import Client
from stepwell.server.serving import Serving
from tests.server.running import ADD, ended

RUNS = "/api/v1/runs"


@pytest.fixture
def origin(api: httpx.Client) -> str:
    made = api.post(RUNS, json={"document": ADD, "input": {"a": 1}}).json()
    ended(api, made["id"])
    return str(made["id"])


def fork(api: httpx.Client, origin: str, key: str | None = None, **body: Any) -> httpx.Response:
    return api.post(f"{RUNS}/{origin}/fork", json=body, headers={} if key is None else {"Idempotency-Key": key})


def forks_of(api: httpx.Client, origin: str) -> list[str]:
    return [run["id"] for run in api.get(RUNS, params={"fork_of": origin}).json()["items"]]


@pytest.mark.parametrize("body", [{}, {"at": "y"}, {"at": 3, "input": {"a": 4}}], ids=["all", "node", "seq"])
def test_two_requests_with_one_key_make_one_fork(api: httpx.Client, origin: str, body: dict[str, Any]) -> None:
    first, again = fork(api, origin, f"once-{origin}", **body), fork(api, origin, f"once-{origin}", **body)
    assert (first.status_code, again.status_code) == (201, 200), again.text
    assert forks_of(api, origin) == [first.json()["id"]] == [again.json()["id"]]
    assert again.headers["location"] == f"{RUNS}/{again.json()['id']}"
    log = api.get(f"{RUNS}/{first.json()['id']}/audit-log").json()["items"]
    assert [entry["action"] for entry in log] == ["fork"], "what was not done again is not noted again"


def test_two_requests_with_one_id_make_one_fork(api: httpx.Client, origin: str) -> None:
    chosen = f"{origin}-again"
    first, again = fork(api, origin, run_id=chosen), fork(api, origin, run_id=chosen)
    assert (first.status_code, again.status_code) == (201, 200), again.text
    assert forks_of(api, origin) == [chosen]


def test_a_key_is_not_taken_for_another_fork(api: httpx.Client, origin: str) -> None:
    key = f"mine-{origin}"
    assert fork(api, origin, key, at="x").status_code == 201
    for body in ({"at": "y"}, {"at": "x", "input": {"a": 9}}, {}):
        refused = fork(api, origin, key, **body)
        assert refused.status_code == 409, body
        assert "exists already" in refused.json()["detail"]
    assert len(forks_of(api, origin)) == 1


def test_two_fires_with_one_key_start_one_run(api: httpx.Client) -> None:
    made = {"name": "by-key", "workflow": "add", "cron": "0 6 * * *", "input": {"a": 1}}
    assert api.post("/api/v1/triggers", json=made).status_code in (200, 201)

    def fire(body: dict[str, str] | None = None) -> httpx.Response:
        return api.post("/api/v1/triggers/by-key/fire", json=body, headers={"Idempotency-Key": "one"})

    first, again = fire(), fire({"key": "one"})
    assert (first.status_code, again.status_code) == (201, 200), again.text
    assert first.json()["run"] == again.json()["run"] == "by-key:one"
    refused = fire({"key": "two"})
    assert refused.status_code == 422
    assert "they differ" in refused.json()["detail"]
    api.delete("/api/v1/triggers/by-key")


def test_a_client_names_what_it_makes(server: Serving, origin: str) -> None:
    with Client(server.url) as remote:
        run = remote.get(origin)
        made = run.fork("y", idempotency_key=f"named-{origin}")
        assert run.fork("y", idempotency_key=f"named-{origin}").id == made.id
        assert made.row.idempotency_key == f"named-{origin}"
