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

from stepwell import Engine
from stepwell.server.serving import Serving
from stepwell.server.streams import states
from tests.pipeline.blog import Ledger, make_blog, write
from tests.server.running import SECONDS, client, running

BLOG = "/api/v1/pipelines/auto-blog"


def scanned(api: httpx.Client) -> dict[str, Any]:
    until = time.monotonic() + SECONDS
    while True:
        told: dict[str, Any] = api.get(f"{BLOG}/status").json()
        if told["scan"] is not None and not told["scan"]["running"]:
            return told
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_pipeline_is_looked_at_scanned_and_steered(tmp_path: Path) -> None:
    root, ledger = tmp_path / "output", Ledger()
    write(root, "daily/2026-01-15/a.txt", "first words")
    blog = make_blog(root, ledger)
    with running(f"sqlite:///{tmp_path}/blog.db", worker={}, pipelines=[blog]) as serving, client(serving) as api:
        assert [each["name"] for each in api.get("/api/v1/pipelines").json()] == ["auto-blog"]
        assert api.get("/api/v1/pipelines/nothing/status").status_code == 404
        states = api.get(f"{BLOG}/states", params={"limit": 1}).json()
        assert len(states["items"]) == 1
        assert "2026-01-15" in [each["entity"] for each in api.get(f"{BLOG}/entities").json()["items"]]
        stages = {each["name"]: each for each in api.get(f"{BLOG}/graph").json()["stages"]}
        assert stages["digest"]["after"] == ["summary"]
        plan = api.post(f"{BLOG}/scan", json={"dry_run": True}).json()
        assert [each["stage"] for each in plan["willRun"]] == ["summary"]
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
        with Engine(url, jobs=["stepwell.pipeline.building.jobs"]) as engine:
            engine.serve()
            begun = api.post(f"{BLOG}/scan")
            assert begun.status_code == 202
            told = scanned(api)["scan"]
            assert told["id"] == begun.json()["id"]
            assert len(told["report"]["produced"]) == 3
            assert api.get(f"{BLOG}/scans/{told['id']}").json() == told
    assert len(ledger.take()) == 3
