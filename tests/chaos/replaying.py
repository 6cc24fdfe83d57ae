"""A workflow that is killed in its middle, and replayed afterwards."""

from __future__ import annotations

import time
from typing import Any

from stepwell import Builder, Context
from tests.engine.ledger import note


def ask(number: int, ledger: str, ctx: Context) -> list[Any]:
    """The one in the middle waits in its first attempt until its worker is killed."""
    told = ctx.effect("told", lambda number: {"number": number, "text": "x" * 20_000}, number)
    if number == 12 and ctx.attempt == 1:
        note(ledger, "waiting")
        time.sleep(600)
    if number % 10 == 0:
        ctx.checkpoint(f"at {number}")
    return [told["number"], ctx.now().isoformat(), str(ctx.uuid()), ctx.random.random()]


def workflow(ledger: str) -> Builder:
    w = Builder("killed")
    for number in range(25):
        w.node(f"n{number}", job=ask, args={"number": number, "ledger": ledger}, side_effects="recordable")
    return w
