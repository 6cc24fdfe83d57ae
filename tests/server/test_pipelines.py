"""Pipelines over HTTP: how states stand, why, and scans."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Engine, Pipeline
from stepwell.pipeline.looking import PipelineStatus, View
from stepwell.server.serving import Serving
from stepwell.server.streams import states
from tests.pipeline.blog import Ledger, make_blog, write
from tests.server.running import SECONDS, client, running

BLOG = "/api/v1/pipelines/auto-blog"


def _same(text: str) -> str:
    return text


def scanned(api: httpx.Client) -> dict[str, Any]:
    until = time.monotonic() + SECONDS
    while True:
        told: dict[str, Any] = api.get(f"{BLOG}/status").json()
        if told["scan"] is not None and not told["scan"]["running"]:
            return told
        assert time.monotonic() < until
        time.sleep(0.05)


def test_what_an_ended_scan_made_is_in_the_status_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, looked = View.status, threading.Event()
    write(tmp_path / "root", "in/a", "text")
    pipeline = Pipeline("p", root=tmp_path / "root")

    @pipeline.stage(input="in/{x}", output="out/{x}", version="1")
    def copy(text: str) -> str:
        assert looked.wait(SECONDS)
        return text

    with running(f"sqlite:///{tmp_path}/p.db", worker={}, pipelines=[pipeline]) as serving, client(serving) as api:
        scan = api.post("/api/v1/pipelines/p/scan").json()["id"]

        def status_while_the_scan_ends(view: View, entity: str | None = None) -> PipelineStatus:
            found = status(view, entity)
            if not looked.is_set():
                looked.set()
                until = time.monotonic() + SECONDS
                while api.get(f"/api/v1/pipelines/p/scans/{scan}").json()["running"]:
                    assert time.monotonic() < until
                    time.sleep(0.02)
            return found

        monkeypatch.setattr(View, "status", status_while_the_scan_ends)
        told = api.get("/api/v1/pipelines/p/status").json()
        assert told["scan"]["running"] or told["stale"] == 0


def test_a_pipeline_is_looked_at_scanned_and_steered(tmp_path: Path) -> None:
    root, ledger = tmp_path / "output", Ledger()
    write(root, "daily/2026-01-15/a.txt", "first words")
    blog, reader = make_blog(root, ledger), Pipeline("reader", root=root)
    reader.stage("read", input="final/{date}-digest.md", output="read/{date}.md")(_same)
    pipelines = [blog, reader]
    with running(f"sqlite:///{tmp_path}/blog.db", worker={}, pipelines=pipelines) as serving, client(serving) as api:
        assert [each["name"] for each in api.get("/api/v1/pipelines").json()] == ["auto-blog", "reader"]
        assert api.get("/api/v1/pipelines/nothing/status").status_code == 404
        states = api.get(f"{BLOG}/states", params={"limit": 1}).json()
        assert len(states["items"]) == 1
        assert "2026-01-15" in [each["entity"] for each in api.get(f"{BLOG}/entities").json()["items"]]
        stages = {each["name"]: each for each in api.get(f"{BLOG}/graph").json()["stages"]}
        assert stages["digest"]["after"] == ["summary"]
        plan = api.post(f"{BLOG}/scan", json={"dry_run": True}).json()
        assert [each["stage"] for each in plan["will_run"]] == ["summary"]
        asked = {"dry_run": True, "after": ["auto-blog"]}
        assert len(api.post("/api/v1/pipelines/reader/scan", json=asked).json()["may_run"]) == 1
        assert ledger.take() == []
        begun = api.post(f"{BLOG}/scan")
        assert begun.status_code == 202
        told = scanned(api)
        assert told["scan"]["error"] is None
        assert told["stale"] == 0
        assert told["scan"]["report"]["produced"]
        assert ledger.take()
        why = api.get(f"{BLOG}/why", params={"state": "daily/2026-01-15/summary.txt"}).json()
        assert why["status"] == "fresh"
        assert api.get(f"{BLOG}/why", params={"state": "nowhere.txt"}).status_code == 422
        changed = api.post(f"{BLOG}/invalidate", json={"targets": ["daily/2026-01-15/summary.txt"]}).json()["changed"]
        assert changed
        stale = api.get(f"{BLOG}/states", params={"status": "stale"}).json()["items"]
        assert "summary" in [each["stage"] for each in stale]
        assert api.post(f"{BLOG}/retry", json={"targets": []}).json() == {"changed": []}
        assert api.post(f"{BLOG}/scan", json={"targets": ["nowhere"]}).status_code == 422
        with api.stream("GET", f"{BLOG}/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("data: ") and json.loads(line[6:])["stage"] == "summary":
                    break


class StateEvents:
    """What a stream told, as a thread reads it until the server ends."""

    def __init__(self, serving: Serving) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._serving = serving
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        kind = ""
        with (
            contextlib.suppress(httpx.HTTPError),
            client(self._serving) as api,
            api.stream("GET", f"{BLOG}/events") as stream,
        ):
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    self.told.append((kind, json.loads(line[6:])))

    def wait(self, kind: str, stage: str, status: str | None = None) -> None:
        until = time.monotonic() + SECONDS
        while not any(
            (each, data["stage"], data.get("status")) == (kind, stage, status) for each, data in tuple(self.told)
        ):
            assert time.monotonic() < until, self.told
            time.sleep(0.01)


@pytest.mark.parametrize("kept_in", ["files", "files that nobody tells of", "sqlite"])
def test_what_becomes_of_states_is_told_without_waiting_for_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_in: str
) -> None:
    if kept_in == "files that nobody tells of":
        monkeypatch.setitem(sys.modules, "watchfiles", None)
        monkeypatch.setattr(states, "LOOK_SECONDS", 0.1)
    else:
        monkeypatch.setattr(states, "LOOK_SECONDS", 3_600.0)  # nobody looks unless something has changed
    blog = make_blog(f"sqlite:///{tmp_path}/states.db" if kept_in == "sqlite" else tmp_path / "output")
    with running(f"sqlite:///{tmp_path}/blog.db", worker={}, pipelines=[blog]) as serving, client(serving) as api:
        events = [StateEvents(serving), StateEvents(serving)]
        wait_until(lambda: serving.service.state_feed.streams == 2)
        blog.put("daily/2026-01-15/a.txt", b"first words")
        for each in events:
            each.wait("state", "summary", "stale")
        assert api.post(f"{BLOG}/scan").status_code == 202
        events[0].wait("state", "index", "fresh")
        scanned(api)
        assert api.post(f"{BLOG}/invalidate", json={"targets": ["summary"]}).json()["changed"]
        blog.put("daily/2026-01-15/a.txt", b"boom")
        assert api.post(f"{BLOG}/scan").status_code == 202
        events[1].wait("state", "summary", "failed")
        wait_until(lambda: sum(each.name.startswith("stepwell-look-") for each in threading.enumerate()) == 1)
    for each in events:
        each.thread.join(SECONDS)
    wait_until(lambda: not any(each.name.startswith("stepwell-look-") for each in threading.enumerate()))


def test_who_stops_following_leaves_the_others_their_news(tmp_path: Path) -> None:
    blog = make_blog(tmp_path / "output")
    with running(f"sqlite:///{tmp_path}/blog.db", pipelines=[blog]) as serving, client(serving) as api:
        stays = StateEvents(serving)
        wait_until(lambda: serving.service.state_feed.streams == 1)
        with api.stream("GET", f"{BLOG}/events"):
            wait_until(lambda: serving.service.state_feed.streams == 2)
        wait_until(lambda: serving.service.state_feed.streams == 1)
        blog.put("daily/2026-01-15/a.txt", b"words")
        stays.wait("state", "summary", "stale")


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_server_without_a_runner_scans_with_the_workers_there_are(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/blog.db"
    blog = make_blog(tmp_path / "output", ledger := Ledger())
    write(tmp_path / "output", "daily/2026-01-15/a.txt", "first words")
    with running(url, pipelines=[blog]) as serving, client(serving) as api:
        refused = api.post(f"{BLOG}/scan")
        assert refused.status_code == 409
        assert "no worker is alive" in refused.json()["detail"]
        with Engine(url, pipelines=[blog]) as engine:
            engine.work(wait=0)
            begun = api.post(f"{BLOG}/scan")
            assert begun.status_code == 202
            told = scanned(api)["scan"]
            assert told["id"] == begun.json()["id"]
            assert len(told["report"]["produced"]) == 3
            assert api.get(f"{BLOG}/scans/{told['id']}").json() == told
    assert len(ledger.take()) == 3


def test_an_author_makes_a_server_import_no_module_and_read_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through whatever takes the name of a function."""
    (tmp_path / "never_named.py").write_text("raise AssertionError('it was imported')")
    (tmp_path / "secret.json").write_text('{"password in a key": 1}')
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path / "output", "daily/2026-01-15/a.txt", "boom")
    blog = make_blog(tmp_path / "output")
    produce, told = "stepwell.pipeline.building.jobs:produce", []
    with running(f"sqlite:///{tmp_path}/blog.db", worker={}, pipelines=[blog]) as serving, client(serving) as api:
        assert api.post(f"{BLOG}/scan").status_code == 202
        assert scanned(api)["scan"]["report"]["failed"]
        (run,) = api.get("/api/v1/runs").json()["items"]
        place = f"/api/v1/runs/{run['id']}"
        frozen = api.get(f"{place}/graph/frozen").json()
        (node,) = frozen["nodes"].values()
        assert node["job"] == produce
        for home in ("never_named", str(tmp_path / "secret.json")):
            args = node["args"] = {**node["args"], "home": home}
            inline = {"name": "asked", "nodes": [{"id": "only", "handler": produce, "config": args}]}
            asked = [
                api.post("/api/v1/runs", json={"document": inline}),
                api.post("/api/v1/runs", json={"graph": frozen, "workflow": "pipeline:auto-blog"}),
                api.put(f"{place}/graph/frozen", json=frozen),
                api.post(f"{place}/retry"),
                api.post("/api/v1/workflows", json=inline),
                api.post("/api/v1/workflows/asked/runs", json={"input": {}}),
                api.post(
                    "/api/v1/triggers",
                    json={"name": f"t{len(told)}", "workflow": produce, "every": "1h", "input": {**args, "ctx": None}},
                ),
                api.post(f"/api/v1/triggers/t{len(told)}/fire", json={}),
            ]
            told += [answer.text for answer in asked]
            assert sum(answer.status_code < 400 for answer in asked) >= 2, told
        assert scanned(api)["scan"]["running"] is False
        for each in api.get("/api/v1/runs").json()["items"]:
            why = api.get(f"/api/v1/runs/{each['id']}/why").text
            nodes = api.get(f"/api/v1/runs/{each['id']}/nodes").text
            told += [why, nodes]
            assert each["id"] == run["id"] or '"attempts":0' in nodes or each["status"] == "PENDING", (each, nodes)
    assert "never_named" not in sys.modules
    assert not any("password in a key" in text or "it was imported" in text for text in told)


def test_what_is_named_many_times_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "root", "in/a", "text")
    pipeline = Pipeline("p", root=tmp_path / "root")
    pipeline.stage("same", input="in/{x}", output="out/{x}", version="1")(_same)
    with running("memory://", pipelines=[pipeline]) as serving, client(serving) as api:
        once = api.get("/api/v1/pipeline-links", params={"name": "p"})
        assert once.json() == api.get("/api/v1/pipeline-links?" + "&".join(["name=p"] * 50)).json()
        views: list[str] = []
        view = Pipeline.view
        monkeypatch.setattr(Pipeline, "view", lambda self: views.append(self.name) or view(self))
        scan = "/api/v1/pipelines/p/scan"
        plan = api.post(scan, json={"dry_run": True, "after": ["p"], "targets": ["same"]})
        before = len(views)
        again = api.post(scan, json={"dry_run": True, "after": ["p"] * 100, "targets": ["same"] * 9_999})
        assert (again.status_code, again.json()) == (200, plan.json())
        assert len(views) == 2 * before
        assert api.post(scan, json={"dry_run": True, "targets": ["x" * 4_001]}).status_code == 422
