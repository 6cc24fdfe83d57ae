"""Streams: what happens is told once, in order, without a gap, also to who was away, is slow, or goes."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from stepwell import Builder, Engine
from stepwell.server.access.tokens import create_token, revoke_token
from stepwell.server.api import events
from stepwell.server.serving import Serving
from stepwell.server.streams import feed
from stepwell.server.streams.sse import HEARTBEAT
from tests.server.running import ADD, SECONDS, client, ended, running

RUNS = "/api/v1/runs"


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, str | None, Any]]:
    """(kind, id, data) of each event; heartbeats are ("", None, None)."""
    found: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            yield "", None, None
        elif line:
            name, _, value = line.partition(": ")
            found[name] = value
        elif "data" in found:
            yield found["event"], found.get("id"), json.loads(found["data"])
            found = {}


def follow(api: httpx.Client, run: str, after: str | None = None, **params: Any) -> list[tuple[str, str | None, Any]]:
    headers = {} if after is None else {"Last-Event-ID": after}
    with api.stream("GET", f"{RUNS}/{run}/events", params={"until": "ended", **params}, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
        return list(events_of(stream.iter_lines()))


def start(api: httpx.Client, **more: Any) -> str:
    run: str = api.post("/api/v1/workflows/add/runs", json={"input": {"a": 1}, **more}).json()["id"]
    return run


def test_a_run_is_told_entry_by_entry_and_again_from_anywhere(api: httpx.Client) -> None:
    run = start(api)
    told = follow(api, run)
    assert told[-1][0] == "end"
    assert told[-1][2]["status"] == "COMPLETED"
    numbers = [data["seq"] for kind, _, data in told if kind == "journal"]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [place for kind, place, _ in told if kind == "journal"] == list(map(str, numbers))
    for after in range(len(numbers) + 1):
        rest = follow(api, run, str(after))
        assert [data["seq"] for kind, _, data in rest if kind == "journal"] == numbers[after:]
    with api.stream("GET", f"{RUNS}/{run}/events", params={"until": "ended", "after": 2}) as stream:
        rest = list(events_of(stream.iter_lines()))
    assert [data["seq"] for kind, _, data in rest if kind == "journal"] == numbers[2:]


def test_a_place_that_the_run_never_had_begins_anew(api: httpx.Client) -> None:
    run = start(api)
    ended(api, run)
    told = follow(api, run, "1000")
    assert told[0][0] == "reset"
    assert next(data["seq"] for kind, _, data in told if kind == "journal") == 1
    for wrong in ("x", "-1", "1.5", "9" * 30):
        answer = api.get(f"{RUNS}/{run}/events", params={"until": "ended"}, headers={"Last-Event-ID": wrong})
        assert answer.status_code == 400
    assert api.get(f"{RUNS}/nobody/events").status_code == 404


def test_all_runs_are_told_and_what_was_missed_is_told_again(api: httpx.Client) -> None:
    with api.stream("GET", "/api/v1/events") as stream:
        lines = events_of(stream.iter_lines())
        run = start(api)
        last = "0"
        for kind, place, data in lines:
            if kind == "run" and data["id"] == run:
                last = place or ""
                if data["status"] == "COMPLETED":
                    break
    missed = start(api)
    ended(api, missed)
    with api.stream("GET", "/api/v1/events", headers={"Last-Event-ID": last}) as stream:
        for kind, _, data in events_of(stream.iter_lines()):
            assert kind != "reset"
            if kind == "run" and data["id"] == missed and data["status"] == "COMPLETED":
                break
    for gone in ("1", "9" * 17):
        with api.stream("GET", "/api/v1/events", headers={"Last-Event-ID": gone}) as stream:
            assert next(events_of(stream.iter_lines()))[0] == "reset"


def test_lines_of_a_log_are_followed(tmp_path: Path) -> None:
    builder = Builder("says")
    builder.node("first", job="tests.server.test_events:say_something")
    with running(f"sqlite:///{tmp_path}/log.db") as serving, client(serving) as api:
        with Engine(f"sqlite:///{tmp_path}/log.db") as engine:
            run = engine.start(builder)
            told: list[Any] = []
            with api.stream("GET", f"{RUNS}/{run.id}/logs/events", params={"until": "ended"}) as stream:
                told = [data for kind, _, data in events_of(stream.iter_lines()) if kind == "log"]
        assert [line["message"] for line in told] == ["one", "two"]
        listed = api.get(f"{RUNS}/{run.id}/logs", params={"limit": 1}).json()
        assert [line["message"] for line in listed["items"]] == ["one"]
        rest = api.get(f"{RUNS}/{run.id}/logs", params={"cursor": listed["next"]}).json()
        assert [line["message"] for line in rest["items"]] == ["two"]


def say_something() -> None:
    print("one")
    time.sleep(0.4)
    print("two")


def test_what_another_process_does_is_told(tmp_path: Path) -> None:
    """The engine is another one, with a store of its own on the same file."""
    url = f"sqlite:///{tmp_path}/other.db"
    builder = Builder("chain")
    for place in range(20):
        builder.node(f"n{place}", job="tests.server.test_events:nothing")
    with running(url) as serving, client(serving) as api, Engine(url) as engine:
        run = engine.start(builder)
        told = follow(api, run.id)
        assert [data["seq"] for kind, _, data in told if kind == "journal"] == list(range(1, run.row.seq + 1))


def nothing() -> None:
    pass


def test_quiet_streams_have_heartbeats_and_end_with_their_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(events, "TOKEN_SECONDS", 0.1)
    with running(f"sqlite:///{tmp_path}/quiet.db") as serving:
        text, token = create_token(serving.service.store, ["read"])
        with client(serving, text) as api, api.stream("GET", "/api/v1/events") as stream:
            lines = stream.iter_lines()
            for line in lines:
                if line == HEARTBEAT.decode().strip():
                    break
            revoke_token(serving.service.store, token.id)
            assert all(not line or line.startswith(":") for line in lines)  # and then it ends
        wait_until(lambda: serving.service.feed.streams == 0)


def test_busy_streams_end_with_their_token_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "TOKEN_SECONDS", 0.1)
    url = f"sqlite:///{tmp_path}/busy.db"
    builder = Builder("one")
    builder.node("one", job=nothing)
    with running(url) as serving, Engine(url, runner=None) as engine:
        text, token = create_token(serving.service.store, ["read"])
        over = threading.Event()

        def keep_busy() -> None:
            while not over.wait(0.02):
                engine.start(builder)

        busy = threading.Thread(target=keep_busy)
        busy.start()
        try:
            with client(serving, text) as api, api.stream("GET", "/api/v1/events") as stream:
                told = events_of(stream.iter_lines())
                assert next(told)[0] == "run"
                revoke_token(serving.service.store, token.id)
                until = time.monotonic() + SECONDS
                for _ in told:
                    assert time.monotonic() < until, "the stream goes on with a token that was revoked"
        finally:
            over.set()
            busy.join()


def wait_until(condition: Any) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_clients_that_do_not_read_or_vanish_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MAX_WAITING", 50)
    url = f"sqlite:///{tmp_path}/slow.db"
    with running(url) as serving, client(serving) as api, Engine(url) as engine:
        builder = Builder("wide")
        builder.fan_out(range(600), job="tests.server.test_events:nothing_of", name=lambda n: f"n{n}")
        run = engine.start(builder, run_id="wide")
        address = urlsplit(serving.url)
        slow = []
        for _ in range(5):
            connection = socket.create_connection((address.hostname, address.port), SECONDS)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET {RUNS}/wide/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            slow.append(connection)
        told = follow(api, run.id)
        assert [data["seq"] for kind, _, data in told if kind == "journal"] == list(range(1, run.row.seq + 1))
        assert all(len(watcher.waiting) <= 50 for watcher in list(serving.service.feed._watchers))
        for connection in slow:
            connection.close()
        wait_until(lambda: serving.service.feed.streams == 0)


def nothing_of(item: int) -> None:
    pass


def test_streams_end_when_the_server_does(tmp_path: Path) -> None:
    ends: list[float] = []
    with running(f"sqlite:///{tmp_path}/ends.db") as serving:

        def listen() -> None:
            with client(serving) as api, api.stream("GET", "/api/v1/events") as stream:
                for _ in stream.iter_lines():
                    pass
            ends.append(time.monotonic())

        threads = [threading.Thread(target=listen) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: serving.service.feed.streams == 3)
    for thread in threads:
        thread.join(SECONDS)
    assert len(ends) == 3


def test_no_more_streams_than_allowed_however_many_begin_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MAX_STREAMS", 5)
    with running(f"sqlite:///{tmp_path}/many.db") as serving, client(serving) as api:
        assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        run = start(api)
        statuses: list[int] = []
        over = threading.Event()

        def listen(path: str) -> None:
            with client(serving) as own, own.stream("GET", f"/api/v1{path}") as stream:
                statuses.append(stream.status_code)
                over.wait(SECONDS)

        paths = ("/events", f"/runs/{run}/events", f"/runs/{run}/logs/events")
        threads = [threading.Thread(target=listen, args=(path,)) for path in paths * 8]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(statuses) == len(threads))
        assert (statuses.count(200), statuses.count(503)) == (5, 19)
        over.set()
        for thread in threads:
            thread.join(SECONDS)
        wait_until(lambda: serving.service.feed.streams == 0)
        assert api.get("/api/v1/runs/nobody/events").status_code == 404
        assert serving.service.feed.streams == 0


def test_no_more_streams_than_allowed(server: Serving, api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MAX_STREAMS", 0)
    run = start(api)
    with api.stream("GET", f"{RUNS}/{run}/events") as stream:
        assert stream.status_code == 503
