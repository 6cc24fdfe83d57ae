"""A workflow: each method is a step. What completed is never done again, whatever is killed or deployed meanwhile."""

from stepwell import Context, Engine, Retry, Workflow, step


def ask_for_rate(currency: str) -> float:
    return {"EUR": 1.0, "USD": 1.25}[currency]  # imagine: asks a service


class Order(Workflow, side_effects="recordable", node_timeout=60):
    order_id: int
    cents: int = 1999
    currency: str = "EUR"

    @step(retry=Retry(max_attempts=5, base_delay=60, max_delay=3600, retry_on=ConnectionError))
    def convert(self, ctx: Context) -> int:
        rate: float = ctx.effect("rate", ask_for_rate, self.currency)  # recorded, so a replay asks nobody
        return round(self.cents * rate)

    def key(self) -> str:
        return f"order-{self.order_id}"

    @step(requires_idempotency=True, idempotency_key=key)
    def charge(self, convert: int, ctx: Context) -> str:  # a parameter named like a step is its output
        return f"charged {convert} cents, as {ctx.idempotency_key}"

    @step
    async def thank(self, charge: str) -> str:
        return f"Order {self.order_id}: {charge}. Thank you!"


if __name__ == "__main__":
    with Engine() as engine:
        run = engine.run(Order(order_id=7))
        print(run.output("thank"))
