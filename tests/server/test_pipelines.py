"""Pipelines over HTTP: how states stand, why, and scans."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx

from stepwell.server.streams.looks import Looks, States
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


def test_one_look_does_for_all_streams_and_nobody_waits_for_it() -> None:
    looks, taken = Looks(), []

    def look() -> States:
        taken.append(looks.states("blog", lambda: {("wrong", ""): {}}))  # another stream, meanwhile
        return {("stage", "entity"): {"status": "fresh"}}

    found = [looks.states("blog", look) for _ in range(3)]
    assert found == [{("stage", "entity"): {"status": "fresh"}}] * 3
    assert taken == [{}]
    assert looks.states("other", dict) == {}


def test_a_server_without_a_runner_scans_nothing(tmp_path: Path) -> None:
    blog = make_blog(tmp_path / "output")
    with running(f"sqlite:///{tmp_path}/blog.db", pipelines=[blog]) as serving, client(serving) as api:
        refused = api.post(f"{BLOG}/scan")
        assert refused.status_code == 409
        assert "no runner" in refused.json()["detail"]
