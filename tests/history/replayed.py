"""Workflows that tests replay, here and in other processes. What they do can be changed from outside, as a deploy would."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from stepwell import Context, Delta, Retry, Workflow, effect, step, task
from stepwell.reducers import add, append

CHANGED: set[str] = set()
"""What is another code now than when it was recorded."""
RAN: list[str] = []


def rate(base: str, currency: str) -> dict[str, Any]:
    RAN.append("rate")
    return {"rate": 1.25, "pair": [base, currency]}


async def stock(item: str) -> int:
    RAN.append("stock")
    await asyncio.sleep(0)
    return len(item)


def refuse(reason: str) -> None:
    raise ConnectionRefusedError(reason)


@effect("decorated")
def decorated(value: int) -> int:
    RAN.append("decorated")
    return value + 1


class Order(Workflow):
    """Everything that a body can ask for."""

    item: str = "lamp"
    count: int = 3

    @step(side_effects="pure")
    def price(self) -> dict[str, Any]:
        RAN.append("price")
        return {"item": self.item, "cents": 1_999 * self.count, "exact": 0.1 + 0.2, "name": "Lämpchen ✓"}

    @step(side_effects="recordable")
    def convert(self, price: dict[str, Any], ctx: Context) -> dict[str, Any]:
        RAN.append("convert")
        currency = "GBP" if "currency" in CHANGED else "USD"
        answer = {"rate": 1.25} if "no effect" in CHANGED else ctx.effect("rate", rate, "EUR", currency)
        if "twice" in CHANGED:
            ctx.effect("rate", rate, "EUR", currency)
        if "swallows" in CHANGED:
            try:
                ctx.effect("rate", rate, "EUR", "JPY")
            except Exception:
                answer = {"rate": 1.25}
        answer["rate"] += "cents" in CHANGED
        return {"cents": round(price["cents"] * answer["rate"]), "at": ctx.now().isoformat(), "id": str(ctx.uuid())}

    @task(depends_on=price, side_effects="recordable")
    async def reserve(self, ctx: Context) -> list[int]:
        RAN.append("reserve")
        items = ["a", "bb", "ccc", "bb"]
        found: list[int] = await asyncio.gather(*(ctx.effect("stock", stock, item) for item in items))
        return [*found, decorated(1), ctx.random.randrange(1_000_000)]

    @step(side_effects="recordable")
    def pay(self, ctx: Context) -> str:
        RAN.append("pay")
        try:
            ctx.effect("gate", refuse, "no line")
        except ConnectionError as error:
            return (
                f"{type(error).__name__}: {error}; {ctx.outputs['convert']['cents']} cents, key {ctx.idempotency_key}"
            )
        return "paid"

    @step(depends_on=[pay, reserve])
    def ship(self, pay: str, reserve: list[int]) -> str:
        RAN.append("ship")
        return f"{pay} {sum(reserve[:4])}"


class Opaque(Workflow):
    @step
    def only(self) -> int:
        return 1


class Impure(Workflow):
    """Its body says it is pure, and it is not."""

    @step(side_effects="pure")
    def stamp(self) -> bool:
        return datetime.now().year > 2000

    @step(side_effects="pure")
    def after(self) -> int:
        return 1


class Flaky(Workflow):
    """Fails at first; what it is told durably it is told once."""

    @step(side_effects="recordable", retry=Retry.stored(3, 0, 60.0, None))  # as its cassette has it
    def book(self, ctx: Context) -> list[Any]:
        found = ctx.effect("rate", rate, "EUR", "USD", durable=True)
        other = ctx.effect("attempt", lambda number: number * 10, ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return [ctx.attempt, other, found, ctx.now().isoformat(), ctx.idempotency_key]


class Patient(Workflow):
    """Gives up waiting for one effect, and does not care which of two comes first."""

    @step(side_effects="recordable")
    async def wait(self, ctx: Context) -> str:
        try:
            await asyncio.wait_for(ctx.effect("slow", asyncio.sleep, 60), 0.05)
        except TimeoutError:
            return "gave up"
        return "waited"


class Tally(Workflow):
    """Its nodes return deltas to a state, and look at what those above them made of it."""

    class State:
        total: Annotated[int, add] = 0
        seen: Annotated[list[str], append]

    @step(side_effects="pure")
    def first(self) -> Delta:
        return Delta(total=1, seen="first")

    @step(side_effects="pure")
    def second(self, ctx: Context) -> Delta:
        return Delta({"before": ctx.state.total}, total=11 if "total" in CHANGED else 10, seen="second")

    @step(side_effects="pure")
    def third(self, ctx: Context) -> list[Any]:
        return [ctx.state.total, ctx.state.seen]
