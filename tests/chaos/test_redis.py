"""Workers and servers that die, on Redis: every promise holds, and nothing that was acknowledged is lost."""

from __future__ import annotations

import itertools
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.chaos.test_killed_at_every_commit import BODIES, finish
from tests.conformance.audit import audit
from tests.engine.ledger import noted
from tests.engine.waiting import eventually
from tests.servers.redis_server import RedisServer

TRUSTED = {"jobs": ["tests.chaos.work"]}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.mark.parametrize("shape", list(BODIES))
def test_a_run_survives_a_worker_killed_at_any_of_its_commits(
    shape: str, server: RedisServer, tmp_path: Path, start_child: StartChild
) -> None:
    died = 0
    for number, when in zip(itertools.count(1), itertools.cycle(("before", "after"))):
        url, ledger = f"{server.url}?namespace={shape}-{number}", f"{tmp_path}/ledger-{number}"
        child = start_child(work.run_and_die, url, shape, ledger, number, when, lease_seconds=0.5)
        child.join(30)
        died += child.exitcode == -signal.SIGKILL
        finish(url, shape, ledger, **TRUSTED)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL, f"commit {number}: the child ended with {child.exitcode}"
    assert died >= 4, "it made so few commits that this proves little"


def test_four_processes_share_the_runs_of_one_server(
    tmp_path: Path, server: RedisServer, ledger: str, start_child: StartChild
) -> None:
    url, done = f"{server.url}?namespace=shared", tmp_path / "done"
    w = Builder("shared")
    w.node("first", job=work.together, args={"ledger": ledger})
    w.node("second", job=work.small, args={"ledger": ledger})
    with Engine(url, runner=None) as looking:
        looking.start_many([w] * 100)
        children = [start_child(work.serve_until_done, url, 10, ledger, str(done), **TRUSTED) for _ in range(4)]
        eventually(lambda: len(looking.runs(limit=1_000, status="COMPLETED")) == 140, seconds=60)
        done.touch()
        for child in children:
            child.join(30)
            assert child.exitcode == 0
        entries = Counter(tuple(line.split()[:2]) for line in noted(ledger))
        assert len(entries) == 280
        assert set(entries.values()) == {1}, "no worker died, so no body ran twice"
        audit(looking.store)


@pytest.mark.parametrize("appendfsync", ["always"])
def test_a_server_that_is_killed_loses_nothing_it_acknowledged(appendfsync: str, tmp_path: Path, ledger: str) -> None:
    server = RedisServer(appendfsync=appendfsync)
    try:
        w = Builder("long")
        w.node("top", job=work.small, args={"ledger": ledger})
        parts = w.fan_out(range(300), job=work.small, args=lambda _: {"ledger": ledger})
        w.node("bottom", job=work.small, args={"ledger": ledger}, depends_on=parts)
        with Engine(server.url, max_concurrent_nodes=4) as engine:
            run = engine.start(w, run_id="r")
            for share in (0.2, 0.5, 0.8):
                eventually(lambda share=share: len(noted(ledger)) > 300 * share, seconds=60)
                server.kill()
                time.sleep(0.2)
                server.start()
            run.wait(60)
            assert run.status == "COMPLETED"
            assert set(Counter(line.split()[1] for line in noted(ledger)).values()) == {1}
            audit(engine.store)
    finally:
        server.stop()
