"""A worker is killed between the effects of a body: durable ones are not repeated, the others are lost with their attempt."""

from __future__ import annotations

import os
import signal

import pytest

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import counted, noted
from tests.engine.waiting import eventually
from tests.history import bodies


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_durable_effect_survives_a_kill_and_is_not_repeated(
    url: str, ledger: str, start_child: StartChild, isolation: str
) -> None:
    w = Builder("charges")
    w.node("body", job=bodies.charge_and_wait, args={"ledger": ledger}, isolation=isolation)
    with Engine(url, runner=None) as looker:
        run = looker.start(w)
        child = start_child(work.serve, url)
        eventually(lambda: counted(ledger)["waiting"] == 1, seconds=30)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert [(each.attempt, each.name) for each in run.effects()] == [(1, "charge")]
        with Engine(url) as engine:
            engine.adopt(run.id).wait(60)
        assert run.output("body") == {"value": "charge"}
        assert noted(ledger)[:2] == ["called charge", "called ask"]
        assert sorted(line for line in noted(ledger) if "called" in line) == [
            "called ask",
            "called ask",
            "called charge",
        ]
        seen = [(each.attempt, each.name, each.durable, each.from_attempt) for each in run.effects()]
        assert seen == [(1, "charge", True, None), (2, "charge", False, 1), (2, "ask", False, None)]
        audit(looker.store)


def test_a_process_that_dies_alone_leaves_its_effects_with_its_failed_attempt(url: str, ledger: str) -> None:
    w = Builder("charges")
    w.node("body", job=bodies.charge_and_die, args={"ledger": ledger}, isolation="process", retry=2)
    with Engine(url) as engine:
        run = engine.run(w)
        assert run.output("body") == {"value": "charge"}
        seen = [(each.attempt, each.name, each.from_attempt) for each in run.effects()]
        assert seen == [
            (1, "stepwell.now", None),
            (1, "charge", None),
            (1, "ask", None),
            (2, "stepwell.now", None),
            (2, "charge", 1),
            (2, "ask", None),
        ]
