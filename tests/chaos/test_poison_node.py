"""A node that kills every worker ends after five of them, and keeps nobody else from working."""

from __future__ import annotations

import signal

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import counted


def test_a_node_that_kills_its_workers_fails_after_five_losses(url: str, ledger: str, start_child: StartChild) -> None:
    w = Builder("poisoned", on_failure="finish")
    w.fan_out(range(30), job=work.small, args=lambda _: {"ledger": ledger}, depends_on=None)
    w.node("poison", job=work.always_die, args={"ledger": ledger}, depends_on=None)
    w.node("below", job=work.small, args={"ledger": ledger})
    with Engine(url, runner=None) as starter:
        run_id = starter.start(w).id
    for loss in range(1, 6):
        child = start_child(work.serve, url, max_concurrent_nodes=4)
        child.join(30)
        assert child.exitcode == -signal.SIGKILL
        assert counted(ledger)["poison"] == loss
    with Engine(url) as engine:
        run = engine.adopt(run_id).wait(20)
        poison = run.node("poison")
        assert (run.status, poison.status, poison.reason) == ("FAILED", "FAILED", "worker_lost")
        assert [attempt.status for attempt in poison.attempts] == ["LOST"] * 5
        others = [node for node in run.nodes() if node.name not in ("poison", "below")]
        assert {node.status for node in others} == {"COMPLETED"}
        assert run.node("below").status == "UPSTREAM_FAILED"
        assert counted(ledger)["poison"] == 5
        audit(engine.store)
