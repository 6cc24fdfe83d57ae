"""Starting, listing and looking at runs over HTTP."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Builder, Context, Engine
from stepwell.core.model import ListLines, ListNodes
from stepwell.history.replay.checkpoint import effect_data
from stepwell.server import paging
from stepwell.server.serving import Serving
from tests.server.running import ADD, client, ended, running

RUNS = "/api/v1/runs"


def start(api: httpx.Client, a: int = 1, **more: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/workflows/add/runs", json={"input": {"a": a}, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_run_is_started_and_its_results_are_read(api: httpx.Client) -> None:
    run = start(api, 41)
    detail = ended(api, run["id"])
    assert {status: count for status, count in detail["counts"].items() if count} == {"COMPLETED": 2}
    assert detail["input"] == {"a": 41}
    assert api.get(f"{RUNS}/{run['id']}/results").json()["result"] == {"result": 42}
    assert [each["value"] for each in api.get(f"{RUNS}/{run['id']}/outputs").json()["items"]] == [
        {"result": 41},
        {"result": 42},
    ]


def test_the_same_key_is_the_same_run(api: httpx.Client) -> None:
    def ask(a: int, key: str) -> httpx.Response:
        body = {"input": {"a": a}}
        return api.post("/api/v1/workflows/add/runs", json=body, headers={"Idempotency-Key": key})

    first = ask(1, "once")
    again = ask(1, "once")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.headers["location"] == f"{RUNS}/{first.json()['id']}"
    ended(api, first.json()["id"])
    assert ask(1, "once").status_code == 200
    other = ask(2, "once")
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert "another workflow or input" in other.json()["detail"]


def test_a_key_gives_the_run_that_failed_with_it(api: httpx.Client) -> None:
    document = {
        "name": "fails",
        "nodes": [{"id": "x", "handler": "transform", "config": {"template": "{{ input.b.c }}"}}],
    }
    assert api.post("/api/v1/workflows", json=document).status_code == 201
    ask = {"json": {"input": {"b": {}}}, "headers": {"Idempotency-Key": "failing"}}
    first = api.post("/api/v1/workflows/fails/runs", **ask)  # type: ignore[arg-type]
    ended(api, first.json()["id"], "FAILED")
    again = api.post("/api/v1/workflows/fails/runs", **ask)  # type: ignore[arg-type]
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, first.json()["id"], "FAILED")


def test_an_input_that_does_not_fit_is_refused_with_its_place(api: httpx.Client) -> None:
    answer = api.post("/api/v1/workflows/add/runs", json={"input": {"a": "seven"}})
    assert answer.status_code == 422
    assert "$.input.a: expected an integer" in answer.json()["detail"]


def test_what_is_not_there_is_not_found(api: httpx.Client) -> None:
    run = start(api)
    for path in (f"{RUNS}/nobody", f"{RUNS}/{run['id']}/nodes/nothing", "/api/v1/workflows/nothing", "/api/v1/nowhere"):
        answer = api.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["status"] == 404
    for name in ("ad", "ad@3"):
        close = api.post(f"/api/v1/workflows/{name}/runs", json={})
        assert (close.status_code, f"no workflow {name!r} is known here" in close.json()["detail"]) == (404, True)
        assert "did you mean 'add'" in close.json()["detail"] or "@" in name
    none = api.post("/api/v1/workflows/add@99/runs", json={})
    assert none.status_code == 422
    assert "no version 99" in none.json()["detail"]


def test_runs_are_listed_page_by_page_and_by_filters(api: httpx.Client) -> None:
    ids = [start(api, n, tags={"page": "yes", "n": str(n)}, run_id=f"listed-{n}")["id"] for n in range(5)]
    found: list[str] = []
    cursor = None
    while True:
        asked = {"tag": "page=yes", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = api.get(RUNS, params=asked).json()
        found += [run["id"] for run in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == ids[::-1]
    assert [run["id"] for run in api.get(RUNS, params={"tag": ["page=yes", "n=3"]}).json()["items"]] == ["listed-3"]
    assert len(api.get(RUNS, params={"prefix": "listed-"}).json()["items"]) == 5
    assert api.get(RUNS, params={"workflow": "nothing"}).json() == {"items": [], "next": None}
    assert api.get(RUNS, params={"since": "2999-01-01T00:00:00Z"}).json()["items"] == []
    for run_id in ids:
        ended(api, run_id)
    completed = api.get(RUNS, params={"status": ["COMPLETED"], "prefix": "listed-"}).json()["items"]
    assert len(completed) == 5


@pytest.mark.parametrize("cursor", ["!", "bm90IGpzb24", "eyJhIjoxfQ", "LTE" * 500])
def test_a_cursor_that_is_none_is_refused(api: httpx.Client, cursor: str) -> None:
    for path in (RUNS, "/api/v1/workflows", "/api/v1/workers"):
        assert api.get(path, params={"cursor": cursor}).status_code in (400, 422)


def test_every_question_about_a_run_is_answered(api: httpx.Client) -> None:
    run = start(api, 5)["id"]
    ended(api, run)
    nodes = api.get(f"{RUNS}/{run}/nodes", params={"limit": 1}).json()
    assert [node["id"] for node in nodes["items"]] == ["x"]
    more = api.get(f"{RUNS}/{run}/nodes", params={"cursor": nodes["next"]}).json()
    assert [node["id"] for node in more["items"]] == ["y"]
    assert api.get(f"{RUNS}/{run}/nodes", params={"status": "FAILED"}).json()["items"] == []
    node = api.get(f"{RUNS}/{run}/nodes/y").json()
    assert node["config"] == {"template": "{{ x.result + 1 }}"}
    assert node["attempt_list"][0]["config"] == {"template": 6}
    assert node["output"]["value"] == {"result": 6}
    (attempt,) = api.get(f"{RUNS}/{run}/nodes/y/attempts").json()
    assert (attempt["number"], attempt["status"]) == (1, "COMPLETED")
    journal = api.get(f"{RUNS}/{run}/journal").json()["items"]
    assert [entry["seq"] for entry in journal] == list(range(1, len(journal) + 1))
    assert api.get(f"{RUNS}/{run}/why").json()["status"] == "COMPLETED"
    assert api.get(f"{RUNS}/{run}/why", params={"node": "y"}).json()["node"] == "y"
    assert api.get(f"{RUNS}/{run}/audit").json()["problems"] == []
    assert api.get(f"{RUNS}/{run}/metrics").json()["attempts"] == 2
    assert api.get(f"{RUNS}/{run}/graph").json()["nodes"]["statuses"][0] == "COMPLETED"
    assert "flowchart" in api.get(f"{RUNS}/{run}/graph", params={"format": "mermaid"}).text
    assert api.get(f"{RUNS}/{run}/checkpoints/2").json()["step"] == 2
    assert api.get(f"{RUNS}/{run}/checkpoints").json() == []
    assert api.get(f"{RUNS}/{run}/logs").json()["items"] == []
    assert api.get(f"{RUNS}/{run}/effects").json() == {"items": [], "next": None}
    other = start(api, 5)["id"]
    ended(api, other)
    assert api.get(f"{RUNS}/{run}/diff/{other}").json()["same_outputs"] is True


def test_an_output_is_read_in_ranges_and_by_its_hash(api: httpx.Client) -> None:
    run = start(api, 123_456)["id"]
    ended(api, run)
    path = f"{RUNS}/{run}/nodes/x/output"
    whole = api.get(path)
    assert whole.content == b'{"result":123456}'
    part = api.get(path, headers={"Range": "bytes=10-15"})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"123456", "bytes 10-15/17")
    assert api.get(path, headers={"Range": "bytes=-7"}).content == b"123456}"
    assert api.get(path, headers={"Range": "bytes=17-"}).status_code == 416
    assert api.get(path, headers={"Range": "bytes=9-3"}).status_code == 416
    assert api.get(path, headers={"Range": "lines=1-2"}).status_code == 200
    assert api.get(path, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304


def test_documents_are_checked_saved_and_activated(api: httpx.Client) -> None:
    wrong = {
        "name": "w",
        "nodes": [{"id": "a", "handler": "nothing", "dependencies": ["b"]}, {"id": "b", "handler": "x"}],
    }
    checked = api.post("/api/v1/workflows/check", json=wrong).json()
    assert checked["valid"] is False
    assert {problem["path"] for problem in checked["problems"]} >= {"$.nodes[0].handler", "$.nodes[1].handler"}
    refused = api.post("/api/v1/workflows", json=wrong)
    assert refused.status_code == 422
    assert len(refused.json()["problems"]) == len(checked["problems"])
    assert api.get("/api/v1/workflows/w").status_code == 404
    assert api.post("/api/v1/workflows/check", json=ADD).json()["valid"] is True
    yaml = "name: versions\nnodes:\n  - {id: a, handler: transform, config: {template: 1}}\n"
    headers = {"Content-Type": "application/yaml"}
    assert api.post("/api/v1/workflows", content=yaml, headers=headers).json()["version"] == 1
    assert api.post("/api/v1/workflows", content=yaml, headers=headers).status_code == 200
    second = api.post("/api/v1/workflows", content=yaml.replace("1}", "2}"), headers=headers)
    assert second.json()["version"] == 2
    assert api.post("/api/v1/workflows/versions/activate", json={"version": 1}).json()["active"] == 1
    assert api.get("/api/v1/workflows/versions").json()["document"]["nodes"][0]["config"] == {"template": 1}
    assert api.get("/api/v1/workflows/versions", params={"version": 2}).json()["version"] == 2
    versions = api.get("/api/v1/workflows/versions/versions").json()["items"]
    assert [(each["version"], each["active"]) for each in versions] == [(1, True), (2, False)]
    assert api.get("/api/v1/workflows/versions/graph").json()["nodes"]["ids"][0] == "a"
    assert api.get("/api/v1/workflows/versions", params={"version": 9}).status_code == 404


def test_what_can_be_asked_of_a_run_can_say_first_what_it_would_do(api: httpx.Client) -> None:
    document = {
        "name": "steered",
        "input": {"type": "object", "properties": {"b": {"type": "object"}}},
        "nodes": [
            {"id": "good", "handler": "transform", "config": {"template": "fine"}},
            {"id": "bad", "handler": "transform", "config": {"template": "{{ input.b.c }}"}, "dependencies": ["good"]},
        ],
    }
    assert api.post("/api/v1/workflows", json=document).status_code == 201
    run = api.post("/api/v1/workflows/steered/runs", json={"input": {"b": {}}}).json()["id"]
    ended(api, run, "FAILED")
    dry = api.post(f"{RUNS}/{run}/retry", json={"dry_run": True}).json()
    assert [(node["id"], node["becomes"]) for node in dry["nodes"]] == [("bad", "PENDING")]
    assert api.get(f"{RUNS}/{run}").json()["status"] == "FAILED"
    assert api.post(f"{RUNS}/{run}/retry").status_code == 200
    ended(api, run, "FAILED")
    nodes = {node["id"]: node["attempts"] for node in api.get(f"{RUNS}/{run}/nodes").json()["items"]}
    assert nodes == {"good": 1, "bad": 2}
    refused = api.post(f"{RUNS}/{run}/cancel")
    assert refused.status_code == 409
    assert "cannot be cancelled" in refused.json()["detail"]
    assert api.post(f"{RUNS}/{run}/nodes/nobody/reattempt").status_code == 404
    assert api.post(f"{RUNS}/{run}/nodes/bad/reattempt", json={"dry_run": True}).json()["nodes"]
    forked = api.post(f"{RUNS}/{run}/fork", json={"at": "bad", "input": {"b": {"c": 3}}})
    assert forked.status_code == 201
    assert ended(api, forked.json()["id"])["origin"]["run"] == run
    assert api.get(f"{RUNS}/{forked.json()['id']}/results").json()["result"] == {"result": 3}
    many = api.post("/api/v1/bulk/retry", json={"filter": {"workflow": "steered"}, "limit": 10, "dry_run": True}).json()
    assert (many["matched"], many["done"], many["more"]) == (1, 1, False)
    done = api.post("/api/v1/bulk/retry", json={"preview": many["preview"]}).json()
    assert [(each["run"], each["outcome"]) for each in done["runs"]] == [(run, "done")]
    ended(api, run, "FAILED")
    assert api.post("/api/v1/bulk/pause", json={"filter": {"status": ["FAILED"]}, "dry_run": True}).status_code == 422
    assert api.delete(f"{RUNS}/{run}").status_code in (204, 409)  # its fork may keep it


def test_everything_that_can_be_asked_of_one_can_be_asked_of_many(api: httpx.Client) -> None:
    runs = [start(api, number, tags={"batch": "many"})["id"] for number in range(3)]
    for run in runs:
        ended(api, run)

    def post(verb: str, **body: Any) -> dict[str, Any]:
        answer = api.post(f"/api/v1/bulk/{verb}", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ask(verb: str, limit: int, cursor: str | None = None, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What it would do, and then what it did."""
        filter = {"tag": ["batch=many"]}
        dry = post(verb, filter=filter, dry_run=True, limit=limit, cursor=cursor, **more)
        return dry, post(verb, preview=dry["preview"], **more)

    first, first_done = ask("fork", 2, at="y", input={"a": 5}, key="again")
    assert [each["nodes"] for each in first["runs"]] == [1, 1]
    rest, rest_done = ask("fork", 2, first["next"], at="y", input={"a": 5}, key="again")
    assert (first["more"], rest["more"], rest["next"]) == (True, False, None)
    made = [each["fork"] for each in (*first_done["runs"], *rest_done["runs"])]
    assert made == [f"{run}-again" for run in reversed(runs)]
    for fork in made:
        assert ended(api, fork)["origin"]["run"] == fork.removesuffix("-again")
    _, again = ask("fork", 6, at="y", input={"a": 5}, key="again")  # the same forks, and one of each of them
    assert [each["fork"] for each in again["runs"] if each["run"] in runs] == made
    for fork in again["runs"]:
        ended(api, fork["fork"])
    refused, nothing = ask("reattempt", 2, node="x")
    assert {each["outcome"] for each in refused["runs"]} == {"refused"}  # what is below it has completed
    assert nothing["runs"] == refused["preview"] == []
    assert ask("reattempt", 2, node="x", cascade=True)[1]["done"] == 2
    for each in refused["runs"]:
        assert ended(api, each["run"])["seq"] > 0
    assert ask("reattempt", 1, node="nowhere")[0]["runs"][0]["outcome"] == "refused"
    for verb, more in (("reattempt", {}), ("cancel", {"node": "x"})):
        assert api.post(f"/api/v1/bulk/{verb}", json={"dry_run": True, **more}).status_code == 422


def test_a_fork_can_say_what_it_would_run(api: httpx.Client) -> None:
    run = start(api)["id"]
    ended(api, run)
    answer = api.post(f"{RUNS}/{run}/fork", json={"at": "y", "dry_run": True})
    assert answer.status_code == 200
    assert answer.json() == {
        "run": run,
        "status": "COMPLETED",
        "dry_run": True,
        "becomes": "PENDING",
        "nodes": [{"id": "y", "name": "y", "status": "COMPLETED", "becomes": "PENDING"}],
    }
    assert api.get(f"{RUNS}/{run}").json()["forks"] == []
    assert api.post(f"{RUNS}/{run}/fork", json={"at": "nowhere", "dry_run": True}).status_code == 404


def test_why_a_document_waits_names_no_module_and_no_store(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/waits.db") as serving, client(serving) as api:
        assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        run = start(api)["id"]
        told = api.get(f"{RUNS}/{run}/why")
        assert told.json()["advice"] == [f"`stepwell work` works on it, or `stepwell resume {run}` on this run alone"]
        assert str(tmp_path) not in told.text


def test_what_curl_sends_by_default_is_told_apart(api: httpx.Client) -> None:
    path, body = "/api/v1/workflows/add/runs", '{"input": {"a": 1}}'
    for kind in ("application/x-www-form-urlencoded", "text/plain", ""):
        answer = api.post(path, content=body, headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert "Content-Type: application/json" in answer.json()["detail"]
    assert api.post(path, content=body, headers={"Content-Type": "application/json; charset=utf-8"}).status_code == 201


def test_a_workflow_without_input_is_started_without_a_body(api: httpx.Client) -> None:
    document = {"name": "plain", "nodes": [{"id": "x", "handler": "transform", "config": {"template": 1}}]}
    assert api.post("/api/v1/workflows", json=document).status_code == 201
    ended(api, api.post("/api/v1/workflows/plain/runs").json()["id"])
    assert "$.input.a" in api.post("/api/v1/workflows/add/runs").json()["detail"]


def refuse(number: int) -> None:
    raise ConnectionError(f"call {number} is refused")


def ask_three_times(ctx: Context) -> None:
    for number in range(3):
        with contextlib.suppress(ConnectionError):
            ctx.effect("call", refuse, number)


def ask_at_length(ctx: Context) -> None:
    for number in range(6):
        asked = {"number": number, "more": "?" * (20_000 if number % 3 else 1)}
        ctx.effect("call", lambda asked: asked["more"] * (1 + asked["number"] % 2), asked, durable=number in (2, 3))


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_a_page_of_effects_is_read_alone_with_what_is_large_of_it(tmp_path: Path, at_once: int) -> None:
    url = f"sqlite:///{tmp_path}/effects.db"
    builder = Builder("calls")
    for name in "ab":
        builder.node(name, job=ask_at_length)
    with Engine(url) as engine:
        run = engine.run(builder)
        expected = [effect_data(each) for each in run.effects()]
    with running(url) as serving, client(serving) as api:
        for rubbish in (["zz", 1], ["zz.", -1], ["", 0], [1, "a"], ["a", True], "x", 7, ["a.1", 2**63]):
            answer = api.get(f"{RUNS}/{run.id}/effects", params={"cursor": paging.written(rubbish)})
            assert answer.status_code in (200, 400), answer.text
        reads: list[int] = []
        read = serving.service.store.read

        def counted(queries: Any) -> Any:
            answers = read(queries)
            lines = [each for asked, each in zip(queries, answers, strict=True) if isinstance(asked, ListLines)]
            reads.append(sum(map(len, lines)))
            return answers

        serving.service.store.read = counted  # type: ignore[method-assign]
        found, cursor = [], None
        for _ in range(20):
            reads.clear()
            page = api.get(
                f"{RUNS}/{run.id}/effects", params={"limit": at_once, **({"cursor": cursor} if cursor else {})}
            ).json()
            assert sum(reads) <= 3 * at_once
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                break
    assert len(found) == 12
    assert sorted(found, key=str) == sorted(json.loads(json.dumps(expected)), key=str)
    if at_once == 100:
        assert found == json.loads(json.dumps(expected))


def same(item: int) -> int:
    return item


def test_a_node_is_read_without_its_ancestors_and_its_attempts_have_ancestry_hashes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chain.db"
    builder = Builder("chain")
    for number in range(50):
        builder.node(f"s{number}", job=same, args={"item": number})
    with Engine(url) as engine:
        run = engine.run(builder)
        expected = run.node("s49").attempts[0].ancestry
    with running(url) as serving, client(serving) as api:
        rows = 0
        read = serving.service.store.read

        def counted(queries: Any) -> Any:
            nonlocal rows
            answers = read(queries)
            nodes = (each for asked, each in zip(queries, answers, strict=True) if isinstance(asked, ListNodes))
            rows += sum(map(len, nodes))
            return answers

        serving.service.store.read = counted  # type: ignore[method-assign]
        node = api.get(f"{RUNS}/{run.id}/nodes/s49").json()
        assert (node["status"], node["attempts"], rows) == ("COMPLETED", 1, 1)
        (attempt,) = api.get(f"{RUNS}/{run.id}/nodes/s49/attempts").json()
        assert attempt == node["attempt_list"][0] | {"ancestry": expected}


def test_effects_are_pages_and_tell_what_was_raised(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/effects.db"
    builder = Builder("calls")
    builder.node("calls", job=ask_three_times)
    with Engine(url) as engine:
        run = engine.run(builder).id
    with running(url) as serving, client(serving) as api:
        first = api.get(f"{RUNS}/{run}/effects", params={"limit": 2}).json()
        rest = api.get(f"{RUNS}/{run}/effects", params={"limit": 2, "cursor": first["next"]}).json()
    told = [(each["name"], each["request"], each["error"]["message"]) for each in (*first["items"], *rest["items"])]
    assert [message for _, _, message in told] == [f"call {number} is refused" for number in range(3)]
    assert (len(first["items"]), rest["next"]) == (2, None)


def test_the_server_says_how_it_is(api: httpx.Client, server: Serving) -> None:
    assert api.get("/healthz").json() == {"status": "ok"}
    assert api.get("/readyz").json() == {"status": "ready"}
    text = api.get("/metrics").text
    assert 'stepwell_runs{status="RUNNING"}' in text
    assert "stepwell_http_request_seconds_count" in text
    assert "\nstepwell_workers_idle 0\n" in text
    assert '\n# TYPE stepwell_runner_active gauge\nstepwell_runner_active{body="thread"} ' in text
    assert "\n# TYPE stepwell_runner_executed_total counter\nstepwell_runner_executed_total " in text
    told = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(told) == len(set(told)), "no series is told twice"
    (worker,) = [each for each in api.get("/api/v1/workers").json()["items"] if each["alive"]]
    assert worker["pid"] > 0
