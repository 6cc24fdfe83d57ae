"""Order fulfilment. The problem: a customer must be charged once and no more, whatever dies or is retried; goods that are
short or an order that smells of fraud must stop everything before money moves; and the carrier's booking service is down
every now and then, which is no reason to fail the order.

    validate -> audit -> enrich -+-> check_fraud -----+-> charge -------+
                                 |                    +-> book_carrier -+-> ship
                                 +-> check_inventory -+-> pack ---------+

Run it with `python -m examples.orders`, or with progress to watch:

    stepwell run examples.orders:OrderWorkflow --input order_id=7

The pauses stand for the outside world. Stop the process in the middle and `stepwell resume RUN` goes on from there; what
is completed is not done again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from examples.common import database
from stepwell import Context, Engine, Retry, Workflow, step, task

log = logging.getLogger("examples.orders")
log.setLevel(logging.INFO)  # what bodies log is kept with the run: `run.logs()`

PRICES = {"lamp": 4_900, "desk": 21_500, "chair": 8_900}
STOCK = {"lamp": 12, "desk": 3, "chair": 40}
EXPRESS_FEE = 1_500


# fail_fast: when one check says no, the other is asked to stop and nothing is charged or packed. With "finish" the
# branches that do not need the failed node would go on; with "pause" the order would wait for somebody to look at it.
class OrderWorkflow(Workflow, on_failure="fail_fast"):
    """Takes one order from validation to a parcel on its way. Amounts are in cents."""

    order_id: int
    express: bool = False

    @step
    def validate(self) -> dict[str, Any]:
        time.sleep(0.1)
        if self.order_id <= 0:
            raise ValueError(f"there is no order {self.order_id}")
        return {"customer": f"customer-{self.order_id % 100}", "items": {"lamp": 2, "desk": 1}}

    @step
    def enrich(self, validate: dict[str, Any]) -> dict[str, Any]:
        """A parameter named like an ancestor receives its output: `validate` is what validate returned."""
        time.sleep(0.2)
        goods = sum(PRICES[item] * count for item, count in validate["items"].items())
        return {"goods": goods, "total": goods + (EXPRESS_FEE if self.express else 0), "currency": "EUR"}

    @step(after_step=validate)
    def audit(self, validate: dict[str, Any]) -> None:
        """Inserted: validate -> audit -> enrich. It returns nothing; what it does is its effect."""
        log.info("order %s of %s: %s", self.order_id, validate["customer"], validate["items"])

    @task(depends_on=enrich, retry=Retry(max_attempts=3, base_delay=0.2), timeout=30)
    def check_fraud(self, validate: dict[str, Any], enrich: dict[str, Any]) -> dict[str, Any]:
        """Runs beside check_inventory. Any ancestor may be a parameter, not only the direct ones."""
        time.sleep(0.3)
        score = min(99, enrich["total"] // 1_000)
        if score > 90:
            raise ValueError(f"{validate['customer']} looks too risky: {score}")
        return {"score": score}

    @task(depends_on="enrich")
    async def check_inventory(self, validate: dict[str, Any]) -> dict[str, int]:
        """`def` and `async def` are equal."""
        await asyncio.sleep(0.2)
        short = [item for item, count in validate["items"].items() if STOCK[item] < count]
        if short:
            raise LookupError(f"not enough of {', '.join(short)}")
        return {item: STOCK[item] - count for item, count in validate["items"].items()}

    @step(depends_on=[check_inventory, check_fraud], on_lost="interrupt")
    def charge(self, enrich: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """At most once: if the process dies in here nobody knows whether money moved, so it is not run again by itself.

        The node is INTERRUPTED and the run FAILED; a person looks, and `stepwell retry RUN` tries again. It does so with the
        same idempotency key, so that a provider that knows such keys charges once even then.
        """
        time.sleep(0.3)
        log.info("charged %s %s", enrich["total"], enrich["currency"])
        return {"amount": enrich["total"], "currency": enrich["currency"], "payment": ctx.idempotency_key}

    @task(
        depends_on=[check_inventory, check_fraud],
        retry=Retry(max_attempts=5, base_delay=0.1, max_delay=2, retry_on=ConnectionError),
    )
    def book_carrier(self, ctx: Context) -> dict[str, Any]:
        """Tried again after 0.1 s, 0.2 s, 0.4 s ... and a little chance; while it waits no worker is held."""
        if ctx.attempt < 3:
            log.info("the carrier does not answer")
            raise ConnectionError("503 from the carrier")
        return {"carrier": "courier" if self.express else "post", "booking": f"B-{self.order_id:05}"}

    @task(depends_on=[check_inventory, check_fraud])
    def pack(self, validate: dict[str, Any], ctx: Context) -> int:
        """A longer step says how far it is, and asks now and then whether it should stop: a thread cannot be killed."""
        pieces = [item for item, count in validate["items"].items() for _ in range(count)]
        for number, item in enumerate(pieces, start=1):
            ctx.check()
            time.sleep(0.15)
            ctx.progress(number, len(pieces), item)
        return len(pieces)

    @step(also_depends_on=[book_carrier, pack])
    def ship(self, charge: dict[str, Any], book_carrier: dict[str, Any], pack: int) -> dict[str, Any]:
        """Three nodes are waited for. It runs once, after the last of them, whichever that is."""
        return {"order": self.order_id, "paid": charge["amount"], "pieces": pack, **book_carrier}


def main() -> None:
    with database() as path, Engine(f"sqlite:///{path}") as engine:
        run = engine.run(OrderWorkflow(order_id=7, express=True), run_id="order-7", check=False)
        for node in run.nodes():
            said = f"  {node.progress.done:g} of {node.progress.total:g}" if node.progress else ""
            print(f"{node.name:<16} {node.status:<10} attempts: {len(node.attempts)}{said}")
        for line in run.logs():
            print(f"{line.level} {line.node}, attempt {line.attempt}: {line.message}")
        if run.status != "COMPLETED":
            raise SystemExit(str(run.why()))
        print(run.status, run.output("ship"))


if __name__ == "__main__":
    main()
