"""A store with something of everything, for looking at the pages: see screenshots.py."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepwell import Builder, Context, Document, Engine, Pipeline, Retry, Run, Trigger, Workflow, step, task

log = logging.getLogger("shop")
log.setLevel(logging.INFO)

SECONDS = 60.0

REPORT = """
name: nightly-report
description: Yesterday's figures of every shop, by mail.
triggers:
  - {name: report-nightly, cron: "30 2 * * *", timezone: Europe/Berlin, input: {day: "{{ fire.date }}"}}
input:
  properties:
    day: {type: string, format: date, description: The day the report is about.}
    shops: {type: integer, minimum: 1, default: 3}
    currency: {enum: [EUR, USD], default: EUR}
  required: [day]
nodes:
  - {id: load, handler: transform, config: {template: "sales of {{ input.day }}"}}
  - {id: total, handler: transform, config: {template: "total of {{ load.result }}"}, dependencies: [load]}
  - {id: mail, handler: transform, config: {template: "Dear team, {{ total.result }}"}, dependencies: [total]}
"""
CHANGED = REPORT.replace(
    "  - {id: mail,",
    """  - {id: chart, handler: transform, config: {template: "chart of {{ load.result }}"}, dependencies: [load]}
  - {id: mail,""",
).replace("Dear team, {{ total.result }}", "Good morning, {{ total.result }}")


class Checkout(Workflow):
    """Takes one order from validation to a parcel on its way."""

    order_id: int
    express: bool = False

    @step
    def validate(self) -> dict[str, Any]:
        log.info("order %d has 3 items", self.order_id)
        return {"customer": f"customer-{self.order_id % 100}", "items": {"lamp": 2, "desk": 1}, "express": self.express}

    @task(depends_on=validate, retry=Retry(max_attempts=3, base_delay=0.05))
    def check_fraud(self, ctx: Context) -> dict[str, Any]:
        time.sleep(random.Random(self.order_id).uniform(0.02, 0.12))
        if ctx.attempt == 1 and self.order_id % 3 == 0:
            raise ConnectionError("the fraud service closed the connection")
        return {"score": 0.1}

    @task(depends_on=validate)
    def check_inventory(self) -> dict[str, int]:
        time.sleep(0.03)
        return {"lamp": 10, "desk": 2}

    @step(depends_on=[check_fraud, check_inventory])
    def charge(self) -> dict[str, Any]:
        if self.order_id % 13 == 7:
            raise ValueError(f"the card of customer-{self.order_id % 100} was declined: insufficient funds")
        return {"amount": 31_300, "currency": "EUR"}

    @task(depends_on=charge)
    def pack(self) -> int:
        time.sleep(0.05)
        return 3

    @step(depends_on=[pack, charge])
    def ship(self) -> dict[str, Any]:
        return {"order": self.order_id, "carrier": "courier" if self.express else "post"}


class Training(Workflow):
    """Trains a model; runs for as long as it is looked at."""

    model: str = "forecast"
    epochs: int = 40
    seconds: float = 0.0

    @step
    def download(self) -> str:
        print("1.2 GB in 14 files")
        return "dataset-2026-11"

    @task(depends_on=download, queue="gpu")
    def train(self, ctx: Context) -> float:
        if self.seconds == 0:
            return 0.93
        until = time.monotonic() + self.seconds
        epoch = 0
        while time.monotonic() < until:
            ctx.check()
            epoch = min(epoch + 1, self.epochs - 2)
            ctx.progress(epoch, self.epochs, f"epoch {epoch}")
            log.info("epoch %d of %d: loss %.4f", epoch, self.epochs, 2.3 / (epoch + 1))
            if epoch % 9 == 0:
                log.warning("the learning rate is lowered to %.5f", 0.01 / epoch)
            time.sleep(0.5)
        return 0.93

    @task(depends_on=download)
    def baseline(self) -> float:
        return 0.81

    @step(depends_on=[train, baseline])
    def publish(self) -> str:
        return "models/forecast-12"


class Payout(Workflow, on_failure="pause"):
    """Waits for a person when the bank says no."""

    account: str = "DE02 1203 0000 0000 2020 51"

    @step
    def collect(self) -> int:
        return 129_000

    @step
    def transfer(self) -> str:
        raise PermissionError("the bank wants a second signature above 100,000 EUR")


def is_large(assess: dict[str, Any]) -> bool:
    return bool(assess["amount"] > 1_000)


class Claim(Workflow):
    """Small damages are paid at once; large ones only after somebody has looked at them."""

    amount: int = 240

    @step
    def assess(self) -> dict[str, Any]:
        return {"amount": self.amount, "kind": "water"}

    @task(depends_on=assess, when=is_large)
    def review(self) -> str:
        return "the pipe burst"

    @task(depends_on=review)
    def inspect(self) -> str:
        return "as described"

    @task(depends_on=assess, when=lambda assess: assess["kind"] == "fire")
    def call_brigade(self) -> str:
        return "asked for their report"

    @step(depends_on=[assess, inspect, call_brigade])
    def pay(self, inspect: str | None = None) -> int:
        return self.amount

    @step(depends_on=[pay, assess])
    def write_letter(self) -> str:
        return "Dear customer"


class Announce(Workflow):
    text: str = ""

    @step
    def post(self) -> str:
        return self.text


def resize(number: int) -> dict[str, Any]:
    time.sleep(0.01)
    if number % 83 == 41:
        raise OSError(f"image_{number}.jpg is truncated: 4,096 of 81,220 bytes")
    return {"image": number, "width": 1_280}


def make_album(**parts: Any) -> int:
    return len(parts)


WORKFLOWS = (Checkout, Training, Payout, Claim, Announce)

TRIGGERS: tuple[dict[str, Any], ...] = (
    {"name": "poll-orders", "workflow": Checkout, "every": "15m", "input": {"order_id": 1}, "overlap": "skip"},
    {
        "name": "order-placed",
        "workflow": Checkout,
        "webhook": {"scheme": "github", "secret": "secret:SHOP_HOOK"},
        "input": {"order_id": 1},
        "description": "The shop posts each new order.",
    },
    {
        "name": "announce-model",
        "workflow": Announce,
        "run_finished": {"workflow": "Training"},
        "input": {"text": "done"},
    },
    {"name": "announce-digest", "workflow": Announce, "state": {"pipeline": "blog", "state_type": "digest"}},
)


def blog(root: Path) -> Pipeline:
    """A pipeline whose states are not made yet."""
    for day in range(14, 18):
        notes = root / "notes" / f"2026-11-{day}.txt"
        notes.parent.mkdir(parents=True, exist_ok=True)
        notes.write_text("notes of the day")
    pipeline = Pipeline("blog", root=root)
    pipeline.stage("digest", input="notes/{date}.txt", output="digests/{date}.md", version="1")(digest_of)
    return pipeline


def digest_of(text: str) -> str:
    return text


def await_that(condition: Callable[[], Any], what: str) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, f"waited in vain until {what}"
        time.sleep(0.05)


@contextmanager
def filled(engine: Engine, url: str) -> Iterator[dict[str, Run]]:
    """Sample runs by name, most of them ended. A server works on all queues but `gpu`; for that there is a worker here."""
    for document in (REPORT, CHANGED):
        engine.save(Document.parse(document))
    for trigger in TRIGGERS:
        engine.triggers.add(Trigger(**trigger))
    orders = [
        engine.start(
            Checkout(order_id=number, express=number % 2 == 0), tags={"shop": "berlin" if number % 2 else "oslo"}
        )
        for number in range(1, 31)
    ]
    reports = [engine.start("nightly-report", input={"day": f"2026-11-{day}"}) for day in range(10, 20)]
    album = Builder("album", on_failure="finish")
    images = album.fan_out(range(300), job=resize, name=lambda i: f"resize_{i}", args=lambda i: {"number": i})
    album.node("make_album", job=make_album, depends_on=images)
    labels = Builder("labels")
    labels.node("print_labels", job=make_album, queue="printers")
    engine.start(labels)  # no worker takes nodes from this queue
    skipped, reviewed = engine.start(Claim()), engine.start(Claim(amount=8_000))
    fan, paused, lost = engine.start(album), engine.start(Payout()), lose_a_worker(engine, url)
    with gpu_worker(url):
        past = [engine.start(Training(epochs=epochs)) for epochs in (10, 20, 30, 40, 50, 60)]
        for run in (*orders, *reports, *past, skipped, reviewed, fan, lost):
            run.wait(SECONDS)
        await_that(lambda: paused.status == "PAUSED", "the payout is paused")
        failed = orders[6]
        fork = failed.fork(input={"order_id": 8}).wait(SECONDS)
        slow = engine.start(Training(epochs=400, seconds=3_600), tags={"team": "forecast"})
        await_that(lambda: slow.node("train").status == "RUNNING", "the training runs")
        yield {
            "failed": failed,
            "retried": orders[8],
            "fan": fan,
            "paused": paused,
            "slow": slow,
            "fork": fork,
            "skipped": skipped,
            "reviewed": reviewed,
            "lost": lost,
            "report": reports[0],
        }


@contextmanager
def gpu_worker(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of the queue `gpu`, in a process of its own."""
    command = [sys.executable, "-m", "stepwell", "--store", url, "work", "tests.browser.sample", "--queues", "gpu"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def lose_a_worker(engine: Engine, url: str) -> Run:
    """A run whose worker was killed in the middle of it."""
    with gpu_worker(url):
        run = engine.start(Training(model="churn", seconds=1))
        await_that(lambda: run.node("train").status == "RUNNING", "the training runs")
    return run
