"""One filter for lists, counts, bulk requests and the stream of all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell.server.serving import Serving
from tests.server.running import ADD, client, ended, running
from tests.server.test_events import events_of

RUNS = "/api/v1/runs"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    store = f"sqlite:///{tmp_path_factory.mktemp('finding')}/runs.db"
    with running(store, worker={}) as made, client(made) as api:
        for name in ("add", "other"):
            assert api.post("/api/v1/workflows", json={**ADD, "name": name}).status_code == 201
        for workflow, run, tags in (("add", "one", {"customer": "Anna"}), ("add", "two", {}), ("other", "three", {})):
            body = {"input": {"a": 1}, "run_id": run, "tags": tags}
            assert api.post(f"/api/v1/workflows/{workflow}/runs", json=body).status_code == 201
            ended(api, run)
        assert api.post(f"{RUNS}/one/fork", json={"run_id": "one-again", "at": 1}).status_code == 201
        ended(api, "one-again")
        yield made


@pytest.fixture
def api(serving: Serving) -> Iterator[httpx.Client]:
    with client(serving) as made:
        yield made


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"one", "two", "three", "one-again"}),
    ({"q": "ONE"}, {"one", "one-again"}),
    ({"q": "customer=ann", "prefix": "one"}, {"one", "one-again"}),
    ({"q": "other"}, {"three"}),
    ({"q": "\x07"}, set()),
    ({"fork_of": "one"}, {"one-again"}),
    ({"fork_of": "nobody"}, set()),
    ({"workflow": "add", "q": "t"}, {"one", "two", "one-again"}),  # "customer" has one
    ({"status": ["FAILED"]}, set()),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS)
def test_lists_counts_and_bulk_requests_take_the_same_filter(
    api: httpx.Client, filter: dict[str, Any], expected: set[str]
) -> None:
    assert {run["id"] for run in api.get(RUNS, params=filter).json()["items"]} == expected
    counts = api.get(f"{RUNS}/counts", params={**filter, "by": "workflow"}).json()
    assert (counts["total"], counts["exact"]) == (len(expected), True)
    by_status = api.get(f"{RUNS}/counts", params=filter).json()
    found = [{"value": "COMPLETED", "count": len(expected), "exact": True}] if expected else []
    assert by_status == {"by": "status", "counts": found, "total": len(expected), "exact": True}
    bulk = api.post("/api/v1/bulk/fork", json={"filter": filter, "dry_run": True}).json()
    assert {each["run"] for each in bulk["runs"]} == expected


def test_runs_are_counted_by_the_day_of_their_creation(api: httpx.Client) -> None:
    created = api.get(f"{RUNS}/one").json()["created_at"]
    for by, length in (("day", 10), ("hour", 13)):
        counts = api.get(f"{RUNS}/counts", params={"by": by}).json()["counts"]
        assert sum(each["count"] for each in counts) == 4
        assert counts[0]["value"][:length] == created[:length]
    assert api.get(f"{RUNS}/counts", params={"by": "colour"}).status_code == 422


def test_the_stream_of_all_runs_takes_it_too_but_for_the_status(api: httpx.Client) -> None:
    asked = {"workflow": "other", "q": "LIVE", "status": ["PAUSED"]}
    with api.stream("GET", "/api/v1/events", params=asked) as stream:
        lines = events_of(stream.iter_lines())
        for workflow, run in (("add", "live-1"), ("other", "dull"), ("other", "live-2")):
            body = {"input": {"a": 1}, "run_id": run}
            assert api.post(f"/api/v1/workflows/{workflow}/runs", json=body).status_code == 201
        told = []
        for kind, _, data in lines:
            if kind == "run":
                told.append(data["id"])
                if data["status"] == "COMPLETED":
                    break
    assert set(told) == {"live-2"}


def told_until(api: httpx.Client, asked: dict[str, str], start: Callable[[], str]) -> list[tuple[str, str, str | None]]:
    """What a stream tells until the run that `start` gives has ended: runs, their statuses and errors."""
    with api.stream("GET", "/api/v1/events", params=asked) as stream:
        lines, told = events_of(stream.iter_lines()), []
        last = start()
        for kind, _, data in lines:
            if kind == "run":
                told.append((data["id"], data["status"], data["error"]))
                if data["id"] == last and data["status"] in ("COMPLETED", "FAILED"):
                    return told
    raise AssertionError(told)


def test_the_stream_of_all_runs_tells_of_the_forks_of_one_run(api: httpx.Client) -> None:
    def start() -> str:
        for origin in ("one", "two"):
            made = api.post(f"{RUNS}/{origin}/fork", json={"at": "y", "run_id": f"{origin}-live"})
            assert made.status_code == 201
            ended(api, f"{origin}-live")
        assert api.post(f"{RUNS}/two/fork", json={"at": "x", "run_id": "two-last"}).status_code == 201
        return "two-last"

    assert {run for run, _, _ in told_until(api, {"fork_of": "two"}, start)} == {"two-live", "two-last"}


def test_the_stream_of_all_runs_tells_of_the_runs_that_fail_with_one_error(api: httpx.Client) -> None:
    assert api.post("/api/v1/workflows", json=FAILING).status_code in (200, 201)
    slips = {
        "name": "slipping",
        "nodes": [{"id": "bad", "handler": "transform", "config": {"template": "{{ 1 / input.b }}"}}],
    }
    assert api.post("/api/v1/workflows", json=slips).status_code == 201

    def fail(workflow: str, run: str, b: Any) -> str:
        body = {"input": {"b": b}, "run_id": run}
        assert api.post(f"/api/v1/workflows/{workflow}/runs", json=body).status_code == 201
        return str(ended(api, run, "FAILED")["error"])

    error, other = fail("failing", "failed-1", {}), fail("slipping", "failed-2", 0)
    assert error != other

    def start() -> str:
        api.post("/api/v1/workflows/add/runs", json={"input": {"a": 1}, "run_id": "completes"})
        ended(api, "completes")
        fail("slipping", "failed-3", 0)
        fail("failing", "failed-4", {})
        return "failed-4"

    told = told_until(api, {"error": error}, start)
    assert {run for run, _, _ in told} - {"failed-1"} == {"failed-4"}, "failed-1 may be told first: it has just ended"
    assert {error for _, _, error in told} == {error}


FAILING = {
    "name": "failing",
    "nodes": [{"id": "bad", "handler": "transform", "config": {"template": "{{ input.b.c }}"}}],
}


def test_runs_are_found_by_their_error_and_listed_by_their_ends_and_lengths(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/runs.db", worker={}) as serving, client(serving) as api:
        for document in (ADD, FAILING):
            assert api.post("/api/v1/workflows", json=document).status_code == 201
        for workflow, run, status in (
            ("add", "one", "COMPLETED"),
            ("failing", "bad", "FAILED"),
            ("add", "two", "COMPLETED"),
        ):
            body = {"input": {"a": 1} if workflow == "add" else {"b": {}}, "run_id": run}
            assert api.post(f"/api/v1/workflows/{workflow}/runs", json=body).status_code == 201
            ended(api, run, status)

        def listed(**asked: Any) -> list[str]:
            """One page of one run after the other."""
            found, cursor = [], None
            while True:
                page = api.get(RUNS, params={"limit": 1, **asked, **({"cursor": cursor} if cursor else {})}).json()
                found += [run["id"] for run in page["items"]]
                cursor = page["next"]
                if cursor is None:
                    return found

        error = api.get(f"{RUNS}/bad").json()["error"]
        assert error == api.get(f"{RUNS}/bad/failures").json()["groups"][0]["type"]
        assert listed(error=error) == listed(q=error.upper(), order="ended") == ["bad"]
        assert listed(error="NoSuchError") == []
        assert api.get(f"{RUNS}/counts", params={"error": error}).json()["total"] == 1
        bulk = api.post("/api/v1/bulk/retry", json={"filter": {"error": error}, "dry_run": True}).json()
        assert [each["run"] for each in bulk["runs"]] == ["bad"]
        assert listed(order="ended") == ["two", "bad", "one"]
        seconds = [api.get(f"{RUNS}/{run}").json()["seconds"] for run in listed(order="duration")]
        assert seconds == sorted(seconds, reverse=True)
        assert len(seconds) == 3
        refused = api.get(RUNS, params={"order": "duration", "status": ["FAILED", "RUNNING", "PENDING"]})
        assert refused.status_code == 422
        assert "none of these is RUNNING or PENDING" in refused.json()["detail"]
        assert api.get(RUNS, params={"order": "started"}).status_code == 422
        assert api.get(RUNS, params={"cursor": "MTI"}).status_code == 400, "a cursor of another kind"
