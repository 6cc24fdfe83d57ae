"""Child runs: what lists, records and explanations say of them, by an engine, a client and HTTP alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pytest

from stepwell import Client, Engine
from stepwell.base.clock import SECOND
from stepwell.core.model import Delete
from stepwell.engine.calls import Calls
from stepwell.errors import InputError, NodeNotFound
from stepwell.server.serving import Serving
from stepwell.stores import open_store
from tests.engine.nightly import Import, Nightly, Outer, Weekly, child_of
from tests.engine.waiting import eventually
from tests.server.running import client, serving_of
from tests.server.test_events import events_of

RUNS = "/api/v1/runs"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(open_store("memory://")) as engine:
        for name in ("monday", "tuesday"):
            engine.run(Nightly(), run_id=name, tags={"day": name})
        engine.run(Import(file="alone.csv"), run_id="alone")
        engine.run(Nightly(file="broken"), run_id="wednesday", check=False)
        engine.run(Weekly(), run_id="weekly")
        yield engine


@pytest.fixture(scope="module")
def serving(engine: Engine) -> Iterator[Serving]:
    with serving_of(engine.store) as serving:
        yield serving


@pytest.fixture(params=["engine", "client"])
def calls(request: pytest.FixtureRequest, engine: Engine, serving: Serving) -> Iterator[Calls]:
    if request.param == "engine":
        yield engine
        return
    with Client(serving.url) as client:
        yield client


@pytest.fixture
def api(serving: Serving) -> Iterator[httpx.Client]:
    with client(serving) as made:
        yield made


def ids(runs: Any) -> list[str]:
    return [run.id for run in runs]


ROOTS = ["weekly", "wednesday", "alone", "tuesday", "monday"]


def test_lists_and_counts_have_roots_only_unless_child_runs_are_asked_for(calls: Calls, engine: Engine) -> None:
    assert ids(calls.runs()) == ROOTS
    assert calls.runs(workflow="Import")[0].id == "alone"
    assert calls.count_runs()["total"] == 5
    child = child_of(engine, engine.get("monday"))
    assert ids(calls.runs(parent="monday")) == [child.id]
    assert ids(calls.runs(parent="alone")) == ids(calls.runs(parent="nobody")) == []
    everything = ids(calls.runs(children=True))
    assert len(everything) == 10
    assert {*ROOTS, child.id} < {*everything}
    assert calls.count_runs("workflow", children=True)["counts"][0] == {"value": "Import", "count": 5, "exact": True}
    assert len(calls.runs(children=True, workflow="Import", tag={"day": "monday"})) == 1
    with pytest.raises(InputError, match="children='yes': expected True or False"):
        calls.runs(children="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected the id of a run"):
        calls.runs(parent="\x07")


def test_bulk_requests_are_about_roots_unless_child_runs_are_asked_for(calls: Calls, engine: Engine) -> None:
    child = child_of(engine, engine.get("wednesday")).id
    assert [run["run"] for run in calls.preview_bulk("retry").record["runs"]] == ["wednesday"]
    assert [run["run"] for run in calls.preview_bulk("retry", parent="wednesday").record["runs"]] == [child]
    assert {run["run"] for run in calls.preview_bulk("retry", children=True).record["runs"]} == {"wednesday", child}


def test_http_takes_the_same_filter(api: httpx.Client, engine: Engine) -> None:
    child = child_of(engine, engine.get("monday")).id
    listed: list[tuple[dict[str, Any], int]] = [({}, 5), ({"children": True}, 10), ({"parent": "monday"}, 1)]
    for asked, size in listed:
        assert len(api.get(RUNS, params=asked).json()["items"]) == size
        assert api.get(f"{RUNS}/counts", params=asked).json()["total"] == size
    (only,) = api.get(RUNS, params={"parent": "monday"}).json()["items"]
    assert only["id"] == child
    assert api.get(RUNS, params={"parent": "\x07"}).status_code == 422


def test_the_stream_of_all_runs_is_about_roots_unless_child_runs_are_asked_for(
    api: httpx.Client, engine: Engine
) -> None:
    begin = engine.store.now() - 60 * SECOND
    listed: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {*ROOTS}),
        ({"children": True}, set(ids(engine.runs(children=True)))),
    ]
    for asked, expected in listed:
        with api.stream("GET", "/api/v1/events", params={"after": begin, **asked}) as stream:
            sent = (data["id"] for kind, _, data in events_of(stream.iter_lines()) if kind == "run")
            assert set(islice(sent, len(expected))) == expected


def test_a_run_knows_its_parent_its_child_runs_and_its_path(calls: Calls) -> None:
    weekly = calls.get("weekly")
    (nightly,) = weekly.children()
    (imported,) = nightly.children("imported")
    assert nightly.children("find") == weekly.children()[0].children("report") == []
    assert imported.path == "weekly/sunday/imported"
    assert (nightly.path, weekly.path) == ("weekly/sunday", "weekly")
    parent = imported.parent
    assert parent is not None
    assert (parent.id, weekly.parent) == (nightly.id, None)
    assert nightly.node("imported").child == imported.id
    assert nightly.node("find").child is None
    with pytest.raises(NodeNotFound):
        nightly.children("nothing")


def test_a_node_that_is_attempted_again_has_another_child_run_and_keeps_the_first(engine: Engine) -> None:
    run = engine.run(Nightly(), run_id="again")
    run.reattempt("imported", cascade=True).wait()
    first, second = run.children()
    assert first.row.created_at < second.row.created_at
    assert run.node("imported").child == second.id
    run.delete()


def test_coroutines_ask_the_same(serving: Serving) -> None:
    async def look() -> None:
        async with Client(serving.url) as looking:
            weekly = await looking.get("weekly")
            (nightly,) = await weekly.children()
            parent = await nightly.parent
            assert parent is not None
            assert (parent.id, await weekly.parent) == ("weekly", None)
            assert await nightly.path == "weekly/sunday"

    asyncio.run(look())


def test_records_say_where_a_run_belongs_and_what_performs_a_node(api: httpx.Client, engine: Engine) -> None:
    (nightly,) = engine.get("weekly").children()
    (imported,) = nightly.children()
    listed = api.get(RUNS, params={"parent": nightly.id}).json()["items"]
    detail = api.get(f"{RUNS}/{imported.id}").json()
    for record in (listed[0], detail):
        belongs = [record[key] for key in ("id", "parent", "parent_node", "root", "depth", "path")]
        assert belongs == [imported.id, nightly.id, "imported", "weekly", 2, "weekly/sunday/imported"]
    assert detail["ancestors"] == [
        {"run": "weekly", "workflow": "Weekly", "node": "sunday", "name": "sunday"},
        {"run": nightly.id, "workflow": "Nightly", "node": "imported", "name": "imported"},
    ]
    root = api.get(f"{RUNS}/weekly").json()
    belongs = [root[key] for key in ("parent", "parent_node", "root", "depth", "path", "ancestors")]
    assert belongs == [None, None, "weekly", 0, "weekly", []]
    nodes = api.get(f"{RUNS}/{nightly.id}/nodes").json()["items"]
    assert {node["name"]: node["child"] for node in nodes} == {"find": None, "imported": imported.id, "report": None}
    assert api.get(f"{RUNS}/{nightly.id}/nodes/imported").json()["child"] == imported.id


def test_an_audit_looks_at_the_tree(calls: Calls, api: httpx.Client, engine: Engine) -> None:
    for run_id in ("weekly", "wednesday"):
        assert calls.get(run_id).audit() == calls.get(run_id).children()[0].audit() == []
    run = engine.run(Nightly(), run_id="gone")
    (child,) = run.children()
    engine.store.commit([Delete(run.id)])
    problems = ["the run is a child run, and its parent run gone is gone"]
    assert calls.get(child.id).audit() == api.get(f"{RUNS}/{child.id}/audit").json()["problems"] == problems
    child.delete()


def test_a_path_is_shorter_when_a_run_above_is_gone(engine: Engine) -> None:
    run = engine.run(Nightly(), run_id="gone")
    (child,) = run.children()
    assert child.path == "gone/imported"
    engine.store.commit([Delete(run.id)])
    assert child.path == "gone"
    child.delete()


def test_metrics_count_roots(api: httpx.Client, engine: Engine) -> None:
    run = engine.start(Outer(child="patient"), run_id="outer")
    eventually(lambda: bool(run.children()), "no child run is created")
    assert 'stepwell_runs{status="RUNNING"} 1' in api.get("/metrics").text.splitlines()
    run.cancel(grace_seconds=0).wait()
    run.delete()
