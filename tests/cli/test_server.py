"""`--server URL`: the commands that read or steer ask a server, and say the same."""

from __future__ import annotations

import json
from typing import Any

import httpx

from stepwell.server.access.tokens import create_token
from tests.cli.conftest import Shop
from tests.server.gift import SERVED, Gift, left_by_the_class_before
from tests.server.running import running

QUESTIONS = {
    "ls": "runs",
    "ls --search FIRST": "runs?q=FIRST",
    "ls --count workflow": "runs/counts?by=workflow",
    "show first x": "runs/first/nodes/x",
    "why first": "runs/first/why",
    "why first x": "runs/first/why?node=x",
    "audit first": "runs/first/audit",
    "failures first": "runs/first/failures",
    "attempts first": "runs/first/attempts",
    "logs first": "runs/first/logs",
    "checkpoints first": "runs/first/checkpoints",
    "checkpoints first 2": "runs/first/checkpoints/2",
    "diff first first": "runs/first/diff/first",
    "graph first": "runs/first/graph",
    "graph add": "workflows/add/graph",
    "workflows": "workflows",
    "workflow add": "workflows/add",
    "workers": "workers",
    "trigger ls": "triggers",
    "trigger show nightly --next 5": "triggers/nightly",
}
"""What a command shows with `--json`, and the path that has the same."""


def without_times(answer: Any) -> Any:
    """Without what differs from moment to moment, and without commands, which name the store or the server."""
    left_out = {"advice", "lease_until", "renewed_at", "lease_seconds_left", "renewed_seconds_ago", "versions"}
    match answer:
        case dict():
            return {name: without_times(value) for name, value in answer.items() if name not in left_out}
        case list():
            return [*map(without_times, answer)]
        case _:
            return answer


def test_commands_ask_a_server_and_say_the_same(shop: Shop) -> None:
    node = {"id": "x", "handler": "transform", "config": {"template": 1}}
    shop.write("add.json", json.dumps({"name": "add", "nodes": [node]}))
    store = f"sqlite:///{shop.folder}/asked.db"
    with running(store, worker={}) as serving:
        text, _ = create_token(serving.service.store, ["admin"])
        where = {"STEPWELL_SERVER": serving.url, "STEPWELL_TOKEN": text}
        refused = shop("ls", "--server", serving.url, code=4)
        assert "expected a token" in refused.err
        assert "add@1" in shop("save", "add.json", **where).out
        assert shop("run", "add", "--run-id", "first", **where).json == {"result": 1}
        shop("trigger", "add", "nightly", "add", "--cron", "30 2 * * *", **where)
        remote, local = (
            shop("show", "first", "--json", **where).json,
            shop("show", "first", "--json", "--store", store).json,
        )
        assert {**remote, "metrics": None} == {**local, "metrics": None}
        for command, path in QUESTIONS.items():
            by_client = shop(*command.split(), "--json", **where).json
            over_http = httpx.get(f"{serving.url}/api/v1/{path}", headers={"Authorization": f"Bearer {text}"}).json()
            from_store = shop(*command.split(), "--json", "--store", store).json
            assert without_times(by_client) == without_times(from_store), command
            over_http = over_http.get("items", over_http) if isinstance(over_http, dict) else over_http
            assert without_times(over_http) == without_times(from_store), command
        assert "`stepwell ls --server" in shop("why", "nothing", code=3, **where).err
        shop("fork", "first", "--at", "x", "--run-id", "second", **where)
        told = shop("cancel", "second", "--server", serving.url, STEPWELL_TOKEN=text, code=6).err
        assert "it has ended" in told
        assert f"--server {serving.url}" in told
    assert "No such option: --server" in shop("work", "shop", "--server", "http://127.0.0.1:9", code=2).err
    assert "cannot be reached" in shop("ls", "--server", "http://127.0.0.1:9", code=4).err


def test_a_run_that_needs_an_input_and_a_retry_is_given_both_through_a_server(shop: Shop) -> None:
    store = f"sqlite:///{shop.folder}/gift.db"
    run = left_by_the_class_before(store)
    with running(store, worker={"workflows": [Gift]}, **SERVED) as serving:
        assert shop("retry", run, "--input", "ribbons=3", "--server", serving.url).json == 3
        fork = shop("fork", run, "--at", "pack", "--input", "ribbons=4", "--server", serving.url)
        assert fork.json == 4
        shown = shop("show", run, "--json", "--server", serving.url).json
        assert (shown["status"], shown["input"]) == ("COMPLETED", {"ribbons": 3})
