"""A server whose threads are all busy with what clients wrote: it answers who needs none of them, and it ends."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import BaseModel, field_validator

from stepwell import Context, Handlers, handler
from stepwell.server import threads
from stepwell.server.access.tokens import create_token
from stepwell.server.serving import CLOSE_SECONDS
from stepwell.stores import open_store
from tests.engine.waiting import eventually
from tests.server.running import ADD, client, running
from tests.server.test_killed import address_of
from tests.servers.fleet import Fleet

REQUESTS = 45
"""More than the threads that a server has for requests if it does not tell them apart."""
AT_ONCE = 2.0
"""Seconds in which a busy machine answers what waits for nothing."""


class Slow(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def check_for_minutes(cls, text: str) -> str:
        print("checking", flush=True)
        time.sleep(300)
        return text


@handler("slow")
def slow(ctx: Context, config: Slow) -> dict[str, Any]:
    return {}


class Held(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def check_until_released(cls, text: str) -> str:
        assert released.wait(60)
        return text


@handler("held")
def held(ctx: Context, config: Held) -> dict[str, Any]:
    return {}


released = threading.Event()
DOCUMENT = {"name": "slow", "nodes": [{"id": "a", "handler": "slow", "config": {"text": "x"}}]}


def send(address: str, token: str, path: str, body: dict[str, Any]) -> socket.socket:
    """Send a request, whose answer nobody waits for."""
    parts, data = urlsplit(address), json.dumps(body).encode()
    assert parts.hostname is not None
    connection = socket.create_connection((parts.hostname, parts.port or 80))
    head = f"POST /api/v1{path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    connection.sendall((head + kind).encode() + data)
    return connection


def test_slow_checks_keep_no_server_from_other_callers_nor_from_its_end(tmp_path: Path) -> None:
    fleet = Fleet(f"sqlite:///{tmp_path}/runs.db", "", tmp_path)
    store = open_store(fleet.store)
    author, reader = (create_token(store, [scope])[0] for scope in ("author", "read"))
    store.close()
    server = fleet.start("serve", "--port", 0, "--no-runner", STEPWELL_HANDLERS=__name__)
    try:
        address = address_of(server)
        asked = [("/workflows/check", DOCUMENT), ("/runs", {"document": DOCUMENT}), ("/workflows", DOCUMENT)]
        connections = [send(address, author, *asked[number % 3]) for number in range(REQUESTS)]
        eventually(lambda: server.said.count("checking") >= 2)
        for path, token, status in (
            ("/healthz", "", 200),
            ("/readyz", "", 200),
            ("/api/v1/session", reader, 200),
            ("/api/v1/runs", reader, 200),
            ("/api/v1/session", "sw_unknown", 401),
        ):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = httpx.get(address + path, headers=headers, timeout=AT_ONCE)
            assert answer.status_code == status, (path, answer.text)
        began = time.monotonic()
        assert server.end(seconds=60) == 0
        assert time.monotonic() - began < CLOSE_SECONDS + 5
        for connection in connections:
            with connection:
                answer_bytes = connection.recv(65_536)
            assert answer_bytes.startswith(b"HTTP/1.1 503 "), answer_bytes
            assert b"the server is closing" in answer_bytes or b"take long to check" in answer_bytes
    finally:
        fleet.close()
    assert "Traceback" not in server.said


def test_checks_that_are_stuck_keep_nobody_from_having_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are given up, replaced, and in the end refused; when they end after all, everything is as before."""
    monkeypatch.setattr(threads, "LONG_SECONDS", 0.1)
    monkeypatch.setattr(threads, "CHECK_SECONDS", 0.5)
    monkeypatch.setattr(threads, "MAX_LONG_CHECKS", 3)
    check, usual = "/api/v1/workflows/check", threads.THREADS["check"]
    stuck = {"name": "stuck", "nodes": [{"id": "a", "handler": "held", "config": {"text": "x"}}]}
    released.clear()
    with running(f"sqlite:///{tmp_path}/runs.db", handlers=Handlers([held])) as serving, client(serving) as api:
        started = api.post("/api/v1/runs", json={"document": ADD, "input": {"a": 1}, "run_id": "r"})
        assert started.status_code == 201
        with ThreadPoolExecutor(usual) as clients:
            answers = list(clients.map(lambda path: api.post(path, json=stuck), [check, "/api/v1/workflows"]))
        for answer in answers:
            assert answer.status_code == 422
            assert "takes longer than 0.5 s" in answer.json()["detail"]
        assert api.post(check, json=ADD).json()["valid"]
        assert api.post("/api/v1/runs", json={"document": stuck}).status_code == 422
        refused = api.post(check, json=ADD)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        assert "3 documents" in refused.json()["detail"]
        assert api.get("/api/v1/runs/r").status_code == 200
        released.set()
        eventually(lambda: api.post(check, json=ADD).status_code == 200)
        assert api.post(check, json=stuck).json()["valid"]
        assert [each["name"] for each in api.get("/api/v1/workflows").json()["items"]] == [], "nothing was saved"
        eventually(lambda: [each.name for each in threading.enumerate()].count("stepwell-check") == usual)


def test_a_check_that_waits_behind_stuck_ones_begins_when_they_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "LONG_SECONDS", 0.2)
    stuck = {"name": "stuck", "nodes": [{"id": "a", "handler": "held", "config": {"text": "x"}}]}
    released.clear()
    with (
        running(f"sqlite:///{tmp_path}/runs.db", handlers=Handlers([held])) as serving,
        client(serving) as api,
        ThreadPoolExecutor(5) as clients,
    ):
        waiting = [clients.submit(api.post, "/api/v1/workflows/check", json=stuck) for _ in range(5)]
        eventually(lambda: [each.name for each in threading.enumerate()].count("stepwell-check") > 5)
        assert api.post("/api/v1/workflows/check", json=ADD).json()["valid"]
        released.set()
        assert [each.result().json()["valid"] for each in waiting] == [True] * 5
