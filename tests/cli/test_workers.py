"""`stepwell workers`: who is alive, what they serve and hold."""

from __future__ import annotations

import threading
from pathlib import Path

from stepwell import Builder, Engine
from tests.cli.conftest import Shop
from tests.engine.waiting import eventually

RELEASED = threading.Event()


def hold() -> None:
    assert RELEASED.wait(60)


def test_a_worker_is_listed_with_what_it_holds(shop: Shop) -> None:
    url = f"sqlite:///{shop.folder}/runs.db"
    with Engine(url, queues=["default", "gpu"]) as engine:
        w = Builder("holds")
        w.node("held", job=hold)
        run = engine.start(w)
        eventually(lambda: run.node("held").status == "RUNNING")
        (worker,) = shop("workers", "--json", "--store", url).json
        shown = shop("workers", "--store", url).out
        RELEASED.set()
        run.wait(30).check()
    assert worker["alive"]
    assert worker["queues"] == ["default", "gpu"]
    assert 0 < worker["lease_seconds_left"] <= 30
    (held,) = worker["holds"]
    assert (held["run"], held["attempt"]) == (run.id, 1)
    assert "default, gpu" in shown
    assert run.id[:12] in shown


def test_no_workers(shop: Shop, tmp_path: Path) -> None:
    assert "no workers" in shop("workers").err


def test_what_waits_for_a_worker_is_said_in_the_end(shop: Shop) -> None:
    url = f"sqlite:///{shop.folder}/idle.db"
    with Engine(url, runner=None) as engine:
        w = Builder("holds")
        w.node("held", job=hold)
        engine.start(w)
    assert "holds waits for a worker: no worker is alive" in shop("workers", "--store", url).err


def test_a_worker_needs_a_broker(shop: Shop) -> None:
    assert "needs a broker" in shop("worker", "shop", code=2).err


def test_what_is_no_pool_is_refused(shop: Shop) -> None:
    told = shop("worker", "shop", "--broker", "redis://localhost/1", "--pool", "eventlet", code=78)
    assert "cannot run workflows" in told.err


def test_a_module_that_is_not_there_is_told_before_anything_starts(shop: Shop) -> None:
    assert "nowhere" in shop("worker", "nowhere", "--broker", "redis://localhost/1", code=2).err
