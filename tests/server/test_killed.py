"""Two servers on one file, of which the one that works is killed while clients follow a run and start others.

The stream goes on without a gap or a repeat, and a key is one run, whichever server it was sent to and however often.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Engine
from tests.conformance.audit import audit
from tests.engine.waiting import eventually
from tests.server.running import ADD, SECONDS
from tests.server.test_events import events_of
from tests.servers.fleet import Fleet, Service

CHAIN = {
    "version": 1,
    "nodes": {
        f"n{place}": {
            "name": f"n{place}",
            "job": "tests.server.test_killed:a_while",
            "depends_on": [f"n{place - 1}"] if place else [],
            "position": place,
        }
        for place in range(8)
    },
}


def a_while() -> None:
    time.sleep(0.1)


class Starter(threading.Thread):
    """Starts runs under keys, each asked for until it is answered, now of one server and now of the other."""

    def __init__(self, who: int, addresses: list[str], enough: threading.Event) -> None:
        super().__init__(daemon=True)
        self._who, self._enough = who, enough
        self._apis = [httpx.Client(base_url=f"{address}/api/v1", timeout=SECONDS) for address in addresses]
        self.runs: dict[str, set[str]] = {}
        self.broken = 0

    def run(self) -> None:
        number = 0
        while not self._enough.is_set():
            number += 1
            key = f"{self._who}-{number}"
            self.runs[key] = set()
            for server in range(number, number + 2 if number % 3 == 0 else number + 1):  # some of both
                while not self._ask(server, key):
                    time.sleep(0.02)
            time.sleep(0.02)
        for api in self._apis:
            api.close()

    def _ask(self, server: int, key: str) -> bool:
        try:
            answer = self._apis[server % 2].post(
                "/workflows/add/runs", json={"input": {"a": len(key)}}, headers={"Idempotency-Key": key}
            )
        except httpx.TransportError:  # the answer is lost: what was done is not known
            self.broken += 1
            return False
        assert answer.status_code in (200, 201), answer.text
        self.runs[key].add(answer.json()["id"])
        return True


def test_a_killed_server_loses_no_entry_of_a_stream_and_starts_no_run_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/killed.db"
    fleet = Fleet(url, "", tmp_path)
    works = fleet.start("serve", "tests.server.test_killed", "--port", 0)
    addresses = [address_of(each) for each in (works, fleet.start("serve", "--no-runner", "--port", 0))]
    enough = threading.Event()
    starters = [Starter(who, addresses, enough) for who in range(3)]
    try:
        with httpx.Client(base_url=f"{addresses[0]}/api/v1", timeout=SECONDS) as api:
            assert api.post("/workflows", json=ADD).status_code == 201
            chain = {"graph": CHAIN, "workflow": "slow chain", "run_id": "chain"}
            assert api.post("/runs", json=chain).status_code == 201
        for starter in starters:
            starter.start()
        seqs: list[int] = []
        status, deaths = None, 0
        while status is None:
            for kind, _, data in until_it_breaks(addresses[0], seqs[-1] if seqs else 0):
                if kind == "journal":
                    seqs.append(data["seq"])
                    if deaths == 0 and len(seqs) >= 6:
                        deaths += 1
                        works.kill()
                        port = addresses[0].rpartition(":")[2]
                        works = fleet.start("serve", "tests.server.test_killed", "--port", port)
                elif kind == "end":
                    status = data["status"]
            assert address_of(works) == addresses[0]
        enough.set()
        for starter in starters:
            starter.join(SECONDS)
        keys = {key: ids for starter in starters for key, ids in starter.runs.items()}
        assert (deaths, status) == (1, "COMPLETED")
        assert sum(starter.broken for starter in starters) > 0, "nobody was asked while it was away"
        assert all(len(ids) == 1 for ids in keys.values()), keys
        with Engine(url, runner=None) as engine:
            assert seqs == list(range(1, engine.get("chain").row.seq + 1))
            eventually(
                lambda: all(run.status.terminal for run in engine.runs(workflow="add", limit=10_000)), seconds=60
            )
            runs = engine.runs(workflow="add", limit=10_000)
            assert {run.row.idempotency_key: run.id for run in runs} == {
                key: next(iter(ids)) for key, ids in keys.items()
            }
            assert {run.status for run in runs} == {"COMPLETED"}
            audit(engine.store)
    finally:
        enough.set()
        fleet.close()


def address_of(server: Service) -> str:
    """Where it is, once it answers."""
    eventually(lambda: " at http" in server.said or not server.alive(), seconds=60)
    assert server.alive(), server.said
    return server.said.partition(" at ")[2].partition(",")[0]


def until_it_breaks(address: str, after: int) -> Iterator[tuple[str, str | None, Any]]:
    try:
        with httpx.Client(base_url=address, timeout=SECONDS) as api:
            path, headers = "/api/v1/runs/chain/events", {"Last-Event-ID": str(after)}
            with api.stream("GET", path, params={"until": "ended"}, headers=headers) as stream:
                yield from events_of(stream.iter_lines())
    except httpx.TransportError:
        return


@pytest.mark.parametrize("signals", [["SIGINT", "SIGINT"], ["SIGINT", "SIGTERM", "SIGINT"], ["SIGTERM", "SIGTERM"]])
def test_who_asks_a_server_twice_to_end_gets_no_traceback(tmp_path: Path, signals: list[str]) -> None:
    fleet = Fleet(f"sqlite:///{tmp_path}/runs.db", "", tmp_path)
    server = fleet.start("serve", "--port", 0)
    try:
        api = httpx.Client(base_url=address_of(server), timeout=SECONDS)
        with api, api.stream("GET", "/api/v1/events") as stream:
            assert next(stream.iter_lines()) == "retry: 2000"
            for name in signals:
                server.send(signal.Signals[name])
            assert server.end(signal.SIGCONT) == 0
    finally:
        fleet.close()
    assert "Traceback" not in server.said
    assert "ERROR" not in server.said
