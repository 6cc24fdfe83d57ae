"""What the fleet runs: bodies that write into a ledger outside the engine, and give what an oracle can calculate."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import time
from collections.abc import Iterable

from stepwell import Builder, Context, Retry, Workflow, step, task
from tests.engine.ledger import note

VERSION = int(os.environ.get("CHAOS_VERSION", "1"))
"""Of the class below: workers of the second are deployed while those of the first are alive."""
LONGEST = 0.05
"""Seconds that a body takes."""


def mix(number: int, node: str, above: Iterable[str]) -> str:
    """The output of a node: of what its ancestors gave, so that a hole, or an old value, shows in all that is below."""
    return hashlib.sha256(f"{number}:{node}:{','.join(sorted(above))}".encode()).hexdigest()[:16]


def enter(ledger: str, number: int, ctx: Context) -> str:
    note(ledger, ctx.run_id, ctx.node_name, ctx.attempt, os.getpid())
    return mix(number, ctx.node_name, ctx.outputs.all().values())


def body(ledger: str, number: int, ctx: Context) -> str:
    given = enter(ledger, number, ctx)
    time.sleep(random.random() * LONGEST)
    return given


async def on_loop(ledger: str, number: int, ctx: Context) -> str:
    given = enter(ledger, number, ctx)
    await asyncio.sleep(random.random() * LONGEST)
    return given


def flaky(ledger: str, number: int, ctx: Context) -> str:
    given = body(ledger, number, ctx)
    if ctx.attempt == 1:
        raise ValueError("the first attempt always fails")
    return given


def broken(ledger: str, number: int, ctx: Context) -> str:
    body(ledger, number, ctx)
    raise ValueError("this always fails")


class Diamond(Workflow):
    """Another version of it has one node more."""

    ledger: str
    number: int

    @step
    def top(self, ctx: Context) -> str:
        return body(self.ledger, self.number, ctx)

    @task(depends_on=top)
    def left(self, ctx: Context) -> str:
        return body(self.ledger, self.number, ctx)

    @task(depends_on=top)
    async def right(self, ctx: Context) -> str:
        return await on_loop(self.ledger, self.number, ctx)

    @step(depends_on=[left, right])
    def bottom(self, ctx: Context) -> str:
        return body(self.ledger, self.number, ctx)

    if VERSION > 1:

        @step
        def extra(self, ctx: Context) -> str:
            return body(self.ledger, self.number, ctx)


def chain(args: dict[str, object]) -> Builder:
    w = Builder("chain")
    for number in range(5):
        w.node(f"link{number}", job=on_loop if number % 2 else body, args=args)
    return w


def fan(args: dict[str, object]) -> Builder:
    w = Builder("fan")
    w.node("first", job=body, args=args)
    parts = w.fan_out(range(10), job=body, name=lambda each: f"part{each}", args=lambda _: args)
    w.node("join", job=body, args=args, depends_on=parts)
    return w


def retried(args: dict[str, object]) -> Builder:
    w = Builder("retried")
    w.node("flaky", job=flaky, args=args, retry=Retry(max_attempts=5, base_delay=0.05))
    w.node("after", job=body, args=args)
    return w


def careful(args: dict[str, object]) -> Builder:
    """Its first node runs at most once, whatever happens."""
    w = Builder("careful", on_failure="finish")
    w.node("once", job=body, args=args, on_lost="interrupt")
    w.node("after", job=body, args=args)
    return w


def failing(args: dict[str, object]) -> Builder:
    w = Builder("failing")
    w.node("fine", job=body, args=args)
    w.node("broken", job=broken, args=args)
    w.node("never", job=body, args=args)
    return w


SHAPES = {"chain": chain, "fan": fan, "retried": retried, "careful": careful, "failing": failing}
KINDS = ("diamond", *SHAPES)


def make(kind: str, number: int, ledger: str) -> Workflow | Builder:
    if kind == "diamond":
        return Diamond(ledger=ledger, number=number)
    return SHAPES[kind]({"ledger": ledger, "number": number})
