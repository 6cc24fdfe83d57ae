"""Requests to a server: questions of clients, graphs with odd names, filters and cursors."""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack
from functools import cache
from typing import Any

from hypothesis import strategies as st

from .drawing import document, node, repeated

_open = ExitStack()
log = logging.getLogger(__name__)
JSON = {"Content-Type": "application/json"}


def talk() -> None:
    for number in range(3_000):
        log.warning("%s %s", number, "ab%_(" * 40)


@cache
def _api() -> Any:
    """A client of a server that lives as long as this process, with a large document and a run that has logged much."""
    from tests.server.running import client, ended, running

    serving = _open.enter_context(running("memory://", worker={}, jobs=[__name__]))
    api = _open.enter_context(client(serving))
    big = document(*(node(number) for number in range(2_000)))
    assert api.post("/api/v1/workflows", json=big).status_code == 201
    graph = _frozen([["talk", []]], f"{__name__}:talk")
    run = {"graph": graph, "workflow": "talks", "run_id": "talk", "tags": {"a": "b"}}
    assert api.post("/api/v1/runs", json=run).status_code == 201
    ended(api, "talk")
    return api


def _get(path: str, params: Any = None) -> Any:
    answer = _api().get(f"/api/v1{path}", params=params)
    assert answer.status_code < 500, f"{path}: {answer.text[:500]}"
    return answer


def _is_alive() -> None:
    assert _api().get("/healthz").status_code == 200


def ask(queries: Any) -> None:
    body = queries if isinstance(queries, str) else json.dumps({"queries": queries})
    answer = _api().post("/api/v1/read", content=body, headers=JSON)
    assert answer.status_code < 500, answer.text[:500]
    _is_alive()


QUERIES = [
    "GetRun",
    "ListRuns",
    "CountRuns",
    "ListNodes",
    "GetNodeColumns",
    "GetAttemptColumns",
    "GetOutputs",
    "GetRecord",
    "ListRecords",
    "GetGraphAges",
    "CountNodes",
]
FIELD = st.sampled_from(
    [-5, 0, 1, 10**9, 2**63, 2**64, None, "x", "", "\x00", "document versions", [], [1], ["x"] * 3, {}, True, 1.5]
)
QUERY = st.builds(
    lambda name, fields: {"query": name, **fields},
    st.sampled_from(QUERIES),
    st.dictionaries(
        st.sampled_from(["run_id", "limit", "after", "kind", "key", "digests", "statuses", "since", "indexes"]),
        FIELD,
        max_size=4,
    ),
)
VERSION = {"query": "GetRecord", "kind": "document versions", "key": "x"}


# Graphs


def _frozen(nodes: list[list[Any]], job: str) -> dict[str, Any]:
    """The frozen form of nodes that are given by their names and the numbers of those before them that they follow."""
    forms = {
        f"n{number}": {
            "name": name,
            "job": job,
            "depends_on": sorted({f"n{parent % number}" for parent in parents if number}),
            "position": number,
        }
        for number, (name, parents) in enumerate(nodes)
    }
    return {"version": 1, "nodes": forms}


VIEWS = ["nodes", "attempts", "why", "metrics", "failures", "audit", "graph/frozen"]
FORMS = ["mermaid", "dot", "svg"]


def show_graph(given: list[Any]) -> None:
    """A run of a graph is shown in every way, with groups closed and open."""
    nodes, opened = given
    api = _api()
    run = {"graph": _frozen(nodes, "nowhere:work"), "workflow": "shown"}
    answer = api.post("/api/v1/runs", content=json.dumps(run), headers=JSON)
    assert answer.status_code < 500, answer.text[:500]
    if answer.status_code == 201:
        place = f"/runs/{answer.json()['id']}"
        groups = _get(f"{place}/graph").json()["groups"]["ids"]
        shown = _get(f"{place}/graph", {"open": [*groups[:100], *opened]}).json()["groups"]["ids"]
        _get(f"{place}/graph", {"open": shown[:100]})
        for form in FORMS:
            _get(f"{place}/graph", {"format": form})
        for view in VIEWS:
            _get(f"{place}/{view}")
        assert api.post(f"/api/v1{place}/cancel").status_code == 200
        assert api.delete(f"/api/v1{place}").status_code == 204
    _is_alive()


NAME = repeated("_", "a", "1", "0x", ".", "-", " ", "é", "<b>", '"', "\\", "{{", "\u202e", most=450).map(
    lambda text: text[:500]
)
GRAPHS = st.tuples(
    st.lists(st.tuples(NAME, st.lists(st.integers(0, 10**6), max_size=4)), max_size=40),
    st.lists(NAME | st.sampled_from(["fan:1:a", "level:1", "levels:0"]), max_size=3),
)


# Filters and cursors


PATHS = [
    "/runs",
    "/runs/counts",
    "/runs/talk/logs",
    "/runs/talk/nodes",
    "/runs/talk/graph",
    "/runs/talk/journal",
    "/runs/talk/effects",
    "/runs/talk/attempts",
    "/runs/talk/outputs",
    "/runs/talk/why",
    "/workflows",
    "/workflows/x/graph",
    "/workflows/x/versions",
    "/triggers",
    "/workers",
]
PARAMETERS = [
    *("q", "tag", "status", "workflow", "since", "until", "cursor", "limit", "tail", "before", "after", "node"),
    *("attempt", "level", "format", "by", "open", "at", "kind", "version", "origin"),
]


def request(given: list[Any]) -> None:
    path, parameters = given
    _get(path, parameters)
    _is_alive()


VALUE = repeated(
    *("a", "%", "_", "*", "\\", "(", " ", "\x00", "é", "=", ",", "[", '"', "-", "0", "1", ":", "2026-01-01T00:00:00Z"),
    most=300,
).map(lambda text: text[:3_000]) | st.sampled_from(["1", "-1", "9" * 30, "text", "svg", "info", "talk", "hour", "eyJ"])
REQUESTS = st.tuples(st.sampled_from(PATHS), st.lists(st.tuples(st.sampled_from(PARAMETERS), VALUE), max_size=4))
