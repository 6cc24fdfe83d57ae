"""The graphs that are measured, and their bodies, which do nothing."""

from __future__ import annotations

import asyncio

from stepwell import Builder, Workflow, step, task


def nothing() -> None:
    return None


def one(item: int) -> int:
    return item


async def wait_ten_milliseconds(item: int) -> None:
    await asyncio.sleep(0.01)


def chain(nodes: int) -> Builder:
    builder = Builder("chain")
    for number in range(nodes):
        builder.node(f"node_{number}", job=nothing)
    return builder


def fan(width: int) -> Builder:
    builder = Builder("fan")
    builder.node("first", job=nothing)
    builder.fan_out(range(width), job=one)
    builder.node("last", job=nothing)
    return builder


def waiting(width: int) -> Builder:
    builder = Builder("waiting")
    builder.fan_out(range(width), job=wait_ten_milliseconds)
    return builder


class Diamond(Workflow):
    @step
    def top(self) -> None: ...

    @task(depends_on=top)
    def left(self) -> None: ...

    @task(depends_on=top)
    def right(self) -> None: ...

    @step(depends_on=[left, right])
    def bottom(self) -> None: ...
