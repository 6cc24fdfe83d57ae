"""The threads of an engine are those of the table in docs/internals/engine.md, and it starts no thread without need."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from stepwell import Builder
from tests.engine import jobs
from tests.engine.conftest import OpenEngine

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/internals/engine.md").read_text().split("## Threads")[1].split("\n## ")[0]
TABLE = set(re.findall(r"`(stepwell-[a-z-]+)`", SECTION))
STARTED = re.compile(r'(?:name=|DelayedCalls\(|Pool\(\d+, |super\(\).__init__\(engine, )"(stepwell-[a-z-]+)"')


def busy() -> Builder:
    w = Builder("busy", on_failure="finish")
    for number in range(3):
        w.node(f"thread {number}", job=jobs.same, args={"item": number}, timeout=60)
        w.node(f"loop {number}", job=jobs.double_later, args={"item": number})
    w.node("process", job=jobs.whoami, isolation="process")
    w.node("speaks", job=speak)
    return w


def speak() -> None:
    print("a line")


def fails() -> Builder:
    w = Builder("fails")
    w.node("fails", job=jobs.fail)
    w.node("never", job=jobs.nothing, depends_on=["fails"])
    return w


def test_the_threads_of_a_busy_engine_are_those_of_the_table(open_sqlite: OpenEngine) -> None:
    before = {thread for thread in threading.enumerate() if thread.name.startswith("stepwell-")}
    seen: set[str] = set()

    def look(_: object = None) -> None:
        seen.update(thread.name for thread in threading.enumerate() if thread not in before)

    engine = open_sqlite()
    engine.on("node", look)
    engine.work(wait=0)
    for run in [*(engine.start(busy()) for _ in range(5)), engine.start(fails())]:
        run.wait(60)
        look()
    usual = {"body", "loop", "process", "commit", "time", "lease", "housekeeping", "hints", "procedures", "events"}
    assert {name for name in seen if name.startswith("stepwell-")} == {f"stepwell-{name}" for name in usual} <= TABLE


def test_every_thread_that_the_engine_and_its_stores_start_is_in_the_table() -> None:
    files = [*(ROOT / "src/stepwell/engine").rglob("*.py"), *(ROOT / "src/stepwell/stores").rglob("*.py")]
    started = {name for file in files for name in STARTED.findall(file.read_text())}
    assert started | {"stepwell-async-read"} == TABLE


def test_an_engine_that_only_runs_a_chain_has_few_threads(open_sqlite: OpenEngine) -> None:
    before = set(threading.enumerate())
    engine = open_sqlite(max_concurrent_nodes=2)
    w = Builder("chain")
    last = None
    for number in range(5):
        last = w.node(f"n{number}", job=jobs.nothing, depends_on=[last] if last else [])
    engine.run(w)
    names = sorted(thread.name for thread in set(threading.enumerate()) - before)
    assert len([name for name in names if name != "stepwell-body"]) <= 5, names
