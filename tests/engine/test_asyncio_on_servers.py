"""`async with Engine(...)` on stores that are servers: the same engine, the same methods, the same loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from stepwell import Builder, Context, Engine, Workflow, step

SECONDS = 60


class App:
    """What an application has on its loop, and bodies use."""

    lock: asyncio.Lock
    gate: asyncio.Event
    begun: list[int]


@dataclass
class Parcel:
    sent: date
    price: Decimal


class Order(Workflow):
    order_id: int

    @step(side_effects="pure")
    def pack(self) -> Parcel:
        return Parcel(date(2026, 1, 31), Decimal(self.order_id))

    @step(side_effects="pure")
    async def ship(self, pack: Parcel) -> Parcel:
        async with App.lock:  # on the loop of the application
            return Parcel(pack.sent, pack.price + 1)

    @step(side_effects="pure", isolation="process")
    def bill(self, ship: Parcel) -> list[Parcel]:
        return [ship]


class Waits(Workflow):
    @step
    async def until_the_gate_opens(self, ctx: Context) -> int:
        App.begun.append(ctx.attempt)
        await App.gate.wait()
        return ctx.attempt


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


def test_runs_are_awaited_replayed_forked_and_given_back(server_url: str) -> None:
    async def main() -> None:
        App.lock, App.gate, App.begun = asyncio.Lock(), asyncio.Event(), []
        async with Engine(server_url, close_seconds=0.05, max_processes=1) as engine:
            runs = await asyncio.gather(*(engine.run(Order(order_id=number), wait=SECONDS) for number in range(8)))
            assert [await run.result for run in runs] == [[Parcel(date(2026, 1, 31), Decimal(n + 1))] for n in range(8)]
            assert (await runs[0].replay()).executed == ("pack", "ship", "bill")
            fork = await runs[3].fork("ship", input={"order_id": 5})
            assert await (await fork).output(Order.ship) == Parcel(date(2026, 1, 31), Decimal(4))
            assert not (await runs[0].diff(runs[1])).same_outputs
            await engine.start(Waits(), run_id="waits")
            await until(lambda: App.begun)
            waiting = asyncio.create_task((await engine.get("waits")).wait())
            await asyncio.sleep(0)
            waiting.cancel()  # of the waiting, not of the run
        async with Engine(server_url, workflows=[Waits]) as engine:  # the body was given back, and is begun again
            run = await engine.get("waits")
            await until(lambda: App.begun == [1, 2])
            App.gate.set()
            assert await (await run).result == 2
            assert [each.status for each in (await run.node("until_the_gate_opens")).attempts] == ["LOST", "COMPLETED"]

    async def limited() -> None:
        async with asyncio.timeout(SECONDS):
            await main()

    asyncio.run(limited())


def test_many_runs_of_a_builder_are_awaited_at_once(server_url: str) -> None:
    w = Builder("wide")
    w.node("a", job="tests.engine.jobs:nothing")
    w.node("b", job="tests.engine.jobs:double_later", args={"item": 1})

    async def main() -> None:
        async with Engine(server_url, jobs=["tests.engine.jobs"]) as engine, asyncio.timeout(SECONDS):
            runs = await engine.start_many([w for _ in range(60)])
            await asyncio.gather(*runs)
            assert [await run.output("b") for run in runs] == [2] * 60

    asyncio.run(main())
