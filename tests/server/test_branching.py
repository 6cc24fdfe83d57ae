"""Nodes that were skipped, over HTTP and through a client: their reasons, and how a condition is evaluated again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepwell import Client
from tests.server.running import client, running

DOCUMENT: dict[str, Any] = {
    "name": "order",
    "input": {"properties": {"total": {"type": "integer"}}},
    "nodes": [
        {"id": "check", "handler": "compute", "config": {"expression": "input.total > 1000"}},
        {
            "id": "review",
            "handler": "transform",
            "config": {"template": "reviewed"},
            "dependencies": ["check"],
            "when": "{{ check.result }}",
        },
        {"id": "file", "handler": "transform", "config": {"template": "filed"}, "dependencies": ["review"]},
    ],
}


def test_skipped_nodes_say_why_and_are_attempted_again(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/runs.db", worker={}) as serving, client(serving) as api:
        assert api.post("/api/v1/workflows", json=DOCUMENT).is_success
        started = api.post("/api/v1/workflows/order/runs", json={"input": {"total": 7}}).json()
        run = f"/api/v1/runs/{started['id']}"
        with Client(str(api.base_url)) as remote:
            assert remote.get(started["id"]).wait(20).status == "COMPLETED"
            assert "its condition did not hold" in str(remote.get(started["id"]).why("file"))
        nodes = {node["id"]: node for node in api.get(f"{run}/nodes").json()["items"]}
        assert {name: (node["status"], node["reason"]) for name, node in nodes.items()} == {
            "check": ("COMPLETED", None),
            "review": ("SKIPPED", "condition"),
            "file": ("SKIPPED", "parents_skipped"),
        }
        graph = api.get(f"{run}/graph").json()["nodes"]
        assert [*zip(graph["ids"], graph["reasons"], graph["conditions"], strict=True)] == [
            ("check", None, None),
            ("review", "condition", "{{ check.result }}"),
            ("file", "parents_skipped", None),
        ]
        of_workflow = api.get("/api/v1/workflows/order/graph").json()["nodes"]
        assert (of_workflow["reasons"], of_workflow["conditions"]) == ([None] * 3, graph["conditions"])
        detail = api.get(f"{run}/nodes/review").json()
        assert (detail["condition"], detail["join"]) == ("{{ check.result }}", "any")
        (attempt,) = api.get(f"{run}/nodes/review/attempts").json()
        assert attempt["status"] == "RELEASED"
        table = api.get(f"{run}/attempts").json()
        ended, waiting = (dict(zip(table["node"], table[name], strict=True)) for name in ("ended_us", "waiting_us"))
        check, review, file = (table["nodes"]["ids"].index(name) for name in ("check", "review", "file"))
        assert (waiting[review], waiting[file]) == (ended[check], ended[review])
        refused = api.post(f"{run}/nodes/file/reattempt")
        assert (refused.status_code, "whose condition did not hold" in refused.json()["detail"]) == (409, True)
        assert api.post(f"{run}/nodes/review/reattempt").is_success


def test_a_wrong_condition_is_a_problem_of_the_document(tmp_path: Path) -> None:
    wrong = DOCUMENT | {"nodes": [DOCUMENT["nodes"][0], DOCUMENT["nodes"][1] | {"when": "{{ chek.result }}"}]}
    with running(f"sqlite:///{tmp_path}/runs.db") as serving, client(serving) as api:
        refused = api.post("/api/v1/workflows/check", json=wrong).json()
        (problem,) = refused["problems"]
        assert (problem["path"], "did you mean 'check'?" in problem["message"]) == ("$.nodes[1].when", True)
