"""A body in a process of its own has the idempotency key that it would have in a thread."""

from __future__ import annotations

import pytest

from stepwell import Context, Engine, Workflow, step


class InThread(Workflow):
    order: int = 7

    @step
    def pay(self, ctx: Context) -> str:
        return ctx.idempotency_key

    @step(depends_on=None, idempotency_key=lambda self: f"order-{self.order}")
    def ship(self, ctx: Context) -> str:
        return ctx.idempotency_key


class InProcess(Workflow):
    order: int = 7

    @step(isolation="process")
    def pay(self, ctx: Context) -> str:
        return ctx.idempotency_key

    @step(depends_on=None, isolation="process", idempotency_key=lambda self: f"order-{self.order}")
    def ship(self, ctx: Context) -> str:
        return ctx.idempotency_key


@pytest.mark.parametrize("workflow", [InThread, InProcess])
def test_it_is_another_one_when_a_completion_was_superseded(sqlite_engine: Engine, workflow: type[Workflow]) -> None:
    run = sqlite_engine.run(workflow(), run_id="r")
    assert run.outputs == {"pay": "r:pay", "ship": "order-7"}
    for node in ("pay", "ship"):
        run.reattempt(node).wait(30).check()
    assert run.outputs == {"pay": "r:pay:1", "ship": "order-7:1"}
    run.reattempt("ship").wait(30).check()
    assert run.output("ship") == "order-7:2"
