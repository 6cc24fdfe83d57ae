"""docs/why.md: runs are brought to stand as it tells, and what is typed says so."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from stepwell import Builder, Engine
from tests.docs.terminal import Terminal, forget, start
from tests.engine.waiting import eventually

SHOP = """
import time
from pathlib import Path
from stepwell import Retry, Workflow, step, task

class Order(Workflow):
    @step
    def validate(self): ...
    @step(retry=Retry(5, base_delay=20))
    def charge(self):
        raise TimeoutError("the bank did not answer")
    @step
    def pack(self): ...
    @step
    def ship(self): ...

class Closed(Workflow):
    @task(depends_on=None, retry=Retry(3, base_delay=0.001))
    def charge(self):
        while not Path("mailing").exists():
            time.sleep(0.001)
        raise ConnectionError("the bank is closed")
    @task(depends_on=None)
    def mail(self, ctx):
        Path("mailing").touch()
        while True:
            ctx.check()
            time.sleep(0.001)

class Report(Workflow):
    @step
    def load(self): ...
    @step
    def render(self):
        if not Path("rendering").exists():
            Path("rendering").touch()
            time.sleep(600)
    @step
    def publish(self): ...

def mutate(item): ...
def aggregate(): ...
"""


@pytest.fixture
def shop(terminal: Terminal) -> Iterator[ModuleType]:
    forget("shop")
    Path("shop.py").write_text(SHOP, encoding="utf-8")
    yield importlib.import_module("shop")
    forget("shop")


def test_why(terminal: Terminal, shop: ModuleType) -> None:
    node, run, killed, failed, again, large = terminal.open("why.md")
    with Engine() as engine:
        order = engine.start(shop.Order(), run_id="order-7")
        eventually(lambda: order.node("charge").status == "WAITING", show=order.why)
        terminal.type(node)
        terminal.type(run)
        order.cancel()
        engine.run(shop.Closed(), run_id="order-8", check=False)
    terminal.type(failed)
    process = start("run", "shop:Report", "--run-id", "report-3")
    try:
        eventually(Path("rendering").exists, seconds=100)
    finally:
        process.kill()
        process.communicate()
    terminal.type(killed)
    with Engine() as engine:
        engine.adopt("report-3").wait(60)
    terminal.type(again)
    builder = Builder("mutations")
    builder.fan_out(range(10_000), job=shop.mutate, name="mutation")
    builder.node("aggregate", job=shop.aggregate)
    with Engine(runner=None) as engine:
        engine.start(builder, run_id="mut-1")
    terminal.type(large)
