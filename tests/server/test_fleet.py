"""The three services as processes of their own, on PostgreSQL and on Redis, with Celery: the flow of the source document over
HTTP, a server that is killed in the middle of a stream, and triggers that two orchestrators fire."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from itertools import pairwise
from threading import Event, Thread
from typing import Any, ClassVar

import httpx
import pytest

from stepwell import Client, Document
from stepwell.triggers.times import moment
from tests.conformance.audit import audit
from tests.engine.waiting import eventually
from tests.server.test_flow import FLOW, Outside
from tests.server.test_killed import address_of
from tests.servers.fleet import Fleet, Service
from tests.servers.redis_server import RedisServer

SECONDS = 60.0
ENVIRONMENT = {"STEPWELL_PRIVATE_NETWORKS": "127.0.0.0/8", "STEPWELL_LEASE_SECONDS": "5"}
TICK = {
    "name": "tick",
    "triggers": [{"name": "tick", "every": "1s", "catch_up": "all", "input": {"time": "{{ fire.time }}"}}],
    "nodes": [{"id": "a", "handler": "transform", "config": {"template": "{{ input.time }}"}}],
}


@dataclass
class Site:
    fleet: Fleet
    server: Service
    orchestrators: list[Service]

    def serve(self, port: int = 0) -> None:
        self.server = self.fleet.start("serve", "--no-runner", "--port", port, **ENVIRONMENT)

    def address(self) -> str:
        return address_of(self.server)


@pytest.fixture(scope="module", params=["postgres", "redis"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server, two orchestrators and a worker: all of them start at once. A trigger fires all the time."""
    redis = RedisServer()
    store = (
        request.getfixturevalue("postgres").new_url() if request.param == "postgres" else f"{redis.url}?namespace=site"
    )
    fleet = Fleet(store, redis.url.removesuffix("/0") + "/1", tmp_path_factory.mktemp("site"))
    try:
        worker = fleet.start("worker", "-c", 1, "--name", "w@%h", **ENVIRONMENT)
        orchestrators = [fleet.start("orchestrator", **ENVIRONMENT) for _ in range(2)]
        site = Site(fleet, worker, orchestrators)
        site.serve()
        assert httpx.post(f"{site.address()}/api/v1/workflows", json=TICK, timeout=SECONDS).status_code == 201
        fleet.wait_for_workers(worker, set(), 1)
        yield site
    finally:
        fleet.close()
        redis.stop()


class Holding(Outside):
    """Answers `/hold` only when it is told to."""

    asked: ClassVar[list[str]] = []
    go_on = Event()

    def do_GET(self) -> None:
        if self.path == "/hold":
            assert self.go_on.wait(SECONDS)
        super().do_GET()


@pytest.fixture
def outside() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Holding)
    Holding.asked.clear()
    Holding.delivers = False
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_document_is_saved_started_followed_retried_and_read(site: Site, outside: str) -> None:
    with httpx.Client(base_url=f"{site.address()}/api/v1", timeout=SECONDS) as api, Client(site.address()) as client:
        assert api.post("/workflows", json=FLOW).status_code == 201
        asked = {"json": {"input": {"url": outside}}, "headers": {"Idempotency-Key": "one"}}
        answers = [api.post("/workflows/summarise/runs", **asked) for _ in range(2)]  # type: ignore[arg-type]
        assert [answer.status_code for answer in answers] == [201, 200]
        (run,) = {answer.json()["id"] for answer in answers}
        seqs: list[int] = []
        last = None
        for event in client.events(run):
            if event.kind == "journal":
                last = event.id
                seqs.append(event.data["seq"])
                if event.data["kind"] == "run" and event.data["status"] == "FAILED":
                    break
        assert Holding.asked == ["/text", "/deliver"]
        assert "500" in api.get(f"/runs/{run}/why").json()["text"]
        Holding.delivers = True
        dry = api.post(f"/runs/{run}/retry", json={"dry_run": True}).json()
        assert [node["id"] for node in dry["nodes"]] == ["deliver"]
        assert api.post(f"/runs/{run}/retry").status_code == 200
        for event in client.events(run, last):
            seqs.append(event.data["seq"])
            if event.data["kind"] == "run" and event.data["status"] == "COMPLETED":
                break
        assert seqs == list(range(1, len(seqs) + 1))  # each entry once, over both streams
        assert Holding.asked == ["/text", "/deliver", "/deliver"]  # only what failed
        node = api.get(f"/runs/{run}/nodes/deliver").json()
        assert [attempt["status"] for attempt in node["attempt_list"]] == ["FAILED", "COMPLETED"]
        assert node["attempt_list"][1]["config"]["url"] == f"{outside}/deliver?size=200"
        assert api.get(f"/runs/{run}/results").json()["result"]["status_code"] == 200
        assert api.get(f"/runs/{run}/audit").json()["problems"] == []


def test_a_server_that_is_killed_in_the_middle_of_a_stream_is_resumed_without_gap_or_repeat(
    site: Site, outside: str
) -> None:
    """The client is told nothing: it goes on by itself when a server is at that address again."""
    address = site.address()
    nodes: list[dict[str, Any]] = [
        {"id": "before", "handler": "transform", "config": {"template": 1}},
        {"id": "hold", "handler": "http_request", "config": {"url": f"{outside}/hold"}, "dependencies": ["before"]},
        {"id": "after", "handler": "transform", "config": {"template": 2}, "dependencies": ["hold"]},
    ]
    Holding.go_on.clear()
    Holding.delivers = True
    with Client(address) as client:
        run = client.start(Document({"name": "held", "nodes": nodes}))
        seqs: list[int] = []
        for event in client.events(run):
            assert event.kind == "journal"
            seqs.append(event.data["seq"])
            if event.data["node"] == "hold" and not Holding.go_on.is_set():
                site.server.kill()
                Holding.go_on.set()  # so the rest happens while nobody serves
                site.serve(int(address.rpartition(":")[2]))
            if event.data["kind"] == "run" and event.data["status"] == "COMPLETED":
                break
        assert run.status == "COMPLETED"
        assert seqs == list(range(1, run.row.seq + 1))


def test_each_time_of_a_trigger_fires_once_with_two_orchestrators_of_which_one_is_killed(site: Site) -> None:
    with httpx.Client(base_url=f"{site.address()}/api/v1", timeout=SECONDS) as api, Client(site.address()) as client:

        def completed() -> list[dict[str, Any]]:
            asked = {"tag": "trigger=tick", "status": "COMPLETED", "limit": 1000}
            found: list[dict[str, Any]] = api.get("/runs", params=asked).json()["items"]
            return found

        eventually(lambda: len(completed()) >= 2, seconds=SECONDS)
        site.orchestrators[0].kill()
        before = len(completed())
        eventually(lambda: len(completed()) >= before + 2, seconds=SECONDS)
        assert api.post("/triggers/tick/pause").status_code == 200
        # One that was due just before may be started just after.
        eventually(lambda: api.get("/triggers/tick").json()["fired"] == len(completed()), seconds=SECONDS)
        runs = completed()
        times = sorted(moment(run["id"].partition(":")[2]) or 0 for run in runs)
        assert {later - sooner for sooner, later in pairwise(times)} == {1_000_000}
        assert api.get("/triggers/tick").json()["fired"] == len(times)
        assert all(run.status.terminal for run in client.runs(tag={"trigger": "tick"}))
        for run in runs:
            stored = client.get(run["id"])
            assert stored.output("a") == {"result": run["id"].partition(":")[2]}
            assert len(stored.node("a").attempts) == 1
        assert site.orchestrators[1].end(signal.SIGTERM, SECONDS) == 0
    with site.fleet.engine() as engine:
        audit(engine.store)
