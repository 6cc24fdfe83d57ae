"""A job that is gone fails its node, and says which node it was and what can be done."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Engine, NodeStatus, Retry
from stepwell.base.clock import SECOND, utc_text
from stepwell.core.model import CountNodes, ListUnfinished
from stepwell.core.store import Store
from stepwell.errors import MissingJob, StoreBusy
from tests.engine import jobs
from tests.engine.waiting import eventually


@pytest.fixture
def shop() -> Iterator[types.ModuleType]:
    """A module that can be changed like code between two deploys."""
    module: Any = types.ModuleType("shop_of_this_test")
    exec("def charge():\n    return 'charged'\n", module.__dict__)
    sys.modules["shop_of_this_test"] = module
    yield module
    del sys.modules["shop_of_this_test"]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_job_that_is_gone_fails_its_node_and_names_the_ways_out(engine: Engine, isolation: Any) -> None:
    w = Builder("gone", on_failure="finish")
    node = w.node("charge", job="tests.engine.jobs:removed", isolation=isolation)
    w.node("fine", job=jobs.nothing, depends_on=None)
    run = engine.run(w, check=False)
    error = run.node("charge").error
    assert error is not None
    assert error.type == "MissingJob"
    assert error.message == (
        f"the job of node 'charge' ({node}) of run {run.id} is missing: tests.engine.jobs:removed: module "
        f"'tests.engine.jobs' has no 'removed'; was it renamed or removed?\n"
        f"  the graph of the run, which was frozen at {utc_text(run.row.created_at / SECOND)}, names it, so there are three "
        f"ways out:\n"
        f"  - restore tests.engine.jobs:removed where this worker runs, and `run.retry()`\n"
        f"  - give up: `run.cancel()`, if other nodes of it still run\n"
        f"  - edit the graph: `run.export_graph()`, give the node another job, `run.import_graph(...)`, `run.retry()`"
    )
    assert run.node("fine").status == "COMPLETED"


def test_the_facts_are_attributes_too() -> None:
    missing = MissingJob("it is gone", node="charge", node_id="n_1", job="shop:charge", run_id="r-1", frozen_at=1.5)
    assert (missing.node, missing.node_id, missing.job) == ("charge", "n_1", "shop:charge")
    assert (missing.run_id, missing.frozen_at, missing.reason) == ("r-1", 1.5, "it is gone")
    assert "1970-01-01T00:00:01Z" in str(missing)


def test_a_store_in_trouble_costs_the_date_and_not_the_message(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(store: Store, run_id: str) -> None:
        raise StoreBusy("somebody else")

    w = Builder("gone")
    w.node("charge", job="tests.engine.jobs:removed")
    with monkeypatch.context() as patch:
        patch.setattr("stepwell.engine.worker.bodies.reader.get_run", busy)
        run = engine.start(w)
        eventually(lambda: engine.store.read([CountNodes(run.id)])[0].get(NodeStatus.FAILED), "it did not fail")
    error = run.wait(10).node("charge").error
    assert error is not None
    assert f"of run {run.id} is missing" in error.message
    assert "the graph of the run names it" in error.message


def test_a_module_that_is_gone_is_told_as_such(engine: Engine) -> None:
    w = Builder("gone")
    w.node("charge", job="no.such.module:charge")
    error = engine.run(w, check=False).node("charge").error
    assert error is not None
    assert "there is no module 'no'" in error.message


def test_a_job_that_is_restored_in_the_same_process_runs_after_a_retry(open_sqlite: Any, shop: Any) -> None:
    w = Builder("restored")
    w.node("charge", job="shop_of_this_test:charge")
    charge = shop.charge
    del shop.charge
    run = open_sqlite().run(w, check=False)
    assert run.status == "FAILED"
    shop.charge = charge
    assert open_sqlite().get(run.id).retry().wait(30).output("charge") == "charged"


def test_a_file_that_is_restored_is_found_by_the_next_process(tmp_path: Path) -> None:
    """Two deploys, in real processes: the first has lost the job, the second has it again."""
    module = tmp_path / "shop.py"
    program = (
        "import sys\n"
        "from stepwell import Builder, Engine\n"
        "w = Builder('orders')\n"
        "w.node('validate', job='shop:validate')\n"
        "w.node('charge', job='shop:charge')\n"
        "with Engine('sqlite:///orders.db') as engine:\n"
        "    run = engine.run(w, run_id='r-1', check=False) if sys.argv[1] == 'run' else engine.get('r-1').retry().wait()\n"
        "    print(run.status, *(f'{n.name}:{n.status}:{len(n.attempts)}' for n in run.nodes()))\n"
    )

    def deploy(code: str, command: str) -> str:
        module.write_text(code)
        done = subprocess.run(
            [sys.executable, "-c", program, command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout.strip() or done.stderr.strip()

    validate = "def validate():\n    return 1\n"
    assert deploy(validate, "run") == "FAILED validate:COMPLETED:1 charge:FAILED:1"
    refused = deploy(validate, "retry")
    assert "module 'shop' has no 'charge'; was it renamed or removed?\n  nothing was attempted" in refused
    restored = validate + "def charge(ctx):\n    return ctx.outputs['validate'] + 1\n"
    assert deploy(restored, "retry") == "COMPLETED validate:COMPLETED:1 charge:COMPLETED:2"


def test_a_job_that_is_gone_is_not_tried_again(engine: Engine) -> None:
    w = Builder("gone")
    w.node("charge", job="tests.engine.jobs:removed", retry=Retry(5, base_delay=0.001))
    assert [each.status for each in engine.run(w, check=False).node("charge").attempts] == ["FAILED"]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_whoever_has_not_the_code_of_a_run_leaves_it_as_it_is(open_sqlite: Any, shop: Any, isolation: Any) -> None:
    """To adopt it, to resume, to retry or to attempt a node of it again: code that is not here is never an attempt."""
    w = Builder("elsewhere")
    w.node("first", job=jobs.nothing, isolation=isolation)
    node = w.node("charge", job="shop_of_this_test:charge", retry=3, isolation=isolation)
    starting = open_sqlite(runner=None)
    run, paused, failed = (starting.start(w, run_id=name) for name in ("left", "paused", "failed"))
    paused.pause()
    failed.cancel(grace_seconds=0)
    before = [each.row for each in (run, paused, failed)]
    charge, engine = shop.charge, open_sqlite()
    del shop.charge
    for ask in (
        lambda: engine.adopt("left"),
        lambda: engine.start(w, run_id="left"),
        lambda: engine.get("paused").resume(),
        lambda: engine.get("failed").retry(),
        lambda: engine.get("failed").reattempt("first"),
    ):
        with pytest.raises(MissingJob, match="module 'shop_of_this_test' has no 'charge'") as refused:
            ask()
        assert (refused.value.node, refused.value.node_id, refused.value.attempted) == ("charge", node, False)
        assert refused.value.run_id in ("left", "paused", "failed")
    assert [each.row for each in (run, paused, failed)] == before
    assert not any(each.attempts for one in (run, paused, failed) for each in one.nodes())
    if isolation == "thread":  # no other process has this module
        shop.charge = charge
        assert engine.adopt("left").wait(30).output("charge") == "charged"
        assert engine.get("paused").resume().wait(30).status == "COMPLETED"


def test_code_of_what_has_completed_is_not_needed(open_sqlite: Any, shop: Any) -> None:
    exec("ready = []\ndef ship(): assert ready", shop.__dict__)
    w = Builder("half")
    w.node("charge", job="shop_of_this_test:charge")
    w.node("ship", job="shop_of_this_test:ship")
    run = open_sqlite().run(w, check=False)
    assert run.node("charge").status == "COMPLETED"
    del shop.charge
    shop.ready.append(True)
    engine = open_sqlite()
    with pytest.raises(MissingJob, match="has no 'charge'"):
        engine.get(run.id).fork("charge")
    assert engine.get(run.id).retry().wait(30).status == "COMPLETED"


def test_a_worker_serves_no_run_whose_code_is_not_there(open_sqlite: Any, shop: Any) -> None:
    w = Builder("elsewhere")
    w.node("first", job=jobs.nothing)
    w.node("charge", job="shop_of_this_test:charge", retry=3)
    run = open_sqlite(runner=None).start(w)
    del shop.charge
    engine = open_sqlite()
    engine.work(wait=0)
    (needed,) = engine.store.read([ListUnfinished()])[0]
    assert engine.parts.serving.can_serve(needed) is False
    assert "has no 'charge'" in (engine.parts.serving.why_not(needed) or "")
    assert (run.status, run.node("first").attempts) == ("PENDING", ())


def test_a_fork_whose_code_is_not_here_leaves_nothing_behind(sqlite_url: str, shop: types.ModuleType) -> None:
    w = Builder("forked")
    w.node("first", job=jobs.nothing)
    w.node("charge", job="shop_of_this_test:charge")
    with Engine(sqlite_url) as engine:
        run = engine.run(w)
    del shop.charge
    with Engine(sqlite_url) as engine:
        with pytest.raises(MissingJob):
            engine.get(run.id).fork("charge")
        assert [each.id for each in engine.runs()] == [run.id]
