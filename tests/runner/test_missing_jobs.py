"""A job that is gone fails its node, and says which node it was and what can be done."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from stepwell import Builder, Engine
from tests.runner import jobs


@pytest.fixture
def shop() -> Iterator[types.ModuleType]:
    """A module that can be changed like code between two deploys."""
    module: Any = types.ModuleType("shop_of_this_test")
    exec("def charge():\n    return 'charged'\n", module.__dict__)
    sys.modules["shop_of_this_test"] = module
    yield module
    del sys.modules["shop_of_this_test"]


def test_a_job_that_is_gone_fails_its_node_and_names_the_ways_out(engine: Engine) -> None:
    w = Builder("gone", on_failure="finish")
    node = w.node("charge", job="tests.runner.jobs:removed")
    w.node("fine", job=jobs.nothing, depends_on=None)
    run = engine.run(w, check=False)
    error = run.node("charge").error
    assert error is not None
    assert error.type == "MissingJob"
    assert f"the job of node 'charge' ({node}) is missing" in error.message
    assert "module 'tests.runner.jobs' has no 'removed'" in error.message
    assert "restore it and retry the run, cancel the run, or edit the graph of the run" in error.message
    assert run.node("fine").status == "COMPLETED"


def test_a_module_that_is_gone_is_told_as_such(engine: Engine) -> None:
    w = Builder("gone")
    w.node("charge", job="no.such.module:charge")
    error = engine.run(w, check=False).node("charge").error
    assert error is not None
    assert "there is no module 'no'" in error.message


def test_a_job_that_is_restored_runs_after_a_retry(open_sqlite: Any, shop: Any) -> None:
    w = Builder("restored")
    w.node("charge", job="shop_of_this_test:charge")
    charge = shop.charge
    del shop.charge
    run = open_sqlite().run(w, check=False)
    assert run.status == "FAILED"
    shop.charge = charge
    assert open_sqlite().get(run.id).retry().wait(30).output("charge") == "charged"
