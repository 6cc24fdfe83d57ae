"""A deploy, and a rollback, while runs are in progress: real processes with two versions of one module."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine, Run, Workflow, step, task
from stepwell.core.model import GateState, StoreLimits
from stepwell.engine.procedures import gates
from tests.chaos.conftest import StartChild
from tests.chaos.deploying import Site, check_ended, served_by, wait_for_heals
from tests.chaos.work import Mortal
from tests.conformance.audit import audit
from tests.engine.waiting import eventually

RUNS = 12


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def deployed(site: Site, engine: Engine, **options: Any) -> tuple[list[Run], Any, Any]:
    """Runs that the older version has begun, and a worker of the newer one beside it that has healed them all."""
    runs = [engine.get(run) for run in site.start(RUNS)]
    old = site.work("old")
    eventually(lambda: any(node == "charge" for _, node, _ in site.entries()), "the older one did nothing", seconds=60)
    new = site.work("new", **options)
    wait_for_heals(runs, 1)
    return runs, old, new


def test_runs_are_healed_once_while_both_versions_are_alive(site: Site) -> None:
    with Engine(site.url, runner=None) as engine:
        runs, old, new = deployed(site, engine)
        assert served_by(engine) == {old.pid: ["Orders"], new.pid: ["Orders"]}
        site.let("go")
        site.let("ship")
        check_ended(runs, 1)
        time.sleep(2.5)  # both look at the other version again and again, and nothing must come of it
        assert old.alive
        assert new.alive
        assert {run.row.heals for run in runs} == {1}
        assert site.bodies() == {(run.id, node): 1 for run in runs for node in ("take", "charge", "thank", "ship")}
        assert {pid for _, node, pid in site.entries() if node in ("thank", "ship")} == {new.pid}
        audit(engine.store)


def test_after_a_rollback_the_older_version_heals_back_and_finishes(site: Site) -> None:
    with Engine(site.url, runner=None) as engine:
        runs, old, new = deployed(site, engine)
        site.let("go")
        eventually(lambda: {node for _, node, _ in site.entries()} >= {"thank"}, "the newer one did nothing")
        new.kill(signal.SIGTERM)
        wait_for_heals(runs, 2)
        site.let("ship")
        check_ended(runs, 2)
        assert "was healed back to an older version of Orders (1 gone: thank)" in old.printed()
        bodies = site.bodies()
        assert {bodies[run.id, node] for run in runs for node in ("take", "charge")} == {1}
        assert max(bodies.values()) == 1
        audit(engine.store)


def test_when_the_newer_version_is_killed_the_older_one_takes_over_before_its_lease_ends(site: Site) -> None:
    with Engine(site.url, runner=None) as engine:
        runs, old, new = deployed(site, engine, lease_seconds=300)
        taken = [run for run in runs if run.node("take").status == "COMPLETED"]
        assert taken
        new.kill()
        site.let("go")
        site.let("ship")
        check_ended(runs, 2)
        assert old.alive
        bodies = site.bodies()
        assert {bodies[run.id, "take"] for run in taken} == {1}, "what had completed is not repeated"
        assert {pid for _, node, pid in site.entries() if node == "ship"} == {old.pid}
        audit(engine.store)


# Large and small versions, made at run time: healing one takes several commits.

LARGE = 2 * StoreLimits().nodes + 500
"""Three chunks: stored by the commits up to the 6th, the 7th takes the gate, the next three switch, the 11th ends the heal."""


def version(size: int) -> type[Workflow]:
    def one() -> Any:
        def one(self: Workflow, ctx: Any) -> None:
            while True:
                ctx.check()
                time.sleep(0.01)

        return one

    def more() -> Any:
        def more(self: Workflow) -> None:
            pass

        return more

    made: dict[str, Any] = {"one": step(one())}
    made |= {f"more_{number}": task(depends_on="one")(more()) for number in range(size)}
    return type(Workflow)("Large", (Workflow,), made)


def serve_version(url: str, size: int, began: str | None = None) -> None:
    gates.GATE_LEASE = 300_000
    large = version(size)
    if began is not None:
        Path(began).touch()
    engine = Engine(url, workflows=[large])
    threading.Event().wait()
    engine.close()


@pytest.mark.parametrize("seed", [0, 1, 3, 5, 6])  # early and late kills, followed by either version
def test_a_heal_that_was_cut_short_is_finished_by_another(
    tmp_path: Path, url: str, start_child: StartChild, seed: int
) -> None:
    """Also by one with older code: what is to be done stands in the store. It heals back then, as nobody newer is left."""
    choose = random.Random(seed)
    with Engine(url, runner=None) as engine:
        run = engine.start(version(1)())
        began = tmp_path / "began"
        healer = start_child(serve_version, url, LARGE, str(began))
        eventually(began.exists, seconds=60)
        time.sleep(choose.uniform(0.0, 0.6))
        healer.kill()
        healer.join()
        at = (run.row.heals, run.row.purpose, run.row.nodes)
        size = choose.choice((1, LARGE, LARGE))
        start_child(serve_version, url, size)
        eventually(
            lambda: len(run.graph) == size + 1 and run.row.gate is GateState.OPEN and run.status == "RUNNING",
            f"seed {seed}, killed at {at}",
            seconds=90,
            show=lambda: run.row,
        )
        assert run.audit() == []
        assert run.row.heals <= 2
        counts = Counter(node.status for node in run.nodes())
        assert counts["PENDING"] == size
        assert counts["RUNNING"] + counts["READY"] == 1


def heal_and_die(url: str, run: str, number: int, when: str) -> None:
    gates.GATE_LEASE = 300_000
    with Engine(url, runner=None, workflows=[version(LARGE)]) as engine:
        Mortal(engine, number, when)
        engine.get(run).resume()


@pytest.mark.parametrize("number", [6, 8, 9, 10, 11])
def test_a_heal_is_finished_whichever_commit_its_process_died_at(
    url: str, start_child: StartChild, number: int
) -> None:
    with Engine(url, runner=None) as engine:
        run = engine.start(version(1)()).pause()
        child = start_child(heal_and_die, url, run.id, number, "after" if number % 2 else "before")
        child.join(90)
        assert child.exitcode == -signal.SIGKILL
        start_child(serve_version, url, LARGE)
        eventually(lambda: len(run.graph) == LARGE + 1 and run.row.purpose is None, seconds=90, show=lambda: run.row)
        assert run.row.heals == 1
        assert run.audit() == []


def test_two_processes_of_one_version_share_the_healing(url: str, start_child: StartChild) -> None:
    with Engine(url, runner=None) as engine:
        runs = engine.start_many([version(1)() for _ in range(60)])
        for _ in range(2):
            start_child(serve_version, url, 3)
        wait_for_heals(runs, 1)
        for run in runs:
            assert run.audit() == []
            assert len(run.graph) == 4
