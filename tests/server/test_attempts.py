"""The attempts of a run as columns, and snapshots that a stream continues without a gap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Builder, Engine, Retry
from stepwell.server.serving import Serving
from tests.server.running import client, running
from tests.server.test_events import events_of

RUNS = "/api/v1/runs"
MEMBERS = 30


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('attempts')}/attempts.db"


@pytest.fixture(scope="module")
def ended_run(place: str) -> str:
    builder = Builder("orders")
    builder.node("first", job="tests.server.test_attempts:do_nothing")
    builder.fan_out(range(MEMBERS), name="part", job="tests.server.test_attempts:do_nothing", args=lambda item: {})
    builder.node("flaky", job="tests.server.test_attempts:fail_once", retry=Retry(2, base_delay=0.01))
    with Engine(place) as engine:
        return engine.run(builder).id


@pytest.fixture(scope="module")
def serving(place: str, ended_run: str) -> Iterator[Serving]:
    with running(place) as made:
        yield made


@pytest.fixture
def api(serving: Serving) -> Iterator[httpx.Client]:
    with client(serving) as made:
        yield made


def do_nothing() -> None:
    """Nothing."""


_TRIES: list[int] = []


def fail_once() -> None:
    _TRIES.append(1)
    if len(_TRIES) == 1:
        raise KeyError("the first time")


def rows(table: dict[str, Any]) -> list[tuple[Any, ...]]:
    columns = ("node", "number", "status", "worker", "waiting_us", "started_us", "ended_us", "error")
    return [*zip(*(table[name] for name in columns), strict=True)]


def test_all_attempts_are_one_answer(api: httpx.Client, ended_run: str) -> None:
    table = api.get(f"{RUNS}/{ended_run}/attempts").json()
    names, groups = table["nodes"]["names"], table["nodes"]["groups"]
    assert len(table["number"]) == MEMBERS + 3
    assert table["next"] is None
    assert table["seq"] == api.get(f"{RUNS}/{ended_run}").json()["seq"]
    assert {group for name, group in zip(names, groups, strict=True) if name.startswith("part")} == {"fan:1:part"}
    assert groups.count(None) == 2
    assert dict(zip(names, table["nodes"]["levels"], strict=True))["flaky"] == 2
    assert len(table["workers"]) == 1
    flaky = [row for row in rows(table) if names[row[0]] == "flaky"]
    assert [(row[1], row[2], row[7]) for row in flaky] == [(1, "FAILED", "KeyError"), (2, "COMPLETED", None)]
    assert all(waiting <= started <= ended for *_, waiting, started, ended, _ in rows(table))
    by_name = {names[row[0]]: row for row in rows(table) if row[1] == 1}
    last_part = max(row[6] for name, row in by_name.items() if name.startswith("part"))
    assert by_name["first"][4] == 0, "the first node waited since the run was created"
    assert by_name["part_7"][4] == by_name["first"][6]
    assert flaky[0][4] == last_part
    assert flaky[1][4] == flaky[0][6], "the delay of a retry is a part of the wait"


@pytest.mark.parametrize("limit", [1, 7])
def test_pages_of_attempts_make_the_whole(api: httpx.Client, ended_run: str, limit: int) -> None:
    def told(table: dict[str, Any]) -> list[tuple[Any, ...]]:
        ids, workers = table["nodes"]["ids"], table["workers"]
        return [(ids[row[0]], *row[1:3], workers[row[3]], *row[4:]) for row in rows(table)]

    whole = told(api.get(f"{RUNS}/{ended_run}/attempts").json())
    found: list[tuple[Any, ...]] = []
    cursor = None
    while True:
        asked = {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}
        page = api.get(f"{RUNS}/{ended_run}/attempts", params=asked).json()
        assert len(page["number"]) <= limit
        found += told(page)
        cursor = page["next"]
        if cursor is None:
            break
    assert found == whole


def test_snapshots_name_the_entry_they_were_read_at(api: httpx.Client, ended_run: str) -> None:
    seq = api.get(f"{RUNS}/{ended_run}").json()["seq"]
    for path in ("/nodes", "/nodes/first", "/attempts"):
        assert api.get(f"{RUNS}/{ended_run}{path}").json()["seq"] == seq, path


def test_a_stream_after_a_snapshot_misses_nothing_while_the_run_goes_on(tmp_path: Path) -> None:
    """Whenever the snapshot is taken: what it says, and what the stream says then, is where the run ends."""
    store = f"sqlite:///{tmp_path}/live.db"
    builder = Builder("live")
    for number in range(40):
        builder.node(f"step {number}", job="tests.server.test_attempts:do_nothing")
    with running(store) as serving, Engine(store) as engine:
        run = engine.start(builder)
        results: list[dict[str, str]] = []

        def watch() -> None:
            with client(serving) as api:
                page = api.get(f"{RUNS}/{run.id}/nodes").json()
                statuses = {node["id"]: node["status"] for node in page["items"]}
                asked = {"after": page["seq"], "until": "ended"}
                with api.stream("GET", f"{RUNS}/{run.id}/events", params=asked) as stream:
                    numbers = []
                    for kind, _, data in events_of(stream.iter_lines()):
                        if kind == "journal":
                            numbers.append(data["seq"])
                            if data["kind"] in ("claimed", "completed") and data["node"] is not None:
                                statuses[data["node"]] = data["status"] or "RUNNING"
                assert numbers == [*range(page["seq"] + 1, page["seq"] + 1 + len(numbers))]
                results.append(statuses)

        threads = [threading.Thread(target=watch) for _ in range(6)]
        for thread in threads:
            thread.start()
        run.wait(60)
        for thread in threads:
            thread.join(60)
    assert len(results) == len(threads)
    assert all(set(statuses.values()) == {"COMPLETED"} for statuses in results)
    assert all(len(statuses) == 40 for statuses in results)
