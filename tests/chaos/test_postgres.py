"""Workers, lines and servers that die, on PostgreSQL: every promise holds, by a ledger outside the engine."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Builder, Engine
from stepwell.stores.postgres.store import PostgresStore
from tests.chaos import test_real_graphs as real_graphs
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.chaos.test_killed_at_every_commit import BODIES, finish
from tests.conformance.audit import audit
from tests.engine.ledger import counted, noted
from tests.engine.waiting import eventually
from tests.examples.conftest import Scheduler
from tests.examples.test_examples import TARGETS
from tests.forking.template import Template
from tests.postgres_server import PostgresServer, Standby, empty, postgres  # noqa: F401
from tests.stores.postgres.children import Noted
from tests.stores.postgres.proxy import CUT, Proxy
from tests.stores.postgres.sizes import FULL, size
from tests.stores.postgres.test_processes import check

TRUSTED = {"jobs": ["tests.chaos.work"]}


@pytest.fixture(scope="module")
def shared(postgres: PostgresServer) -> Iterator[PostgresStore]:  # noqa: F811
    """One schema for many tests: to make one takes longer than most of them."""
    store = PostgresStore(postgres.new_url())
    yield store
    store.close()


@pytest.fixture
def store(shared: PostgresStore) -> Iterator[PostgresStore]:
    yield shared
    empty(shared)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("shape", "when"), [*itertools.product(BODIES, ("before", "after"))] if FULL else [("Diamond", "alternating")]
)
def test_a_run_survives_a_worker_killed_at_any_of_its_commits(
    shape: str, when: str, store: PostgresStore, tmp_path: Path, start_child: StartChild
) -> None:
    died = 0
    for number in itertools.count(1):
        ledger = f"{tmp_path}/ledger-{number}"
        place = ("before", "after")[number % 2] if when == "alternating" else when
        child = start_child(work.run_and_die, store.url, shape, ledger, number, place, lease_seconds=1.5)
        child.join(60)
        died += child.exitcode == -signal.SIGKILL
        finish(store.url, shape, ledger, **TRUSTED)
        empty(store)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL, f"commit {number}: the child ended with {child.exitcode}"
    assert died >= 4, "it made so few commits that this proves little"


def test_a_worker_that_was_stopped_is_fenced_when_it_comes_back(
    store: PostgresStore, tmp_path: Path, ledger: str, start_child: StartChild
) -> None:
    go_on = tmp_path / "go-on"
    w = Builder("held")
    w.node("hold", job=work.hold, args={"ledger": ledger, "go_on": str(go_on)})
    w.node("after", job=work.small, args={"ledger": ledger})
    with Engine(store.url, runner=None) as starter:
        run_id = starter.start(w).id
    child = start_child(work.serve, store.url, lease_seconds=1, **TRUSTED)
    eventually(lambda: noted(ledger), seconds=30)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGSTOP)
    with Engine(store.url, lease_seconds=1, **TRUSTED) as engine:
        run = engine.adopt(run_id).wait(60)
        assert run.output("hold") == "attempt 2"
        os.kill(child.pid, signal.SIGCONT)
        go_on.touch()
        eventually(lambda: f"ended 1 {child.pid}" in noted(ledger))
        later = Builder("later")
        later.node("small", job=work.small, args={"ledger": ledger})
        assert engine.run(later).status == "COMPLETED"
        assert [attempt.status for attempt in run.node("hold").attempts] == ["LOST", "COMPLETED"]
        assert (run.output("hold"), len(run.node("after").attempts)) == ("attempt 2", 1)
        audit(engine.store)


def test_a_poor_line_loses_nothing_and_does_nothing_twice(
    postgres: PostgresServer,  # noqa: F811
    store: PostgresStore,
    ledger: str,
) -> None:
    """Cut after the request, before the reply, delayed, and in crumbs, for a while each."""
    proxy, chance = Proxy(postgres.port), random.Random(7)

    def sometimes(cut: float, slow: float) -> float:
        drawn = chance.random()
        return CUT if drawn < cut else 0.02 if drawn < cut + slow else 0.0

    try:
        with Engine(store.url.replace(f":{postgres.port}/", f":{proxy.port}/"), lease_seconds=60) as engine:
            for trickle, (requests, replies) in (
                (0, ((0.05, 0.0), (0.0, 0.0))),
                (0, ((0.0, 0.0), (0.05, 0.0))),
                (0, ((0.02, 0.2), (0.02, 0.2))),
                (100, ((0.0, 0.0), (0.02, 0.0))),
            ):
                proxy.trickle = trickle
                proxy.on_request = lambda _, odds=requests: sometimes(*odds)  # type: ignore[misc]
                proxy.on_reply = lambda _, odds=replies: sometimes(*odds)  # type: ignore[misc]
                runs = [engine.start(Noted(ledger=ledger)) for _ in range(size(6, 100))]
                for run in runs:
                    run.wait(120)
                proxy.on_request = proxy.on_reply = lambda _: 0.0
                proxy.trickle = 0
                check(engine, runs)
            audit(engine.store)
            assert set(counted(ledger).values()) == {1}, "no worker died, so no body ran twice"
            assert len(counted(ledger)) == 4 * 4 * size(6, 100)
    finally:
        proxy.close()


@pytest.mark.skipif(
    not FULL, reason="in make prove WHAT=postgres; tests/stores/postgres/test_processes.py has a shorter one"
)
@pytest.mark.timeout(900)
def test_a_server_that_crashes_every_two_seconds_loses_nothing(ledger: str) -> None:
    server, over = PostgresServer(), threading.Event()

    def crash() -> None:
        while not over.wait(2):
            server.stop(signal.SIGQUIT)
            server.start()

    thread = threading.Thread(target=crash)
    try:
        with Engine(server.new_url(), lease_seconds=5) as engine:
            thread.start()
            runs = [engine.start(Noted(ledger=ledger)) for _ in range(500)]
            for run in runs:
                run.wait(600)
            over.set()
            thread.join()
            check(engine, runs)
            audit(engine.store)
            assert len(counted(ledger)) == 2_000
    finally:
        over.set()
        server.close()


def test_a_standby_that_lacks_the_last_moments_takes_over(tmp_path: Path, ledger: str) -> None:
    """The tail is lost, and the run goes on from what the standby has."""
    primary = PostgresServer("-c", "wal_keep_size=64MB")
    standby = None
    try:
        standby = Standby(primary)
        url = f"postgresql://stepwell@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        go_on = tmp_path / "go-on"
        w = Builder("long")
        w.node("top", job=work.small, args={"ledger": ledger})
        w.fan_out(range(30), job=work.small, args=lambda _: {"ledger": ledger})
        w.node("hold", job=work.hold, args={"ledger": ledger, "go_on": str(go_on)})
        w.fan_out(range(30), job=work.small, args=lambda _: {"ledger": ledger})
        with Engine(url, lease_seconds=5) as engine:
            run = engine.start(w, run_id="r")
            eventually(lambda: "hold" in counted(ledger), seconds=60)
            standby.catch_up(primary)
            standby.cut_off()
            go_on.touch()  # what comes now, the standby never hears of
            eventually(lambda: len(noted(ledger)) > 40, seconds=60)
            primary.stop(signal.SIGQUIT)
            standby.promote()
            run.wait(120)
            assert run.status == "COMPLETED"
            assert all(node.status == "COMPLETED" for node in run.nodes())
            for node in run.nodes():
                assert [attempt.status for attempt in node.attempts].count("COMPLETED") == 1
            audit(engine.store)
            assert engine.start(w, run_id="again").wait(60).status == "COMPLETED"
    finally:
        if standby is not None:
            standby.close()
        primary.close()


@pytest.mark.skipif(not real_graphs.FILES, reason=f"there are no graphs in {real_graphs.FOLDER}")
@pytest.mark.timeout(900)
def test_real_graphs_run_in_a_legal_order(store: PostgresStore) -> None:
    with Engine(store.url) as engine:
        for file in real_graphs.FILES[:: size(9, 1)]:
            real_graphs.test_a_real_graph_runs_in_a_legal_order(file, engine)
        audit(engine.store)


@pytest.mark.parametrize(("target", "code"), TARGETS if FULL else TARGETS[:1])
def test_the_workflow_of_an_example_runs_by_the_command_line(
    store: PostgresStore, tmp_path: Path, utf8_template: Template, target: str, code: int
) -> None:
    scheduler = Scheduler(tmp_path, utf8_template)
    try:
        scheduler(f"stepwell --store '{store.url}' run {target} --run-id it", code=code)
        assert "every invariant holds" in scheduler(f"stepwell --store '{store.url}' audit it").out
    finally:
        scheduler.close()
