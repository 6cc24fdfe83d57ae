"""Celery workers run what an engine elsewhere has started, each node once, in processes that can be replaced."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
import redis

from stepwell import Client
from stepwell.engine.hint_sender import TASK
from stepwell.engine.procedures.collect_graphs import collect_graphs
from tests.celery import work
from tests.chaos.fleet.leftovers import BROKER_KEYS, MOST_HINTS, STORE_KEYS, keys_of, unnamed
from tests.conformance.audit import audit
from tests.engine.ledger import noted
from tests.engine.waiting import eventually
from tests.server.replayed import Shopping
from tests.server.running import running
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

WORK = "tests.celery.work"


def test_runs_are_worked_off_by_the_processes_of_a_worker_and_nothing_is_left(
    fleet: Fleet, redis_server: RedisServer, tmp_path: Path
) -> None:
    """Every key of store and broker is listed, before and after; each that stays is named, with the reason, in `leftovers`."""
    assert keys(fleet, redis_server) == ({}, {})
    worker = fleet.worker(WORK)
    with fleet.engine() as engine:
        runs = [engine.start(work.Order(order_id=number)) for number in range(6)]
        flaky = engine.start(work.Flaky(ledger=str(tmp_path / "ledger")))
        for run in runs:
            run.wait(60).check()
            reserve, charge, label = run.output("label")
            assert {reserve, charge} <= set(worker.children)
            assert label not in worker.children, "isolation='process' is a process of its own"
        flaky.wait(60).check()
        assert flaky.output("flaky") == 3, "retries come due without anybody else"
        audit(engine.store)  # once all have ended: it reads rows of one run at several moments
        listened = [key for key in keys(fleet, redis_server)[1] if key.startswith("_kombu.binding.")]
        assert listened == [], "neither to commands nor to what other workers report"
        assert worker.end() == 0
        assert fleet.workers() == set(), "who drains signs off"
        for run in (*runs, flaky):
            run.delete()
        collect_graphs(engine.store, grace=0)
    stored, sent = keys(fleet, redis_server)
    assert unnamed(stored, STORE_KEYS) == []
    assert unnamed(sent, BROKER_KEYS) == []
    of_others = [key for key in sent if "pidbox" in key or "celeryev" in key]
    assert of_others == [], (
        "a worker of ours listens to hints, and neither to commands nor to what other workers report"
    )
    with redis.Redis.from_url(fleet.broker) as broker:
        assert broker.llen("stepwell.default") <= MOST_HINTS


def keys(fleet: Fleet, server: RedisServer) -> tuple[dict[str, str], dict[str, str]]:
    """Every key of the store, and every key of the broker."""
    namespace = fleet.store.partition("namespace=")[2]
    with server.client() as client, redis.Redis.from_url(fleet.broker) as broker:
        return keys_of(client, f"{{{namespace}}}:"), keys_of(broker)


def test_a_body_that_overruns_ends_its_process_and_loses_nothing(fleet: Fleet) -> None:
    worker = fleet.worker(WORK, processes=1)
    (before,) = worker.children
    with fleet.engine() as engine:
        late = engine.start(work.Late())
        assert late.wait(60).status == "FAILED"
        assert late.node("late").attempts[0].status == "TIMED_OUT"
        eventually(lambda: worker.children and worker.children != [before], "its process was not replaced", seconds=60)
        run = engine.start(work.Order(order_id=1))
        run.wait(60).check()
        assert run.output("reserve") in worker.children
    assert "WorkerLostError" not in worker.said


def test_a_process_that_is_killed_is_noticed_long_before_its_lease_ends(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_LEASE_SECONDS", "600")
    ledger, go_on = str(tmp_path / "ledger"), str(tmp_path / "go_on")
    fleet.worker(WORK, processes=2)
    with fleet.engine() as engine:
        run = engine.start(work.Held(ledger=ledger, go_on=go_on))
        eventually(lambda: work.begun(ledger))
        os.kill(int(work.begun(ledger)[0].split()[1]), signal.SIGKILL)
        eventually(lambda: len(work.begun(ledger)) == 2, "nobody took it over", seconds=90)
        Path(go_on).touch()
        run.wait(60).check()
        assert [attempt.status for attempt in run.node("hold").attempts] == ["LOST", "COMPLETED"]
        audit(engine.store)


def test_conditions_hold_on_a_fleet_as_in_one_process(fleet: Fleet) -> None:
    fleet.worker(WORK)
    with fleet.engine() as engine:
        runs = [engine.start(work.Review()) for _ in range(4)]
        for run in runs:
            assert run.wait(60).check().output("ship") == "approved"
            reasons = {node.name: node.reason for node in run.nodes() if node.status == "SKIPPED"}
            assert reasons == {"review": "condition", "note": "parents_skipped"}
        audit(engine.store)


def test_nodes_run_where_their_queue_is_served(fleet: Fleet) -> None:
    general = fleet.worker(WORK, processes=1)
    with fleet.engine() as engine:
        run = engine.start(work.Gpu())
        eventually(lambda: run.node("prepare").status == "COMPLETED")
        assert run.node("train").status in ("PENDING", "READY")
        special = fleet.worker(WORK, processes=1, queues="gpu", log_level="debug")
        run.wait(60).check()
        assert run.output("prepare") in general.children
        assert run.output("train") in special.children
    hint = f"Task {TASK}["
    assert hint in special.said, "whoever debugs sees every hint"
    assert hint not in general.said, "nobody else does"


def test_a_worker_that_is_told_to_end_finishes_what_runs_and_gives_back_the_rest(fleet: Fleet, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    worker = fleet.worker(WORK, processes=1)
    with fleet.engine() as engine:
        run = engine.start(work.naps(ledger, 8))
        eventually(lambda: noted(ledger))
        assert worker.end(signal.SIGTERM, 40) == 0, worker.said
        assert not fleet.workers(), "it has signed off"
        begun = len(noted(ledger))
        assert begun < 8
        statuses = Counter(node.status for node in run.nodes())
        assert statuses == {"COMPLETED": begun, "READY": 8 - begun}, "what began has ended, the rest was given back"
        fleet.worker(WORK, processes=1)
        run.wait(60).check()
        assert len(noted(ledger)) == 8, "nothing ran twice"
        audit(engine.store)


def test_a_worker_without_a_terminal_starts_anew_on_sighup(fleet: Fleet, tmp_path: Path) -> None:
    """What runs ends first, and the same process goes on with the code that is there then."""
    ledger = str(tmp_path / "ledger")
    worker = fleet.worker(WORK, processes=1)
    before, known = worker.children, fleet.workers()
    with fleet.engine() as engine:
        run = engine.start(work.naps(ledger, 8))
        eventually(lambda: noted(ledger))
        worker.send(signal.SIGHUP)
        fleet.wait_for_workers(worker, known, 1)
        run.wait(60).check()
        assert len(noted(ledger)) == 8, "nothing ran twice"
        assert worker.children
        assert worker.children != before
    assert worker.end() == 0, worker.said


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_other_pools(fleet: Fleet, pool: str, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    worker = fleet.worker(WORK, processes=3, pool=pool)
    with fleet.engine() as engine:
        runs = [engine.start(work.Order(order_id=number)) for number in range(3)]
        wide = engine.start(work.naps(ledger, 6))
        for run in (*runs, wide):
            run.wait(60).check()
        assert {run.output("reserve") for run in runs} == {worker.pid}
        held = engine.start(work.naps(ledger, 30))
        eventually(lambda: len(noted(ledger)) > 6)
        assert worker.end(signal.SIGTERM, 40) == 0, worker.said
        assert not fleet.workers()
        assert {node.status for node in held.nodes()} == {"COMPLETED", "READY"}


def test_gevent_is_refused_with_a_reason(fleet: Fleet) -> None:
    worker = fleet.start("worker", WORK, "--pool", "gevent")
    assert worker.end(signal.SIGCONT) == 78
    assert "cannot run workflows" in worker.said
    assert "prefork, threads or solo" in worker.said


def test_a_worker_replays_for_a_server_that_has_no_code(fleet: Fleet) -> None:
    with fleet.engine() as engine, running(fleet.store) as serving, Client(serving.url) as api:
        fleet.worker("tests.server.replayed", processes=1)
        run = engine.start(Shopping(number=7)).wait(60).check()
        assert api.replay(run.id).executed == ("double", "half")
