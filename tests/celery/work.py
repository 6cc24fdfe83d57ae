"""What the workers of these tests run."""

from __future__ import annotations

import os
import time
from pathlib import Path

from stepwell import Builder, Context, Retry, Workflow, step, task
from tests.engine.ledger import note, noted
from tests.engine.waiting import eventually


class Order(Workflow):
    order_id: int

    @step
    def reserve(self) -> int:
        return os.getpid()

    @step
    async def charge(self, reserve: int) -> list[int]:
        return [reserve, os.getpid()]

    @task(depends_on=charge, isolation="process")
    def label(self, charge: list[int]) -> list[int]:
        return [*charge, os.getpid()]


class Review(Workflow):
    """What is decided in one process is known to all."""

    @step
    def check(self) -> bool:
        return False

    @task(depends_on=check, when=lambda check: check, isolation="process")
    def review(self) -> None: ...
    @task(depends_on=review, isolation="process")
    def note(self) -> None: ...
    @task(depends_on=check, when=lambda check: not check, isolation="process")
    def approve(self) -> str:
        return "approved"

    @step(depends_on=[note, approve])
    def ship(self, note: None = None, approve: str | None = None) -> str | None:
        return approve


class Late(Workflow):
    """Its body does not end in time, and cannot be killed in a thread."""

    @task(depends_on=None, timeout=0.3)
    def late(self) -> None:
        time.sleep(60)


class Overruns(Workflow):
    """The same, until a file is there."""

    go_on: str

    @task(depends_on=None, timeout=0.3)
    def overrun(self) -> None:
        eventually(Path(self.go_on).exists)


class Flaky(Workflow):
    ledger: str

    @task(depends_on=None, retry=Retry(max_attempts=3, base_delay=0.1))
    def flaky(self, ctx: Context) -> int:
        note(self.ledger, "flaky", ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return ctx.attempt


class Gpu(Workflow):
    @task(depends_on=None)
    def prepare(self) -> int:
        return os.getpid()

    @task(depends_on=prepare, queue="gpu")
    def train(self) -> int:
        return os.getpid()


class Held(Workflow):
    """Goes on when somebody says so."""

    ledger: str
    go_on: str

    @step
    def hold(self, ctx: Context) -> int:
        note(self.ledger, "begun", os.getpid(), ctx.attempt)
        while not Path(self.go_on).exists():
            time.sleep(0.01)
        note(self.ledger, "ended", os.getpid(), ctx.attempt)
        return ctx.attempt

    @step
    def after(self) -> int:
        return os.getpid()


def nothing(ctx: Context) -> None:
    pass


def nap(ledger: str, ctx: Context) -> int:
    note(ledger, ctx.node_name, ctx.attempt, os.getpid())
    time.sleep(0.2)
    return os.getpid()


def fan(width: int) -> Builder:
    w = Builder("fan")
    parts = w.fan_out(range(width), job=nothing, args=lambda _: {})
    w.node("join", job=nothing, depends_on=parts)
    return w


def naps(ledger: str, width: int) -> Builder:
    w = Builder("naps")
    w.fan_out(range(width), job=nap, args=lambda _: {"ledger": ledger})
    return w


def begun(ledger: str) -> list[str]:
    return [line for line in noted(ledger) if line.startswith("begun")]


def meet(ledger: str, name: str, of: int, ctx: Context) -> str:
    """Ends in the same moment as the others of its run: as soon as all of them have begun."""
    note(ledger, ctx.run_id, name)
    mine = f"{ctx.run_id} "
    while sum(line.startswith(mine) for line in noted(ledger)) < of:
        time.sleep(0.001)
    return name


def entered(ledger: str, ctx: Context) -> str:
    note(ledger, ctx.run_id, ctx.node_name)
    return ctx.node_name


def break_once(ledger: str, mended: str, ctx: Context) -> str:
    note(ledger, ctx.run_id, ctx.node_name)
    if not Path(mended).exists():
        raise ValueError("broken")
    return ctx.node_name


def wait_for(ledger: str, file: str, ctx: Context) -> str:
    """Does not hear that it should stop."""
    note(ledger, ctx.run_id, ctx.node_name)
    while not Path(file).exists():
        time.sleep(0.005)
    return "late"


def visit(ledger: str, parents: list[str], ctx: Context) -> int:
    note(ledger, ctx.run_id, ctx.node_id)
    above = ctx.outputs.all()
    assert all(parent in above for parent in parents), f"{ctx.node_name} began before all of {parents} ended"
    return len(parents)
