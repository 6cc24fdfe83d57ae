"""A program of a user with mistakes that type checkers find: each in a line that says so, and none elsewhere."""

from __future__ import annotations

MISTAKES = """
from orders import Order
from stepwell import Engine, Retry, Workflow, step

with Engine("memory://", node_timeout=3) as engine:
    engine.run(Order(order_id=7), runid="r")  # wrong
    engine.start(Order(order_id=7), priority="high")  # wrong
    engine.start_many([Order(order_id=7)], tag={})  # wrong
    Order(order_id="seven")  # wrong
    run = engine.run(Order(order_id=7), run_id="r", wait=3)
    run.output(Order.charge).lower()
    run.output(Order.convert).lower()  # wrong
    for node in run.nodes():
        node.status.lower()
        node.statu  # wrong


async def main() -> None:
    async with Engine("memory://") as engine:
        await engine.run(Order(order_id=7), runid="r")  # wrong
        await engine.start_many([Order(order_id=7)], tag={})  # wrong
        engine.on("metric", print)  # wrong
        (await engine.runs(limit=3))[0].id.lower()
        run = await engine.start(Order(order_id=7), run_id="r")
        (await run.status).lower()
        run.status.lower()  # wrong
        (await run.wait(timeout=3)).id.lower()
        (await run.retry()).id.lower()
        (await run.output(Order.thank)).lower()
        (await run.output(Order.convert)).lower()  # wrong
        (await run.output("convert")).lower()


class Typed(Workflow):
    @step(retries=3)  # wrong
    def one(self) -> None: ...

    @step(retry=Retry(3, retry_on=lambda error: error.status > 3), timeout=3)
    def two(self) -> None: ...
"""


def wrong_lines() -> set[int]:
    return {number for number, line in enumerate(MISTAKES.splitlines(), 1) if line.endswith("# wrong")}
