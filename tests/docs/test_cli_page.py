"""docs/cli.md: every command on it is typed, on runs that stand as it tells."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from stepwell import Builder, Engine
from tests.docs.terminal import ROOT, Block, Terminal, forget
from tests.engine.waiting import eventually

SHOP = """
import time
from pathlib import Path
from stepwell import Workflow, step

class Order(Workflow):
    order_id: int
    express: bool = False
    tags: list[str] = []
    @step
    def validate(self): ...
    @step
    def reserve(self): ...
    @step
    def charge(self): ...
    @step
    def pack(self, ctx):
        while Path("hold").exists():
            ctx.check()
            time.sleep(0.001)
    @step
    def label(self): ...
    @step
    def ship(self):
        if Path("broken").exists():
            raise ValueError("no paper")
    @step
    def thank(self): ...

def part(item):
    if item == 77:
        raise ValueError("77 is odd")
    if item == 199:  # so that 77 is not the last to end: the node after all of them is drawn below that
        time.sleep(0.5)

def total(): ...
"""
LONG = "01a1dee2e32f2f768b3cdfd818ba5158"


@pytest.fixture
def shop(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    forget("shop")
    monkeypatch.syspath_prepend(ROOT)
    Path("shop").mkdir()
    Path("shop/__init__.py").write_text(SHOP, encoding="utf-8")
    Path("shop/reports.py").touch()
    yield importlib.import_module("shop")
    forget("shop")


class Stands:
    """Brings the run to stand as a command takes for granted, in a store of its own."""

    def __init__(self, shop: ModuleType) -> None:
        self._shop = shop
        self._engine: Engine | None = None

    def left(self) -> None:
        """Its process is gone, after three nodes."""
        self.held(LONG)
        self.close(keep=True)

    def failed(self) -> None:
        self.close()
        Path("broken").touch()
        with Engine() as engine:
            assert engine.run(self._shop.Order(order_id=7), run_id="order-7", check=False).status == "FAILED"
        Path("broken").unlink()

    def held(self, run_id: str = "order-7") -> None:
        """At work in another process; here that is another engine."""
        self.close()
        Path("hold").touch()
        self._engine = Engine()
        run = self._engine.start(self._shop.Order(order_id=7), run_id=run_id)
        eventually(lambda: run.node("pack").status == "RUNNING", show=run.why)

    def close(self, *, keep: bool = False) -> None:
        if self._engine is not None:
            self._engine.close(0)
            self._engine = None
            Path("hold").unlink(missing_ok=True)
        if not keep:
            shutil.rmtree(".stepwell", ignore_errors=True)


def complete(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, typed: str) -> str:
    """What zsh shows for Tab: it asks by these variables, and gets a list that it draws."""
    with monkeypatch.context() as patch:
        patch.setenv("_STEPWELL_COMPLETE", "complete_zsh")
        patch.setenv("_TYPER_COMPLETE_ARGS", typed.removesuffix("<Tab>"))
        terminal.type(Block("zsh", 0, "$ stepwell\n", is_illustration=False))
    return re.sub(r'"(.*?)":"(.*?)"', r"\1 -- \2", terminal.told)


def test_cli(terminal: Terminal, shop: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    running, steering, showing, many, drawing, tab, scripts = terminal.open("cli.md")
    Path("order.json").write_text(json.dumps({"express": True}), encoding="utf-8")
    terminal.type(running)
    assert json.loads(Path("result.json").read_text(encoding="utf-8")) is None
    stands = Stands(shop)
    runs = {0: stands.left, 3: stands.failed, 5: stands.failed, 8: stands.failed, 9: stands.held, 10: stands.held}
    once = {"work shop shop.reports": "work shop shop.reports --once"}  # it has no end
    terminal.type(steering, {**runs, 11: stands.failed}, replace=once)
    stands.close()
    with Engine() as engine:
        engine.run(shop.Order(order_id=7), run_id=LONG, tags={"customer": "7"})
        orders = importlib.import_module("examples.orders")
        engine.run(orders.OrderWorkflow(order_id=7), run_id="order-7")
        builder = Builder("fan", on_failure="finish")
        builder.fan_out(range(200), job=shop.part)
        builder.node("total", job=shop.total)
        engine.run(builder, run_id="import-7", check=False)
    differs = {"after charge, pack": "after charge, …", "0.01 s .. 0.03 s": "…"}
    differs |= {"1.5 claimed": "… claimed", "36.1 claimed": "… claimed"}
    for block in (showing, many, drawing, scripts):
        terminal.type(block, replace=differs)
    assert Path("order-7.svg").read_text(encoding="utf-8").startswith("<svg")
    assert json.loads(Path("order-7.json").read_text(encoding="utf-8"))["nodes"]
    monkeypatch.setenv("HOME", str(terminal.folder))
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    terminal.instead["stepwell show <Tab>"] = lambda typed: complete(terminal, monkeypatch, typed)
    terminal.type(tab, replace={"RUNNING Order\n": "COMPLETED Order\n"})
