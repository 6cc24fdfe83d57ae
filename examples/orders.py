"""Order fulfilment: a chain of steps, two checks side by side, and an audit that was put in between later.

    validate -> audit -> enrich -+-> check_fraud -----+-> charge -> ship
                                 +-> check_inventory -+

Run it with `python -m examples.orders`, or with progress to watch:

    stepwell run examples.orders:OrderWorkflow --input order_id=7

The pauses stand for the outside world: a payment provider, a warehouse. Stop the process in the middle and
`stepwell resume RUN` goes on from there; what is completed is not done again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from stepwell import Context, Engine, Retry, Workflow, step, task

log = logging.getLogger(__name__)

PRICES = {"lamp": 4_900, "desk": 21_500, "chair": 8_900}
STOCK = {"lamp": 12, "desk": 3, "chair": 40}
EXPRESS_FEE = 1_500


class OrderWorkflow(Workflow, on_failure="fail_fast"):
    """Takes one order from validation to a parcel on its way. Amounts are in cents."""

    order_id: int
    express: bool = False

    @step
    def validate(self) -> dict[str, Any]:
        time.sleep(0.2)
        if self.order_id <= 0:
            raise ValueError(f"there is no order {self.order_id}")
        return {"customer": f"customer-{self.order_id % 100}", "items": {"lamp": 2, "desk": 1}}

    @step
    def enrich(self, validate: dict[str, Any]) -> dict[str, Any]:
        """A parameter named like an ancestor receives its output: `validate` is what validate returned."""
        time.sleep(0.3)
        goods = sum(PRICES[item] * count for item, count in validate["items"].items())
        return {"goods": goods, "total": goods + (EXPRESS_FEE if self.express else 0), "currency": "EUR"}

    @step(after_step=validate)
    def audit(self, validate: dict[str, Any]) -> None:
        """Inserted: validate -> audit -> enrich. It returns nothing; what it does is its effect."""
        time.sleep(0.2)
        log.info("order %s of %s: %s", self.order_id, validate["customer"], validate["items"])

    @task(depends_on=enrich, retry=Retry(max_attempts=3, base_delay=0.2), timeout=30)
    def check_fraud(self, validate: dict[str, Any], enrich: dict[str, Any]) -> dict[str, Any]:
        """Runs beside check_inventory. Any ancestor may be a parameter, not only the direct ones."""
        time.sleep(0.4)
        score = min(99, enrich["total"] // 1_000)
        if score > 90:
            raise ValueError(f"{validate['customer']} looks too risky: {score}")
        return {"score": score}

    @task(depends_on="enrich")
    async def check_inventory(self, validate: dict[str, Any]) -> dict[str, int]:
        """`def` and `async def` are equal."""
        await asyncio.sleep(0.3)
        short = [item for item, count in validate["items"].items() if STOCK[item] < count]
        if short:
            raise LookupError(f"not enough of {', '.join(short)}")
        return {item: STOCK[item] - count for item, count in validate["items"].items()}

    @step(depends_on=[check_inventory, check_fraud])
    def charge(self, enrich: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Every attempt has the same idempotency key, so that the provider charges once, whatever happens here."""
        time.sleep(0.3)
        return {"amount": enrich["total"], "currency": enrich["currency"], "payment": ctx.idempotency_key}

    @step(also_depends_on=check_inventory)
    def ship(self, charge: dict[str, Any], check_inventory: dict[str, int]) -> dict[str, Any]:
        time.sleep(0.2)
        return {
            "order": self.order_id,
            "paid": charge["amount"],
            "left_in_stock": check_inventory,
            "carrier": "courier" if self.express else "post",
        }


def main() -> None:
    with Engine() as engine:
        run = engine.run(OrderWorkflow(order_id=7, express=True))
        print(run.status, run.output("ship"))


if __name__ == "__main__":
    main()
