"""docs/http.md, docs/postgres.md and docs/deploy.md: their commands are typed to real servers, services and workers."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from stepwell import Engine
from tests.docs.terminal import Terminal, forget, start
from tests.postgres_server import PostgresServer
from tests.server.running import running
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

SHOP = """
from stepwell import Workflow, step

class OrderWorkflow(Workflow):
    order_id: int
    @step
    def charge(self) -> int: return self.order_id
    @step(retry=2)
    def ship(self, charge: int) -> str: return f"shipped {charge}"
"""
SUMMARISE = {
    "name": "summarise",
    "nodes": [{"id": "name", "handler": "transform", "config": {"template": "{{ input.url }}"}}],
}


@pytest.fixture
def shop(terminal: Terminal) -> Iterator[ModuleType]:
    forget("shop")
    Path("shop").mkdir()
    Path("shop/__init__.py").touch()
    Path("shop/workflows.py").write_text(SHOP, encoding="utf-8")
    yield importlib.import_module("shop.workflows")
    forget("shop")


class Curl:
    """Does what `curl` does with the options that the page uses: a machine that tests need not have it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.run = ""

    def __call__(self, typed: str) -> str:
        words = iter(shlex.split(typed)[1:])
        method, headers, body, address, streams = "GET", {}, b"", "", False
        for word in words:
            if word == "-X":
                method = next(words)
            elif word == "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            elif word == "-d":
                given = next(words)
                body = Path(given[1:]).read_bytes() if given.startswith("@") else given.encode()
            elif word == "-N":
                streams = True
            else:
                address = word
        address = address.replace("localhost:8765", self._url).replace("/RUN/", f"/{self.run}/")
        if streams:
            return self._read_until_completed(address)
        answer = httpx.request(method, address, headers=headers, content=body, timeout=60)
        assert answer.status_code == 201, answer.text
        self.run = answer.json().get("id", "")
        return answer.text

    @staticmethod
    def _read_until_completed(address: str) -> str:
        with httpx.stream("GET", address, timeout=60) as stream:
            for line in stream.iter_lines():
                if "COMPLETED" in line:
                    return line
        raise AssertionError("the stream has ended")


@cache
def serve_and_end(typed: str, *more: str) -> str:
    """What a command that serves prints until it says where, and that Ctrl-C ends it."""
    server = start(*shlex.split(typed)[1:], *more)
    try:
        assert server.stdout is not None
        told = next((line for line in server.stdout if re.search(r"http://127\.0\.0\.1:\d+", line)), "")
        assert told, typed
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
        assert server.returncode == 0, typed
    finally:
        server.kill()
    return told


def test_ui(terminal: Terminal, shop: ModuleType, tmp_path: Path) -> None:
    with Engine() as engine:
        engine.run(shop.OrderWorkflow(order_id=7), run_id="order-7")
    with running(f"sqlite:///{Path.cwd()}/.stepwell/stepwell.db") as server:
        terminal.instead = {
            "stepwell serve": lambda typed: serve_and_end(typed, "--port", "0"),
            "stepwell demo": lambda typed: serve_and_end(typed, "--no-browser"),
            "stepwell ui": lambda typed: serve_and_end(typed, "--no-browser"),
            f"stepwell ui order-7 --server {server.url}": lambda typed: start(
                *shlex.split(typed)[1:], "--no-browser"
            ).communicate(timeout=60)[0],
        }
        terminal.instead = dict(sorted(terminal.instead.items(), reverse=True))  # the longest beginning first
        opening, below = terminal.open("ui.md")
        terminal.type(opening, replace={"https://stepwell.example.com": server.url})
        assert terminal.told == f"{server.url}/runs/order-7\n"
        terminal.type(below)
        terminal.close()
        (seeing,) = terminal.open("README.md")
        terminal.type(seeing)


@pytest.mark.usefixtures("shop")
def test_http(terminal: Terminal) -> None:
    serving, asking = terminal.open("http.md")
    Path("summarise.json").write_text(json.dumps(SUMMARISE), encoding="utf-8")
    servers: list[subprocess.Popen[str]] = []

    def serve(typed: str) -> str:
        server = start(*shlex.split(typed)[1:], "--port", "0")
        servers.append(server)
        assert server.stdout is not None
        said = told = ""
        for told in server.stdout:  # until it serves, or has ended
            said += told
            if "serving" in told:
                break
        url = re.search(r"http://127\.0\.0\.1:\d+", told)
        assert url, said
        terminal.instead["curl"] = Curl(url[0])
        return told.replace(url[0], "http://127.0.0.1:8765").replace(str(terminal.folder), "/srv")

    terminal.instead["stepwell serve"] = serve
    try:
        terminal.type(serving)
        terminal.type(asking)
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def test_postgres(terminal: Terminal, shop: ModuleType, postgres: PostgresServer) -> None:
    with Engine("sqlite:///stepwell.db") as engine:
        for run in engine.start_many(shop.OrderWorkflow(order_id=number) for number in range(5)):
            run.wait(60)
    with Engine("sqlite:///stepwell.db", runner=None) as engine:
        engine.start_many(shop.OrderWorkflow(order_id=number) for number in range(3))
    (block,) = terminal.open("postgres.md")
    url = postgres.new_url()
    terminal.type(block, replace={"postgresql://me@db.example/app": f"'{url}'"})
    with Engine(url, workflows=[shop.OrderWorkflow]) as engine:
        assert [run.wait(60).status for run in engine.runs()] == 8 * ["COMPLETED"]


def test_deploy(
    terminal: Terminal,
    shop: ModuleType,
    postgres: PostgresServer,
    redis_server: RedisServer,
) -> None:
    fleet = Fleet(postgres.new_url(), redis_server.url.removesuffix("/0") + "/7", terminal.folder)

    def service(typed: str) -> None:
        assert typed.endswith(" &")
        fleet.start(*shlex.split(typed.removesuffix(" &"))[1:], PYTHONPATH=str(terminal.folder))

    terminal.instead = {"export": lambda _: "", "stepwell worker": service, "stepwell orchestrator": service}
    (block,) = terminal.open("deploy.md")
    try:
        terminal.type(block)
        with fleet.engine() as engine:
            run = engine.start(shop.OrderWorkflow(order_id=7))
            assert run.wait(100).result == "shipped 7", [service.said for service in fleet.services]
        assert all(service.alive() for service in fleet.services)
    finally:
        fleet.close()
