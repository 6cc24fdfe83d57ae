"""The shapes that are too large for every day, each worked on in a process of its own."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import psutil

from stepwell import Builder, Engine, Workflow, step, task
from stepwell.engine.runs.run import Run

MIB = 1024 * 1024
ALL_STARTED = threading.Event()


def nothing() -> None:
    return None


def one(item: int) -> int:
    return item


def mebibyte(item: int) -> str:
    """Different each time, or it would be stored once."""
    return random.Random(item).randbytes(MIB // 2).hex()


class Diamond(Workflow):
    @step
    def top(self) -> None:
        ALL_STARTED.wait()

    @task(depends_on=top)
    def left(self) -> None: ...

    @task(depends_on=top)
    def right(self) -> None: ...

    @step(depends_on=[left, right])
    def bottom(self) -> None: ...


def fan(engine: Engine, size: int) -> Iterable[Run]:
    builder = Builder("fan")
    builder.node("first", job=nothing)
    builder.fan_out(range(size - 2), job=one)
    builder.node("last", job=nothing)
    return [engine.start(builder)]


def chain(engine: Engine, size: int) -> Iterable[Run]:
    builder = Builder("chain")
    for number in range(size):
        builder.node(f"node_{number}", job=nothing)
    return [engine.start(builder)]


def diamonds(engine: Engine, size: int) -> Iterable[Run]:
    """None of them ends before all of them have begun."""
    runs = engine.start_many(Diamond() for _ in range(size // 4))
    assert not engine.runs(status="COMPLETED")
    ALL_STARTED.set()
    return runs


def payloads(engine: Engine, size: int) -> Iterable[Run]:
    builder = Builder("payloads")
    builder.fan_out(range(size), job=mebibyte)
    return [engine.start(builder)]


class Case(NamedTuple):
    title: str
    start: Callable[[Engine, int], Iterable[Run]]
    nodes: int
    megabytes: int = 300
    """What the process may take at its peak,"""
    growth: int = 50
    """and how much of it after everything was started: work in progress takes memory, work done takes none."""


CASES = {
    "fan": Case("a fan of 100,000 nodes", fan, 100_000),
    "chain": Case("a chain of 5,000 nodes", chain, 5_000),
    "diamonds": Case("10,000 diamonds in flight", diamonds, 40_000),
    "payloads": Case("200 nodes with outputs of 1 MiB", payloads, 200, growth=150),
}


def work(name: str, path: str) -> tuple[float, int]:
    """Do all of it: the seconds from the first call to the end of the last run, and the memory when all had begun."""
    case = CASES[name]
    with Engine(f"sqlite:///{path}") as engine:
        begun = time.perf_counter()
        runs = case.start(engine, case.nodes)
        memory = psutil.Process().memory_info().rss
        for run in runs:
            run.wait()
            run.check()
        return time.perf_counter() - begun, memory


if __name__ == "__main__":
    print(*work(*sys.argv[1:]))
