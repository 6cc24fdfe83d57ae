"""The graph of a run in columns and groups: now, at every entry of its journal, and as it was before it healed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepwell import Builder, Engine
from stepwell.core.model import NodeStatus
from stepwell.core.store import reader
from tests.server.running import client, running

RUNS = "/api/v1/runs"
NOTHING = "tests.server.test_graphs:do_nothing"


def do_nothing() -> None:
    """Nothing."""


def fail() -> None:
    raise ValueError("no")


def statuses_of(graph: dict[str, Any]) -> dict[str, str]:
    return dict(zip(graph["nodes"]["names"], graph["nodes"]["statuses"], strict=True))


def parents_of(graph: dict[str, Any], item: int) -> list[int]:
    offsets, parents = graph["edges"]["offsets"], graph["edges"]["parents"]
    found: list[int] = parents[offsets[item] : offsets[item + 1]]
    return found


def test_a_large_fan_is_a_group_that_opens(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/fan.db"
    builder = Builder("orders")
    builder.node("first", job=NOTHING)
    builder.fan_out(range(400), name="part", job=NOTHING, args=lambda item: {})
    builder.node("last", job="tests.server.test_graphs:fail")
    with Engine(store) as engine:
        run = engine.run(builder, check=False).id
    with running(store) as serving, client(serving) as api:
        graph = api.get(f"{RUNS}/{run}/graph").json()
        assert (graph["run"], graph["size"], graph["seq"]) == (run, 402, api.get(f"{RUNS}/{run}").json()["seq"])
        assert statuses_of(graph) == {"first": "COMPLETED", "last": "FAILED"}
        assert graph["groups"] == {
            "ids": ["fan:1:part"],
            "kinds": ["fan"],
            "names": ["part"],
            "levels": [1],
            "sizes": [400],
            "counts": [{"COMPLETED": 400}],
            "groups": [None],
            "is_open": [False],
        }
        assert [parents_of(graph, item) for item in range(3)] == [[], [2], [0]]
        asked = [("open", "fan:1:part"), ("open", "fan:1:part/300-399"), ("open", "nothing")]
        opened = api.get(f"{RUNS}/{run}/graph", params=asked).json()
        assert opened["groups"]["is_open"] == [False, False, False, True, True]
        assert opened["groups"]["sizes"] == [100, 100, 100, 400, 100]
        assert opened["groups"]["groups"] == [3, 3, 3, None, 3]
        assert opened["nodes"]["groups"].count(4) == 100
        assert [parents_of(opened, item) for item in (103, 105, 106)] == [[0], [], []]
        assert len(parents_of(opened, opened["nodes"]["names"].index("last"))) == 103
        assert api.get(f"{RUNS}/{run}/graph", params={"at": 10**6}).status_code == 422
        workflow = api.get(f"{RUNS}/{run}/graph", params={"format": "dot"})
        assert workflow.text.startswith("digraph")


def test_a_node_is_shown_with_the_groups_open_that_it_is_in(tmp_path: Path) -> None:
    builder = Builder("orders")
    builder.fan_out(range(400), name="part", job=NOTHING, args=lambda item: {})
    builder.fan_out(range(8), name="other", job=NOTHING, args=lambda item: {})
    store = f"sqlite:///{tmp_path}/deep.db"
    with Engine(store) as engine:
        run = engine.run(builder).id
    with running(store) as serving, client(serving) as api:
        (node,) = api.get(f"{RUNS}/{run}/nodes", params={"limit": 1}).json()["items"]
        shown = api.get(f"{RUNS}/{run}/graph", params={"show": node["id"]}).json()
        assert node["id"] in shown["nodes"]["ids"]
        opened = zip(shown["groups"]["ids"], shown["groups"]["is_open"], strict=True)
        assert {group for group, is_open in opened if is_open} == {"fan:0:part", "fan:0:part/0-99"}
        nothing = api.get(f"{RUNS}/{run}/graph", params={"show": "nothing"}).json()
        assert nothing == api.get(f"{RUNS}/{run}/graph").json()


def test_the_graph_at_each_entry_is_the_one_that_was_there_then(tmp_path: Path) -> None:
    """Statuses follow the journal; before a heal it is the graph that the run had."""
    store = f"sqlite:///{tmp_path}/healed.db"
    before = Builder("orders")
    before.node("a", job=NOTHING)
    before.node("b", job="tests.server.test_graphs:fail")
    with Engine(store) as engine:
        run = engine.run(before, check=False)
        frozen = run.export_graph()
        first = frozen["nodes"]
        added = {**next(iter(first.values())), "name": "c", "depends_on": [*first][:1], "position": 99}
        frozen["nodes"] = {**first, "n_new": added}
        run.import_graph(frozen)
        run.retry()
        run.wait(30)
        entries = reader.list_journal(engine.store, run.id)
        healed = next(entry.seq for entry in entries if entry.kind == "healed")
    with running(store) as serving, client(serving) as api:
        graphs = [api.get(f"{RUNS}/{run.id}/graph", params={"at": seq}).json() for seq in range(len(entries) + 1)]
        assert statuses_of(graphs[0]) == {"a": "READY", "b": "PENDING"}
        assert {seq for seq, graph in enumerate(graphs) if "c" in graph["nodes"]["names"]} == set(
            range(healed, len(entries) + 1)
        )
        assert graphs[healed]["digest"] != graphs[healed - 1]["digest"]
        for graph, entry in zip(graphs[1:], entries, strict=True):
            if entry.index is not None and entry.status in (NodeStatus.COMPLETED, NodeStatus.FAILED):
                assert entry.status in graph["nodes"]["statuses"]
        now = api.get(f"{RUNS}/{run.id}/graph").json()
        assert graphs[-1] == now


def test_the_nodes_of_a_run_are_listed_by_name_and_as_they_were(tmp_path: Path) -> None:
    builder = Builder("orders")
    builder.node("Load", job=NOTHING)
    builder.fan_out(range(30), name="part", job=NOTHING, args=lambda item: {})
    builder.node("reload", job="tests.server.test_graphs:fail")
    store = f"sqlite:///{tmp_path}/listed.db"
    with Engine(store) as engine:
        run = engine.run(builder, check=False).id
    with running(store) as serving, client(serving) as api:

        def listed(**query: Any) -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = []
            cursor: dict[str, Any] = {}
            while True:
                page = api.get(f"{RUNS}/{run}/nodes", params=query | cursor).json()
                items += page["items"]
                if page["next"] is None:
                    return items
                cursor = {"cursor": page["next"]}

        assert [node["name"] for node in listed(q="LOAD")] == ["Load", "reload"]
        assert [node["name"] for node in listed(q="load", status="FAILED", limit=1)] == ["reload"]
        assert len(listed(q="part", limit=7)) == 30
        (load,) = listed(q="Load", status="COMPLETED")
        assert listed(q=load["id"]) == [load]
        seq = api.get(f"{RUNS}/{run}").json()["seq"]
        known = ("id", "name", "index", "status", "attempts", "failures", "queue")
        now = [{name: node[name] for name in known} for node in listed()]
        assert [{name: node[name] for name in known} for node in listed(at=seq, limit=9)] == now
        assert {node["status"] for node in listed(at=1)} == {"READY", "PENDING"}
        assert [node["name"] for node in listed(at=1, status="READY", q="load")] == ["Load"]
        assert listed(at=1, status="FAILED") == []
        assert api.get(f"{RUNS}/{run}/nodes", params={"at": seq + 1}).status_code == 422
