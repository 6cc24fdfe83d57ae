"""Measure one case on one store, in a process of its own: seconds a unit, on standard output. `compare` runs it.

python one_case.py chain sqlite:///path     (in a checkout, with the Python of its environment)
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[0] = str(Path.cwd())  # and not this folder, which has a module named redis

from bench.shapes import Diamond, chain, fan  # noqa: E402 -- of the checkout it is started in
from stepwell import Engine  # noqa: E402


def chain_node(engine: Engine) -> float:
    return timed(lambda: engine.run(chain(1_000))) / 1_000


def fan_node(engine: Engine) -> float:
    return timed(lambda: engine.run(fan(10_000))) / 10_002


def diamonds(engine: Engine) -> float:
    return timed(lambda: [run.wait() for run in engine.start_many(Diamond() for _ in range(1_000))]) / 1_000


def diamond(engine: Engine) -> float:
    return statistics.median(timed(lambda: engine.run(Diamond())) for _ in range(100))


CASES: dict[str, Callable[[Engine], float]] = {
    "chain": chain_node,
    "fan": fan_node,
    "diamonds": diamonds,
    "diamond": diamond,
}


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main(case: str, url: str) -> None:
    with Engine(url, workflows=[Diamond]) as engine:
        engine.run(Diamond())
        print(CASES[case](engine))


if __name__ == "__main__":
    main(*sys.argv[1:])
