"""Workflows that the browser looks at: they fail, wait and go on when the test says so, by files in a folder."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

from stepwell import Retry, Workflow, step, task

for _name in ("stock", "talk"):
    logging.getLogger(_name).setLevel(logging.INFO)

MARKUP = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
ARABIC = "\u202eمرحبا"
EMOJI = "👩‍💻"
LONG = "x" * 1_000_000


def folder() -> Path:
    return Path(os.environ["STEPWELL_BROWSER_FOLDER"])


def wait_for(name: str) -> None:
    until = time.monotonic() + 600  # longer than any test takes on a slow machine
    while not (folder() / name).exists():
        assert time.monotonic() < until, f"nobody wrote {name}"
        time.sleep(0.02)


class Order(Workflow):
    order_id: int
    note: str | None = None

    @step
    def validate(self) -> dict[str, Any]:
        print("validating", self.order_id)
        return {"order": self.order_id, "note": self.note}

    @task(depends_on=validate, retry=Retry(max_attempts=2, base_delay=0.01))
    def check_fraud(self, ctx: Any) -> dict[str, Any]:
        if ctx.attempt == 1:
            raise ConnectionError("the fraud service hung up")
        return {"score": 0.1}

    @task(depends_on=validate)
    def check_stock(self, ctx: Any) -> dict[str, Any]:
        ctx.progress(1, 2, "counting")
        logging.getLogger("stock").info("counted order %d", self.order_id)
        return {"left": 3}

    @step(depends_on=[check_fraud, check_stock])
    def charge(self) -> dict[str, Any]:
        if not (folder() / "card-accepted").exists():
            raise ValueError(f"the card of order {self.order_id} was declined")
        return {"charged": 42}

    @step
    def ship(self) -> str:
        if (folder() / "truck-away").exists():
            wait_for("truck-back")
        return f"parcel {self.order_id}"


class Gate(Workflow):
    """Waits until the test opens it."""

    @step
    def before(self) -> str:
        return "before"

    @step
    def hold(self) -> str:
        wait_for("gate-open")
        return "held"

    @step
    def after(self) -> str:
        return "after"


class Relay(Workflow):
    """Each node waits for a signal of its own."""

    @step
    def one(self, ctx: Any) -> int:
        ctx.progress(1, 4, "parcels")
        ctx.checkpoint("one is done")
        wait_for("one-goes")
        return 1

    @step
    def two(self) -> int:
        wait_for("two-goes")
        return 2


class Sized(Workflow):
    """A newer version of a class that had no input."""

    size: int

    @step
    def measure(self) -> int:
        return self.size


class Chatty(Workflow):
    """Logs many lines, and goes on until the test ends it."""

    @step
    def talk(self) -> int:
        return talk()


def talk() -> int:
    for number in range(900):
        logging.getLogger("talk").log(logging.ERROR if number == 700 else logging.INFO, "line %d", number)
    wait_for("chat-over")
    print("the very last line")
    return 900


class Hostile(Workflow):
    """Inputs, outputs, logs and errors that would do harm in a page that trusted them."""

    text: str = MARKUP

    @step
    def small(self, ctx: Any) -> dict[str, Any]:
        print(MARKUP, ARABIC, EMOJI * 40)
        ctx.progress(1, 2, MARKUP)
        return {"markup": MARKUP, MARKUP: [EMOJI, ARABIC]}

    @step
    def large(self) -> dict[str, Any]:
        print(MARKUP + LONG)
        return {"markup": MARKUP, "long": LONG}

    @step
    def wide(self) -> dict[str, Any]:
        return {"strings": [LONG[:3_000]] * 2, "many": list(range(1_000)), "deep": deep(10)}

    @step
    def fails(self) -> None:
        raise RuntimeError(MARKUP + ARABIC + LONG)


def deep(levels: int) -> Any:
    return MARKUP if levels == 0 else {MARKUP: deep(levels - 1)}


def square(number: int) -> int:
    if number == 13:
        raise KeyError(f"there is no {number}")
    return number * number


def refuse_nine_or_square(number: int) -> int:
    if number == 9:
        raise PermissionError("nine is not allowed")
    return square(number)


def nap(item: int) -> int:
    wait_for("nap-over")
    time.sleep(0.02)
    return item


def hold() -> None:
    wait_for("gate-open")


def total() -> int:
    return 1


WORKFLOWS = (Order, Gate, Relay, Sized, Chatty, Hostile)
