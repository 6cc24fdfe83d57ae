"""Triggers and webhooks over HTTP, on a real server with a runner."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from stepwell import Document, StepwellError, Trigger
from stepwell.client import Client
from stepwell.handlers import Handlers
from stepwell.server.access.tokens import create_token
from stepwell.server.serving import Serving
from tests.server.running import ADD, client, ended, running

SECRET = "a-secret-of-the-sender"
HOOK = {
    "name": "push",
    "workflow": "add",
    "webhook": {"scheme": "github", "secret": "secret:PUSH", "rate_per_minute": 6_000},
    "input": {"a": "{{ body.number }}"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("triggers")
    handlers = Handlers(secrets={"PUSH": SECRET})
    with running(f"sqlite:///{folder}/server.db", worker={}, handlers=handlers) as serving:
        with client(serving) as api:
            assert api.post("/api/v1/workflows", json=ADD).status_code == 201
            assert api.post("/api/v1/triggers", json=HOOK).status_code == 201
        yield serving


@pytest.fixture
def api(server: Serving) -> Iterator[httpx.Client]:
    with client(server) as made:
        yield made


def signed(payload: Any, delivery: str) -> dict[str, Any]:
    body = json.dumps(payload).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Hub-Signature-256": f"sha256={signature}",
        "X-GitHub-Delivery": delivery,
    }
    return {"content": body, "headers": headers}


def test_a_signed_delivery_starts_a_run_and_a_redelivery_answers_with_it(api: httpx.Client) -> None:
    first = api.post("/hooks/push", **signed({"number": 7}, "d-1"))
    again = api.post("/hooks/push", **signed({"number": 7}, "d-1"))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["new"] is True
    assert again.json() == {"run": first.json()["run"], "new": False}
    assert first.headers["Location"] == f"/api/v1/runs/{first.json()['run']}"
    ended(api, first.json()["run"])
    assert "8" in json.dumps(api.get(f"/api/v1/runs/{first.json()['run']}/results").json()["result"])


def test_webhooks_need_no_token_but_their_secret_and_tell_nothing_to_others(api: httpx.Client) -> None:
    wrong = api.post("/hooks/push", **signed({"number": 7}, "d-2") | {"content": b"{}"})
    unknown = api.post("/hooks/pull", **signed({"number": 7}, "d-2"))
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json()["detail"] == unknown.json()["detail"]
    assert api.post("/hooks/push", content=b"x" * 2_000_000).status_code == 413
    refused = api.post("/hooks/push", **signed({"number": "seven"}, "d-3"))
    assert refused.status_code == 422
    assert "does not fit" in refused.json()["detail"]


def test_a_webhook_of_any_name_is_unknown_on_any_store(server_url: str) -> None:
    """Also one that a database could not keep."""
    with running(server_url) as serving, client(serving) as api:
        for name in (*map(chr, range(0x20)), "a\x00b", "\x7f", "é", "\u2028", "💩", "x" * 5_000, "a b", "{}", "%"):
            answer = api.post(f"/hooks/{quote(name, safe='')}")
            assert answer.status_code == 401, (name, answer.text)
            assert answer.json()["detail"] == "there is no such webhook, or its secret or signature is wrong"


def test_who_is_refused_too_often_is_not_listened_to_for_a_while(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("refused")
    with running(f"sqlite:///{folder}/server.db") as serving, client(serving) as api:
        answers = [api.post("/hooks/nobody") for _ in range(50)]
        assert answers[0].status_code == 401
        (last, *_) = [answer for answer in answers if answer.status_code == 429]
        assert int(last.headers["Retry-After"]) >= 1


def test_who_is_blocked_is_not_listened_to_with_the_right_secret_either(api: httpx.Client) -> None:
    hook = {**HOOK, "name": "guessed"}
    assert api.post("/api/v1/triggers", json=hook).status_code == 201
    right = signed({"number": 7}, "d-1")
    wrong = {**right, "content": b"{}"}
    for _ in range(50):
        if api.post("/hooks/guessed", **wrong).status_code == 429:
            break
    assert api.post("/hooks/guessed", **right).status_code == 429
    other = api.post("/hooks/push", **signed({"number": 70}, "d-70"))
    assert other.status_code == 201, "who guesses at one webhook blocks no other"


def test_a_secret_that_is_not_here_is_told_in_the_log_and_not_to_the_sender(api: httpx.Client) -> None:
    api.post("/api/v1/triggers", json={**HOOK, "name": "lost", "webhook": {"secret": "secret:NOWHERE"}})
    answer = api.post("/hooks/lost", content=b"{}")
    assert answer.status_code == 503
    assert "NOWHERE" not in answer.text


def test_a_trigger_is_added_shown_paused_fired_and_removed(api: httpx.Client) -> None:
    nightly = {
        "name": "nightly",
        "workflow": "add",
        "cron": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "input": {"a": 1},
    }
    made = api.post("/api/v1/triggers", json=nightly)
    assert made.status_code == 201, made.text
    assert api.post("/api/v1/triggers", json=nightly).status_code == 200
    changed = api.post("/api/v1/triggers", json={**nightly, "cron": "0 3 * * *"}).json()
    assert (changed["version"], changed["kind"], len(changed["next"])) == (2, "cron", 5)
    assert len(api.get("/api/v1/triggers/nightly", params={"next": 3}).json()["next"]) == 3
    assert [each["version"] for each in api.get("/api/v1/triggers/nightly/versions").json()] == [1, 2]
    assert "nightly" in [each["name"] for each in api.get("/api/v1/triggers").json()["items"]]
    assert api.post("/api/v1/triggers/nightly/pause").json()["paused"] is True
    assert api.get("/api/v1/triggers/nightly").json()["next"] == []
    assert api.post("/api/v1/triggers/nightly/resume").json()["paused"] is False
    fired = api.post("/api/v1/triggers/nightly/fire", json={"key": "by-hand"})
    assert fired.status_code == 201
    assert fired.json() == {"run": "nightly:by-hand", "new": True}
    ended(api, "nightly:by-hand")
    again = api.post("/api/v1/triggers/nightly/fire", json={"key": "by-hand"})
    assert (again.status_code, again.json()) == (200, {"run": "nightly:by-hand", "new": False})
    assert api.delete("/api/v1/triggers/nightly").status_code == 204
    assert api.get("/api/v1/triggers/nightly").status_code == 404
    assert api.delete("/api/v1/triggers/nightly").status_code == 404


def test_a_server_with_a_runner_fires_schedules_and_backfills(api: httpx.Client) -> None:
    made = api.post("/api/v1/triggers", json={"name": "tick", "workflow": "add", "every": "1s", "input": {"a": 1}})
    assert made.status_code == 201
    day = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    hourly = {"name": "hourly", "workflow": "add", "cron": "0 */6 * * *", "input": {"a": 2}}
    assert api.post("/api/v1/triggers", json=hourly).status_code == 201
    times = api.post("/api/v1/triggers/hourly/backfill", json=day | {"dry_run": True}).json()["times"]
    assert times == [f"2026-01-01T{hour:02}:00:00Z" for hour in (0, 6, 12, 18)]
    assert api.post("/api/v1/triggers/hourly/backfill", json=day).status_code == 200
    deadline = time.monotonic() + 30
    ticks: list[Any] = []
    filled: list[Any] = []
    while len(ticks) < 2 or len(filled) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        ticks = api.get("/api/v1/runs", params={"tag": "trigger=tick", "status": "COMPLETED"}).json()["items"]
        filled = api.get("/api/v1/runs", params={"tag": "trigger=hourly"}).json()["items"]
    assert sorted(run["id"] for run in filled) == [f"hourly:{each}" for each in times]
    assert api.delete("/api/v1/triggers/tick").status_code == 204


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        "text",
        {"name": "x"},
        {"name": "x", "workflow": "add", "cron": "61 * * * *", "overlap": "maybe"},
        {"name": "x" * 200, "workflow": "add", "every": "1s"},
        {"name": "x", "workflow": "add", "every": "1s", "webhook": {}},
        {"name": "x", "workflow": "add", "webhook": {"secret": "written-into-it"}},
        {"name": "x", "workflow": "add", "cron": "0 0 * * *", "input": {"a": "{{ secrets }}"}},
        {"name": "x", "workflow": "add", "cron": "0 0 * * *", "input": {"a": "not a number"}},
    ],
    ids=range(10),
)
def test_what_is_no_trigger_is_refused_with_every_problem(api: httpx.Client, wrong: Any) -> None:
    answer = api.post("/api/v1/triggers", json=wrong)
    assert answer.status_code == 422, answer.text
    assert "written-into-it" not in answer.text


def test_a_trigger_cannot_name_code_that_is_not_registered(api: httpx.Client) -> None:
    """Whoever may write triggers must not choose among all that can be imported."""
    evil = {"name": "evil", "workflow": "os:system", "every": "1d", "input": {"command": "touch /tmp/never"}}
    assert api.post("/api/v1/triggers", json=evil).status_code == 201
    answer = api.post("/api/v1/triggers/evil/fire")
    assert answer.status_code == 422
    assert "not registered" in answer.json()["detail"]
    api.delete("/api/v1/triggers/evil")


def test_a_client_has_the_verbs_of_engine_triggers(server: Serving) -> None:
    with Client(server.url) as remote:
        trigger = Trigger("remote", "add", cron="0 6 * * *", input={"a": 4})
        assert remote.triggers.add(trigger, paused=True).paused
        assert remote.triggers.resume("remote").next_fires(2) == remote.triggers.get("remote").next_fires(2)
        assert "remote" in [each.name for each in remote.triggers.all()]
        assert remote.triggers.get("remote").trigger == trigger
        assert len(remote.triggers.versions("remote")) == 1
        run = remote.get(remote.triggers.fire("remote", key="one"))
        assert run.id == "remote:one"
        run.wait(30)
        day = 86_400 * 1_000_000
        start = 1_767_225_600 * 1_000_000
        assert remote.triggers.backfill("remote", start, start + 2 * day, dry_run=True) == [
            start + 6 * 3_600 * 1_000_000,
            start + day + 6 * 3_600 * 1_000_000,
        ]
        remote.triggers.remove("remote")
        with pytest.raises(StepwellError, match="no trigger 'remote'"):
            remote.triggers.get("remote")


def test_a_client_saves_a_document_and_its_triggers(server: Serving) -> None:
    nightly = {"name": "saved-nightly", "cron": "0 2 * * *", "input": {"a": 1}}
    with Client(server.url) as remote:
        remote.save(Document({**ADD, "name": "saved", "triggers": [nightly]}))
        assert remote.triggers.get("saved-nightly").to_dict()["declared_in"] == "document saved"
        remote.save(Document({**ADD, "name": "saved"}))
        assert "saved-nightly" not in [each.name for each in remote.triggers.all()]


def test_each_verb_needs_its_scope(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("scopes")
    with running(f"sqlite:///{folder}/server.db") as serving:
        store = serving.service.store
        by_scope = {scope: create_token(store, [scope])[0] for scope in ("read", "run", "author")}
        nightly = {"name": "nightly", "workflow": "add", "cron": "30 2 * * *"}
        with client(serving, by_scope["run"]) as api:
            assert api.post("/api/v1/triggers", json=nightly).status_code == 403
        with client(serving, by_scope["author"]) as api:
            assert api.post("/api/v1/triggers", json=nightly).status_code == 201
        with client(serving, by_scope["read"]) as api:
            assert api.get("/api/v1/triggers/nightly").status_code == 200
            assert api.post("/api/v1/triggers/nightly/pause").status_code == 403
        with client(serving, by_scope["run"]) as api:
            assert api.post("/api/v1/triggers/nightly/pause").status_code == 200
            assert api.delete("/api/v1/triggers/nightly").status_code == 403
