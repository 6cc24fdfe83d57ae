"""What a new user would notice: how fast it is imported, what annotations cost, and how late a loop is that awaits runs."""

from __future__ import annotations

import asyncio
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stepwell import Builder, Context, Engine

from .rows import Row

RUNS = 60


def plain(ctx: Context):  # type: ignore[no-untyped-def]
    return {"a": 1}


def annotated(ctx: Context) -> dict[str, int]:
    return {"a": 1}


async def awaited(ctx: Context) -> None:
    await asyncio.sleep(0)


def importing(folder: Path) -> list[Row]:
    """As Python itself tells it; the best of ten, with compiled files."""
    command = [sys.executable, "-X", "importtime", "-c", "import stepwell"]
    told = [subprocess.run(command, capture_output=True, text=True, check=True).stderr for _ in range(10)]
    best = min(int(re.findall(r"\| +(\d+) \| stepwell$", text, re.MULTILINE)[-1]) / 1e3 for text in told)
    return [Row("import stepwell", "<= 30 ms", f"{best:.1f} ms", best <= 30)]


def annotations(folder: Path) -> list[Row]:
    """The same chain with and without annotations of plain JSON, in turn; the median of the ratios of processor time counts."""
    nodes, ratios = 500, []
    with Engine(f"sqlite:///{folder}/plain.db") as engine:
        engine.run(_chain(3, annotated))
        for number in range(30):
            pair = (plain, annotated) if number % 2 else (annotated, plain)
            took = {job.__name__: _processor_time(engine, _chain(nodes, job)) for job in pair}
            ratios.append(took["annotated"] / took["plain"])
    ratio = statistics.median(ratios)
    return [
        Row(f"chain of {nodes}, outputs annotated as plain JSON", "<= 1.02 x without", f"{ratio:.3f} x", ratio <= 1.02)
    ]


def loops(folder: Path) -> list[Row]:
    """A task that wants to run every millisecond, while 60 runs of three nodes are awaited; the median of the rounds counts."""
    rounds = [asyncio.run(_awaited_runs(folder / f"{number}.db")) for number in range(9)]
    worst = statistics.median(max(late) for late, _ in rounds) * 1e3
    middle = statistics.median(statistics.median(late) for late, _ in rounds) * 1e3
    used = max(max(used) for _, used in rounds) * 1e3
    measured = (
        f"{worst:.1f} ms at worst, {middle:.2f} ms in the median; at most {used:.1f} ms of processor time in a turn"
    )
    return [Row(f"{RUNS} awaited runs: how late the loop is", "< 20 ms", measured, worst < 20)]


def _chain(length: int, job: Any) -> Builder:
    w = Builder("chain")
    for number in range(length):
        w.node(f"n{number}", job=job)
    return w


def _processor_time(engine: Engine, builder: Builder) -> float:
    builder.graph()
    began = time.process_time()
    engine.run(builder)
    return time.process_time() - began


async def _awaited_runs(file: Path) -> tuple[list[float], list[float]]:
    late: list[float] = []
    used: list[float] = []

    async def beats() -> None:
        while True:
            due, before = time.perf_counter() + 0.001, time.thread_time()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - due)
            used.append(time.thread_time() - before)

    w = Builder("awaited")
    for name, job in (("a", plain), ("b", awaited), ("c", annotated)):
        w.node(name, job=job)
    async with Engine(f"sqlite:///{file}") as engine:
        await engine.run(w)  # opening is not what is measured
        beat = asyncio.create_task(beats())
        await asyncio.gather(*(engine.run(w) for _ in range(RUNS)))
        beat.cancel()
    return late, used
