"""Hostile JSON: refused with a 4xx, quickly, and nothing is silently changed."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from stepwell.base.codec import encode, sha256
from stepwell.core.graph import Graph, NodeSpec, to_frozen
from stepwell.core.model import wire
from stepwell.core.model.wire import answer_to_wire as to_wire
from stepwell.core.store import versions
from stepwell.server.api import reading
from stepwell.server.serving import Serving

SECONDS = 10.0
"""Of processor time: a busy machine changes nothing."""
START = "/api/v1/workflows/add/runs"
BODIES = {
    "deep lists": b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"input":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "never closed": b'{"input":' + b"[" * 1_000_000,
    "a key twice": b'{"input":{"a":1,"a":2}}',
    "a field twice": b'{"input":{"a":1},"input":{"a":2}}',
    "NaN": b'{"input":{"a":NaN}}',
    "Infinity": b'{"input":{"a":-Infinity}}',
    "too large a number": b'{"input":{"a":1e999}}',
    "many digits": b'{"input":{"a":' + b"9" * 100_000 + b"}}",
    "half a character": b'{"input":{"a":"\\ud800"}}',
    "half a key": b'{"input":{"\\ud800":1}}',
    "half a character in a tag": b'{"input":{"a":1},"tags":{"t":"\\udfff"}}',
    "NUL in a tag": b'{"input":{"a":1},"tags":{"t":"\\u0000"}}',
    "NUL in an id": b'{"input":{"a":1},"run_id":"\\u0000"}',
    "not UTF-8": b'{"input":{"a":"\xff"}}',
    "empty": b"",
    "no object": b"[1]",
    "null": b"null",
    "an unknown field": b'{"input":{"a":1},"x":1}',
    "a wrong type": b'{"input":[1]}',
    "a large seed": b'{"input":{"a":1},"seed":18446744073709551616}',
    "an endless deadline": b'{"input":{"a":1},"deadline":1e300}',
    "no deadline": b'{"input":{"a":1},"deadline":-1}',
    "many tags": b'{"input":{"a":1},"tags":{' + b",".join(b'"%d":"x"' % n for n in range(10_000)) + b"}}",
    "more lists than memory": b'{"input":{"a":[' + b"[]," * 5_000_000 + b"1]}}",
    "more numbers than memory": b'{"input":{"a":[' + b"1," * 5_000_000 + b"1]}}",
    "comments without an end": b'{"a": ' + b"/* " * 300_000,
    "strings without an end": b'{"a": // \n' + b'\\"' * 300_000,
    "a long string without an end": b'{"input":"' + b"\\" * 5_000_000,
}


@pytest.mark.parametrize("what", BODIES)
def test_hostile_json_is_refused_quickly(api: httpx.Client, what: str) -> None:
    for path in (START, "/api/v1/workflows", "/api/v1/workflows/check", "/api/v1/bulk/retry"):
        began = time.process_time()
        answer = api.post(path, content=BODIES[what], headers={"Content-Type": "application/json"})
        took = time.process_time() - began
        if path.endswith("/check"):
            assert answer.status_code in (200, 400, 422)
            assert answer.status_code != 200 or answer.json()["valid"] is False
        elif path.endswith("/retry"):
            assert answer.status_code in (200, 400, 422)  # a filter may be empty, and then nothing matches
            assert answer.status_code != 200 or answer.json()["done"] == 0
        else:
            assert 400 <= answer.status_code < 500, (path, answer.text[:300])
            assert answer.headers["content-type"] == "application/problem+json"
        assert took < SECONDS


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("a key twice", "the key 'input.a' is there more than once"),
        ("deep lists", "nested deeper than 200 levels"),
        ("more lists than memory", "too many values"),
        ("NaN", "NaN"),
        ("half a character", "surrogate"),
        ("never closed", "too many values"),
    ],
)
def test_a_body_that_is_refused_says_why(api: httpx.Client, what: str, reason: str) -> None:
    answer = api.post(START, content=BODIES[what], headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("the body is refused: ")
    assert reason in answer.json()["detail"], answer.text


def test_a_body_that_is_too_large_is_too_large_also_without_its_length(api: httpx.Client) -> None:
    pieces = (b'{"a":"' + b"x" * 2**20 for _ in range(34))
    answer = api.post(START, content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413, answer.text


LONG = "a" * 10_000
LETTERS = str.maketrans("0123456789", "ghijklmnop")
DOCUMENTS = {
    "a pattern that tries every way": {
        "input": {"properties": {"a": {"pattern": "a*a*a*a*a*a*a*a*b", "default": LONG}}}
    },
    "a repeated group": {"input": {"properties": {"a": {"pattern": "(a|a)*(b+)+$", "default": LONG}}}},
    "two branches to itself": {
        "input": {
            "properties": {"a": {"$ref": "#/$defs/a", "default": 1}},
            "$defs": {"a": {"anyOf": [{"not": {"$ref": "#/$defs/a"}}, {"not": {"$ref": "#/$defs/a"}}]}},
        }
    },
    "unknown names": {
        "nodes": [{"id": f"n{n}", "handler": "compute", "dependencies": [f"nn{n}x"]} for n in range(5_000)]
    },
    "unknown fields of a trigger": {"triggers": [{"cron": "* * * * *", **{f"workfow{n}": 1 for n in range(50_000)}}]},
    "wrong fields of a config": {
        "nodes": [{"id": "a", "handler": "http_request", "config": {"headers": {f"h{n}": n for n in range(200_000)}}}]
    },
    "braces without an end": {"nodes": [{"id": "a", "handler": "compute", "config": {"x": "\r" + "{{" * 49_990}}]},
}


@pytest.mark.parametrize("what", DOCUMENTS)
def test_the_server_stays_alive_while_it_checks_a_document(api: httpx.Client, what: str) -> None:
    began = time.process_time()
    answer = api.post("/api/v1/workflows/check", json={"name": "x", "nodes": []} | DOCUMENTS[what])
    assert answer.status_code == 200
    assert answer.json()["valid"] is False
    assert api.get("/healthz").status_code == 200
    assert time.process_time() - began < SECONDS


def test_a_graph_with_names_of_punctuation_is_grouped_quickly(api: httpx.Client) -> None:
    names = ["_" * 490 + f"{number:x}".translate(LETTERS) for number in range(4_000)]
    graph = to_frozen(Graph([NodeSpec(name, name, job="nowhere:work") for name in names]), 0.0)
    run = api.post("/api/v1/runs", json={"graph": graph, "workflow": "punctuated"})
    assert run.status_code == 201, run.text
    began = time.process_time()
    answer = api.get(f"/api/v1/runs/{run.json()['id']}/graph")
    assert answer.status_code == 200
    assert answer.json()["size"] == 4_000
    assert time.process_time() - began < SECONDS
    assert api.post(f"/api/v1/runs/{run.json()['id']}/cancel").status_code == 200


def test_a_graph_is_grouped_once_for_all_who_look_at_it(server: Serving, api: httpx.Client) -> None:
    graph = Graph([NodeSpec("a", "a"), NodeSpec("b", "b")])
    assert server.service.grouping_of(graph) is server.service.grouping_of(Graph.load(graph.document))


def test_the_same_asked_many_times_is_read_once_and_answered_within_limits(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = {"query": "GetRun", "run_id": "nothing"}
    counts = {"query": "CountNodes", "run_id": "nothing"}
    answers = api.post("/api/v1/read", json={"queries": [run, counts] * 250}).json()["answers"]
    assert len(answers) == 500
    assert answers[:2] == api.post("/api/v1/read", json={"queries": [run, counts]}).json()["answers"]
    names = {"query": "GetRecord", "kind": "document versions", "key": "add"}
    size = len(api.post("/api/v1/read", json={"queries": [names]}).content)
    monkeypatch.setattr(reading, "MAX_BYTES", 100 * size)
    assert api.post("/api/v1/read", json={"queries": [names] * 50}).status_code == 200
    assert api.post("/api/v1/read", json={"queries": [names] * 500}).status_code == 413


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/workflows", {"name": "wrong", "nodes": [{"id": f"n{n}", "handler": "none"} for n in range(150)]}),
        (START, {f"field_{n}": n for n in range(150)}),
    ],
)
def test_problems_are_listed_up_to_a_hundred(api: httpx.Client, path: str, body: dict[str, Any]) -> None:
    refused = api.post(path, json=body)
    assert (refused.status_code, len(refused.json()["problems"])) == (422, 100)


def test_records_that_are_no_definitions_are_not_sent(api: httpx.Client) -> None:
    """Hashes of tokens, sessions, and what triggers wait for."""
    for kind in ("token", "session", "trigger", "document", ""):
        for query in ({"query": "GetRecord", "kind": kind, "key": "x"}, {"query": "ListRecords", "kind": kind}):
            refused = api.post("/api/v1/read", json={"queries": [query]})
            assert refused.status_code == 422
            assert "are not sent" in refused.json()["detail"]


@pytest.mark.parametrize("name", [name for name, (kind, _) in wire._asked().items() if hasattr(kind, "limit")])
def test_a_query_has_a_limit_of_at_least_one(api: httpx.Client, name: str) -> None:
    fields = {"run_id": "r", "kind": "document versions", "worker": "w", "runs": {}, "by": "status"}
    kind, _ = wire._asked()[name]
    query = {"query": name, **{field: value for field, value in fields.items() if field in kind._fields}}
    assert api.post("/api/v1/read", json={"queries": [{**query, "limit": 1}]}).status_code == 200
    for limit in range(-5, 1):
        refused = api.post("/api/v1/read", json={"queries": [{**query, "limit": limit}]})
        assert refused.status_code == 422, limit
        assert "limit" in refused.json()["detail"]


def test_the_rows_of_all_answers_are_limited_together(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        assert api.post(START, json={"input": {"a": number}}).status_code in (200, 201)
    monkeypatch.setattr(reading, "MAX_ROWS", 12)
    lists = [{"query": "ListRuns", "limit": 1_000, "since": number} for number in range(4)]
    assert api.post("/api/v1/read", json={"queries": lists[:1] * 9}).status_code == 200
    told = api.post("/api/v1/read", json={"queries": lists})
    assert told.status_code == 413
    assert "more than 3 rows" in told.json()["detail"]


def test_answers_are_read_in_slices_and_no_further_than_their_limit(
    server: Serving, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = server.service.store
    bodies = [encode({"name": "large", "text": str(number) * 20_000}) for number in range(200)]
    for body in bodies:
        versions.save_version(store, "document", "large", sha256(body), body)
    run = {"input": {"a": 1}, "tags": {"of": "large"}}
    assert all(api.post(START, json=run | {"run_id": f"large-{number}"}).status_code == 201 for number in range(20))
    contents = [{"query": "GetRecord", "kind": "document contents", "key": sha256(body)} for body in bodies]
    runs = [{"query": "ListRuns", "limit": 500, "tags": [["of", "large"]]}]
    answers = [api.post("/api/v1/read", json={"queries": asked}).json()["answers"] for asked in (contents, runs)]
    assert [len(answers[0]), len(answers[1][0]["rows"])] == [200, 20]

    read_rows: list[int] = []
    monkeypatch.setattr(reading, "answer_to_wire", lambda answer: read_rows.append(rows_of(answer)) or to_wire(answer))
    monkeypatch.setattr(reading, "SLICE", 4)
    monkeypatch.setattr(reading, "SLICE_BYTES", 1_000)
    monkeypatch.setattr(reading, "MAX_ROWS", 100)  # fewer than the limit of the query, more than there are
    assert [
        api.post("/api/v1/read", json={"queries": asked}).json()["answers"] for asked in (contents, runs)
    ] == answers
    for asked, most in ((contents, 400_000), (runs, 2_000)):
        read_rows.clear()
        monkeypatch.setattr(reading, "MAX_BYTES", most)
        assert api.post("/api/v1/read", json={"queries": asked}).status_code == 413
        assert sum(read_rows) <= 24


def rows_of(answer: Any) -> int:
    return len(getattr(answer, "runs", (answer,)))


def test_other_content_types_are_refused(api: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = api.post(START, content=b'{"input":{"a":1}}', headers={"Content-Type": kind})
        assert 400 <= answer.status_code < 500, kind
        assert api.post("/api/v1/workflows", content=b"{}", headers={"Content-Type": kind}).status_code == 415


@pytest.mark.parametrize("text", ["%00", "%ff", "a%2Fb", "..%2F..", "%F0%9F%92%A9", "x" * 5_000, "%ED%A0%80", "%0a"])
def test_hostile_paths_are_refused(api: httpx.Client, text: str) -> None:
    for path in ("/runs/{}", "/runs/{}/nodes", "/workflows/{}", "/workflows/{}/versions", "/runs/x/nodes/{}"):
        answer = api.get("/api/v1" + path.format(text))
        assert answer.status_code in (200, 400, 404, 414, 422), path
        assert answer.status_code != 200 or answer.json()["items"] == []
    for path in ("/runs?workflow={}", "/runs?tag=a={}", "/runs?since={}", "/runs?cursor={}", "/workers?cursor={}"):
        answer = api.get("/api/v1" + path.format(text))
        assert answer.status_code in (200, 400, 422), path
