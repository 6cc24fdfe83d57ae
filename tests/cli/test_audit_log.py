"""`stepwell audit-log`, and `--reason` of what changes something."""

from __future__ import annotations

import getpass
import json
import platform
from typing import Any

from stepwell.server.access.tokens import create_token
from tests.cli.conftest import Shop
from tests.server.running import running

NODE = {"id": "x", "handler": "transform", "config": {"template": 1}}
NIGHTLY = ("trigger", "add", "nightly", "add", "--cron", "30 2 * * *")


def actions(entries: list[dict[str, Any]]) -> list[str]:
    return [f"{entry['action']} {entry['kind']} {entry['target']}" for entry in entries]


def test_commands_are_in_the_log_with_their_reason(shop: Shop) -> None:
    shop.write("add.json", json.dumps({"name": "add", "nodes": [NODE]}))
    shop("save", "add.json", "--reason", "first version")
    shop("run", "add", "--run-id", "one", "--reason", "to see it")
    shop("fork", "one", "--run-id", "two", "--reason", "again")
    shop("cancel", "one", "--reason", "too late", code=6)
    shop("retry", "one", "--dry-run", code=6)
    shop(*NIGHTLY)
    shop("token", "create", "--name", "CI")
    log = shop("audit-log", "--json").json
    assert actions(log)[1:] == ["add trigger nightly", "fork run two", "start run one", "save workflow add"]
    assert (log[0]["action"], log[0]["options"]) == ("create", {"name": "CI", "scopes": ["read"]})
    assert [entry["reason"] for entry in log] == [None, None, "again", "to see it", "first version"]
    assert {(entry["who"], entry["via"]) for entry in log} == {(f"{getpass.getuser()}@{platform.node()}", "cli")}
    shop("gc", "--older-than", "0s")
    log = shop("audit-log", "--json").json
    assert actions(log)[0] == "gc store runs"
    assert actions(shop("audit-log", "one", "--json").json) == ["start run one"], "also of a run that was deleted"
    shown = shop("audit-log", "--action", "start", COLUMNS="200").out
    assert "to see it" in shown
    assert "first version" not in shown
    assert shop("audit-log", "--limit", "1", "--json").json == log[:1]
    assert "no such entry" in shop("audit-log", "--who", "nobody").err
    assert f"{len(log)} entries of the audit log" in shop("gc", "--audit-log", "0s", "--dry-run").out
    forgotten = shop("gc", "--audit-log", "0s", "--json").json
    assert forgotten["audit_log"] == len(log)
    assert shop("audit-log", "--json").json == []


FLOW = """
from stepwell import Pipeline

p = Pipeline("p", root="states")

@p.stage(input="in/{x}.txt", output="out/{x}.txt")
def copy(text: str) -> str:
    return text
"""


def test_commands_for_pipelines_are_in_the_log_with_their_reason(shop: Shop) -> None:
    shop.write("flow.py", FLOW)
    shop.write("a.txt", "a")

    def ask(*words: str) -> None:
        shop("pipeline", *words, "-p", "flow:p", "--reason", f"to {words[0]}")

    ask("put", "in/a.txt", "a.txt")
    ask("build", "out/a.txt")
    ask("invalidate", "out/a.txt")
    ask("accept", "out/a.txt")
    ask("accept", "out/a.txt")
    (shop.folder / "states/in/a.txt").unlink()
    ask("clean", "--dry-run")
    ask("clean")
    log = [entry for entry in shop("audit-log", "--json").json if entry["kind"] == "pipeline"]
    targets = {"targets": ["out/a.txt"]}
    assert [(entry["action"], entry["options"], entry["reason"]) for entry in reversed(log)] == [
        ("put", {"targets": ["in/a.txt"]}, "to put"),
        ("scan", targets, "to build"),
        ("invalidate", {**targets, "changed": 1}, "to invalidate"),
        ("accept", {**targets, "changed": 1}, "to accept"),
        ("clean", {"changed": 1}, "to clean"),
    ]
    assert {(entry["target"], entry["via"]) for entry in log} == {("p", "cli")}


def test_a_reason_is_one_line(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "a")
    for reason in ("x" * 1_001, "two\nlines"):
        assert "reason=" in shop("fork", "a", "--reason", reason, code=2).err
    assert actions(shop("audit-log", "--json").json) == ["start run a"]


def test_with_a_server_the_token_is_named(shop: Shop) -> None:
    shop.write("add.json", json.dumps({"name": "add", "nodes": [NODE]}))
    with running(f"sqlite:///{shop.folder}/asked.db") as serving:
        text, token = create_token(serving.service.store, ["admin"], name="alice")
        where = {"STEPWELL_SERVER": serving.url, "STEPWELL_TOKEN": text}
        shop("save", "add.json", "--reason", "für später", **where)
        shop(*NIGHTLY, "--reason", "each night", **where)
        fired = shop("trigger", "fire", "nightly", "--reason", "now", **where).out
        log = shop("audit-log", "--json", **where).json
        assert [entry["reason"] for entry in log] == ["now", "each night", "für später"]
        assert {(entry["who"], entry["token"], entry["via"]) for entry in log} == {("alice", token.id, "cli")}
        run = log[0]["target"]
        assert run in fired
        shop("cancel", run, "--reason", "enough", **where)
        assert actions(shop("audit-log", run, "--json", **where).json) == [f"cancel run {run}", f"start run {run}"]
        reader, _ = create_token(serving.service.store, ["read"])
        where["STEPWELL_TOKEN"] = reader
        assert len(shop("audit-log", run, "--json", **where).json) == 2
        assert "needs the scope 'admin'" in shop("audit-log", code=4, **where).err
