"""Connections: there are never so many that a server runs out of files, and none stays that sends half a request."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from stepwell.server import protocol
from stepwell.server.serving import Serving
from tests.engine.waiting import eventually
from tests.server.running import ADD, client, running

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with running(f"sqlite:///{tmp_path}/connections.db") as found:
        yield found


@contextlib.contextmanager
def connected(serving: Serving) -> Iterator[socket.socket]:
    address = urlsplit(serving.url)
    with socket.create_connection((address.hostname, address.port), 30) as connection:
        yield connection


def test_more_connections_than_there_may_be_are_refused_and_the_others_go_on(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(protocol, "max_connections", lambda: 20)
    with contextlib.ExitStack() as stack:
        there = [stack.enter_context(connected(serving)) for _ in range(20)]
        for _ in range(100):
            with connected(serving) as refused:
                assert refused.recv(1_000).startswith(b"HTTP/1.1 503 ")
                assert refused.recv(1_000) == b""
        there[0].sendall(HEALTH)
        assert there[0].recv(1_000).startswith(b"HTTP/1.1 200 ")
    with client(serving) as api:
        eventually(lambda: api.get("/healthz").status_code == 200)
    assert caplog.messages == []


def test_a_server_at_the_limit_of_its_files_accepts_commits_and_logs_nothing(tmp_path: Path) -> None:
    log, limit = tmp_path / "log", 300
    command = f"ulimit -n {limit} && exec {sys.executable} -m stepwell serve --port 0"
    environment = {**os.environ, "STEPWELL_STORE": f"sqlite:///{tmp_path}/runs.db"}
    with log.open("wb") as file, contextlib.ExitStack() as stack:
        server = subprocess.Popen(["bash", "-c", command], stdout=file, stderr=file, env=environment)
        stack.callback(server.wait, 30)
        stack.callback(server.terminate)
        eventually(lambda: re.search(r"at (http://\S+:\d+)", log.read_text()), show=log.read_text)
        said = log.read_text()
        (address,) = re.findall(r"at (http://\S+:\d+)", said)
        with httpx.Client(base_url=address, timeout=30) as api:
            assert api.get("/healthz").status_code == 200
            parts = urlsplit(address)
            for _ in range(2 * limit):
                connection = stack.enter_context(socket.create_connection((parts.hostname, parts.port), 30))
                connection.sendall(HEALTH[:20])
            body = {"document": ADD, "input": {"a": 1}, "run_id": "told"}
            assert api.post("/api/v1/runs", json=body).status_code == 201
            assert api.get("/readyz").status_code == 200
    assert log.read_text() == said


@pytest.mark.parametrize(
    ("files", "connections"), [(100, 50), (512, 384), (1_024, 896), (protocol.resource.RLIM_INFINITY, 2**20)]
)
def test_connections_leave_files_to_the_store(files: int, connections: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol.resource, "getrlimit", lambda _: (files, files))
    assert protocol.max_connections() == connections


@pytest.mark.parametrize(
    ("begins", "statuses"),
    [
        (b"", []),
        (b"GET /healthz HTTP/1.1\r\nHo", [b"408"]),
        (HEALTH + b"GET /healthz HTTP/1.1\r\nHo", [b"200", b"408"]),
        (b"POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", []),
        (b"POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", []),
    ],
)
def test_a_request_of_which_the_rest_does_not_come_is_given_up(
    serving: Serving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    begins: bytes,
    statuses: list[bytes],
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.4)
    with connected(serving) as connection:
        connection.sendall(begins)
        received = b""
        while piece := connection.recv(1_000):
            received += piece
    assert re.findall(rb"HTTP/1\.1 (\d+)", received) == statuses
    assert caplog.messages == []


def test_what_comes_in_time_and_what_waits_for_an_answer_is_not_given_up(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many requests on one connection, each slow, and a stream."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.5)
    with connected(serving) as connection, client(serving) as api, api.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        for _ in range(4):
            for part in (HEALTH[:20], HEALTH[20:]):
                connection.sendall(part)
                time.sleep(0.2)
            assert connection.recv(1_000).startswith(b"HTTP/1.1 200 ")
        assert next(lines) == "retry: 2000"
        run = {"document": ADD, "input": {"a": 1}, "run_id": "told"}
        with client(serving) as other:
            assert other.post("/api/v1/runs", json=run).status_code == 201
        assert any('"told"' in line for line in lines)
