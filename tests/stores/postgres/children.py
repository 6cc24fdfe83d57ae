"""Worker processes for tests: `python -m tests.stores.postgres.children URL LEASE`, until the standard input ends."""

from __future__ import annotations

import os
import sys

from stepwell import Context, Engine, Workflow, step, task
from tests.engine.ledger import note

LEASE_SECONDS = 3.0


class Noted(Workflow):
    """A diamond whose bodies write down that they ran."""

    ledger: str

    @step
    def first(self, ctx: Context) -> int:
        note(self.ledger, f"{ctx.run_id}/first", os.getpid())
        return 1

    @task(depends_on=first)
    def left(self, ctx: Context, first: int) -> int:
        note(self.ledger, f"{ctx.run_id}/left", os.getpid())
        return first + 1

    @task(depends_on=first)
    def right(self, ctx: Context, first: int) -> int:
        note(self.ledger, f"{ctx.run_id}/right", os.getpid())
        return first + 2

    @step(depends_on=[left, right])
    def last(self, ctx: Context, left: int, right: int) -> int:
        note(self.ledger, f"{ctx.run_id}/last", os.getpid())
        return left + right


if __name__ == "__main__":
    with Engine(sys.argv[1], workflows=[Noted], lease_seconds=float(sys.argv[2])):
        print("ready", flush=True)
        sys.stdin.read()
