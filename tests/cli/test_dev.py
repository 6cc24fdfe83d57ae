"""`stepwell dev`: code changes, the worker restarts, and runs in progress continue with the new code."""

from __future__ import annotations

import json
import threading

import pytest

from stepwell import Client, Run
from tests.cli.conftest import Shop

FLOW = """
import time
from pathlib import Path
from stepwell import Workflow, step


class Flow(Workflow):
    @step
    def first(self) -> str:
        return "first"

    @step
    def waits(self) -> str:
        while not Path("go").exists():
            time.sleep(0.02)
        return "waited"

    @step
    def last(self, waits: str) -> str:
        return "OLD " + waits
"""


@pytest.mark.timeout(240)
def test_a_run_in_flight_goes_on_with_the_code_that_was_changed(shop: Shop) -> None:
    shop.write("flow.py", FLOW)
    node = {"id": "x", "handler": "transform", "config": {"template": 1}}
    shop.write("one.json", json.dumps({"name": "one", "nodes": [node]}))
    dev = shop.start("dev", "flow", "one.json", "--port", "0")
    lines: list[str] = []
    assert dev.stderr is not None
    reading = threading.Thread(target=lambda: lines.extend(iter(dev.stderr.readline, "")))  # type: ignore[union-attr]
    reading.start()
    try:
        shop.until(lambda: any(" at http" in line for line in lines))
        url = next(line for line in lines if " at http" in line).partition(" at ")[2].partition(";")[0]
        with Client(url) as client:
            assert client.run("one").output("x") == {"result": 1}
            shop.until(lambda: _known(client))
            run = client.start("Flow")
            shop.until(lambda: run.node("waits").status == "RUNNING")
            shop.write("flow.py", FLOW.replace("OLD", "NEW").replace('"first"', '"changed"'))
            shop.until(lambda: any("begins anew" in line for line in lines))
            shop.touch("go")
            assert _ended(run) == {"first": "first", "waits": "waited", "last": "NEW waited"}
    finally:
        dev.terminate()
        dev.wait(60)
        reading.join(30)


def _known(client: Client) -> bool:
    return any(each["name"] == "Flow" for each in client.parts.transport.get("/api/v1/workflows")["items"])


def _ended(run: Run) -> object:
    return run.wait(90).check().outputs
