"""Workflows for the tests of the command line. The file is copied into a folder of its own for each test.

Bodies write their name into `ledger.txt`, so that a test can see what ran, and how often.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from stepwell import Builder, Context, Retry, Workflow, step, task

log = logging.getLogger("shop")


def note(line: str) -> None:
    with open("ledger.txt", "a") as ledger:
        ledger.write(line + "\n")


def wait_for(file: str, ctx: Context | None = None) -> None:
    """Until a test creates the file. A run that is stopped ends it."""
    until = time.monotonic() + 120
    while not Path(file).exists():
        if ctx is not None:
            ctx.check()
        if time.monotonic() > until:
            raise TimeoutError(file)
        time.sleep(0.01)


class Order(Workflow):
    order_id: int
    express: bool = False
    factor: float = 1.0
    note: str = ""
    tags: list[str] = []  # noqa: RUF012
    address: dict[str, Any] | None = None

    @step
    def validate(self) -> dict[str, Any]:
        note("validate")
        if self.order_id < 0:
            raise ValueError(f"there is no order {self.order_id}")
        return self.workflow_input()

    @step
    def ship(self, validate: dict[str, Any]) -> dict[str, Any]:
        note("ship")
        return {"shipped": validate}


class Chatty(Workflow):
    """Says something in each of its steps; the second waits for the file `go`, and fails the first time."""

    @step
    def hello(self) -> None:
        print("hello from", "stdout")
        log.warning("\x1b[31mcareful\x1b[0m")

    @step(retry=Retry(2, base_delay=0.001))
    def count(self, ctx: Context) -> str:
        for number in range(3):
            print("number", number)
            ctx.progress(number + 1, 4, "numbers")
        note("count")
        wait_for("go", ctx)
        if ctx.attempt == 1:
            log.error("not this time\nsecond line")
            raise ValueError("once")
        return "counted"


class Slow(Workflow):
    """Three steps; the second waits for the file `go`."""

    @step
    def first(self) -> str:
        note("first")
        return "1"

    @step
    def second(self, ctx: Context) -> str:
        note("second")
        wait_for("go", ctx)
        return "2"

    @step
    def third(self, first: str, second: str) -> str:
        note("third")
        return first + second


class Mended(Workflow):
    """Fails until the file `mended` exists."""

    @step
    def before(self) -> None:
        note("before")

    @step
    def broken(self) -> str:
        note("broken")
        if not Path("mended").exists():
            raise LookupError("not mended yet")
        return "mended"

    @task(depends_on="before")
    def beside(self) -> str:
        note("beside")
        return "beside"


class Again(Workflow):
    """The first attempt fails, the second does not."""

    @step(retry=Retry(max_attempts=2, base_delay=0.01))
    def flaky(self, ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError("try again")
        return ctx.attempt


class Isolated(Workflow):
    """A body in a process of its own, which waits for the file `go`."""

    @step(isolation="process")
    def apart(self) -> str:
        note("apart")
        wait_for("go")
        return "done"


def part(item: int, odd: int | None = None) -> int:
    note(f"part {item}")
    if item == odd:
        raise ValueError(f"{item} is odd")
    return item


def total(ctx: Context) -> int:
    return sum(value for value in ctx.outputs.values() if value is not None)


def fan(width: int = 3, join: bool = True, odd: int | None = None) -> Builder:
    builder = Builder("fan", on_failure="finish")
    parts = builder.fan_out(range(width), job=part, args=lambda item: {"item": item, "odd": odd})
    if join:
        builder.node("total", job=total, depends_on=parts)
    return builder


def crooked() -> Builder:
    return Builder("nothing in it")


def no_builder() -> int:
    return 7


def raising(width: int) -> Builder:
    raise RuntimeError(f"cannot build {width}")


class Careful(Workflow, on_failure="pause"):
    """Stops at what fails, and lets somebody decide; `beside` ends when the file `go` exists."""

    @step
    def before(self) -> str:
        note("before")
        return "before"

    @step
    def broken(self) -> str:
        note("broken")
        if not Path("mended").exists():
            raise LookupError("not mended yet")
        return "mended"

    @step
    def after(self) -> str:
        note("after")
        return "after"

    @task(depends_on="before")
    def beside(self) -> str:
        wait_for("go")
        note("beside")
        return "beside"
