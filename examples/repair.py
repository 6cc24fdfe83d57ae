"""A run that is paused by a failure, and repaired. The problem: it is pay day. Berlin and Lisbon are paid, the bank of
London has closed for good, and the statement needs all three. Nobody must be paid twice, and nobody may lose the month.

    collect -+-> pay_berlin -+
             +-> pay_london -+-> statement
             +-> pay_lisbon -+

`on_failure="pause"`: nothing new starts, nothing is given up, and the run waits until somebody has decided.

Run it with `python -m examples.repair`, or see it pause, and repair it by hand:

    stepwell run examples.repair:Payroll --input month=2026-01 --run-id pay-1
    stepwell why pay-1
    stepwell graph pay-1 --frozen > pay-1.json        # edit it; `stepwell import pay-1 pay-1.json`
    stepwell retry pay-1 --jobs examples.repair
"""

from __future__ import annotations

from typing import Any

from examples.common import database
from stepwell import Context, Engine, Run, Workflow, step, task

SALARIES = {"berlin": 412_000, "london": 388_000, "lisbon": 205_000}


class Payroll(Workflow, on_failure="pause"):
    month: str

    @step
    def collect(self) -> dict[str, int]:
        return SALARIES

    @task(depends_on=collect, on_lost="interrupt")
    def pay_berlin(self, collect: dict[str, int], ctx: Context) -> dict[str, Any]:
        return transfer("bank of berlin", collect["berlin"], ctx)

    @task(depends_on=collect, on_lost="interrupt")
    def pay_london(self, collect: dict[str, int], ctx: Context) -> dict[str, Any]:
        return transfer("bank of london", collect["london"], ctx)

    @task(depends_on=collect, on_lost="interrupt")
    def pay_lisbon(self, collect: dict[str, int], ctx: Context) -> dict[str, Any]:
        return transfer("bank of lisbon", collect["lisbon"], ctx)

    @step(depends_on=[pay_berlin, pay_london, pay_lisbon])
    def statement(self, ctx: Context) -> dict[str, Any]:
        """Asks for outputs by name, because the repaired node is no longer the method it was."""
        paid = {name: ctx.outputs[f"pay_{name}"] for name in SALARIES}
        return {name: f"{each['amount']} by {each['bank']}" for name, each in paid.items()}


def transfer(bank: str, amount: int, ctx: Context) -> dict[str, Any]:
    if bank == "bank of london":
        raise ConnectionRefusedError(f"the {bank} has closed for good")
    return {"bank": bank, "amount": amount, "key": ctx.idempotency_key}


def pay_by(bank: str, place: str, ctx: Context) -> dict[str, Any]:
    """What London is paid with from now on: a job, with args that the repair gives it."""
    return transfer(bank, ctx.outputs["collect"][place], ctx)


def tell_accounting(ctx: Context) -> str:
    return f"London was paid by the {ctx.outputs['pay_london']['bank']}"


def repair(run: Run) -> None:
    """Change what did not complete, add a node, and refuse to touch what did: `import_graph` checks all of it first."""
    form = run.export_graph()
    form["nodes"]["pay_london"].update(
        job="examples.repair:pay_by", args={"bank": "bank of leeds", "place": "london"}, needs=[]
    )
    form["nodes"]["tell_accounting"] = {
        "name": "tell_accounting",
        "job": "examples.repair:tell_accounting",
        "depends_on": ["pay_london"],
    }
    run.import_graph(form)


def main() -> None:
    # The repaired graph names functions that the class does not: their module is allowed.
    with database() as path, Engine(f"sqlite:///{path}", jobs=["examples.repair"]) as engine:
        run = engine.run(Payroll(month="2026-01"), run_id="pay-1", check=False)
        if run.status == "PAUSED":
            print(run.status, run.why("pay_london"), sep="\n")
            repair(run)
            print("repaired; runs again:", ", ".join(node.name for node in run.retry(dry_run=True)))
            run.retry().wait()
        print(run.check().status)
        for node in run.nodes():
            print(f"  {node.name:<16} attempts: {len(node.attempts)}")
        print(run.output("statement"))
        print(run.output("tell_accounting"))


if __name__ == "__main__":
    main()
