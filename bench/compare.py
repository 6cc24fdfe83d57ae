"""`python -m bench.compare OLD_CHECKOUT`: this code beside another checkout of it, in turn, as ratios.

Both are measured in the same minutes on the same servers, each measurement in a process of its own, so that what else the
machine does hits both. Both run on the packages of this environment. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import track

from tests.postgres_server import PostgresServer
from tests.servers.redis_server import RedisServer

from .floors import bare_commits
from .one_case import CASES, ON
from .postgres import bare_commit
from .redis import bare_calls

HERE = Path(__file__).parents[1]
FLOORS = {("sqlite", "chain"): 3.0, ("postgres", "chain"): 5.0, ("redis", "chain"): 5.0}
"""How many times a bare commit or call one of these may take, by store and case."""
RATIOS = {"fan": 0.8, "diamonds": 0.8, "diamond": 1 / 1.3}
"""The least ratio of before to now, by case."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("old", type=Path, help="another checkout")
    parser.add_argument("--stores", nargs="*", default=["sqlite", "postgres", "redis"])
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".bench-") as folder, ExitStack() as stack:
        stores = {name: stack.enter_context(STORES[name](Path(folder))) for name in asked.stores}
        work = [
            (number, store, case)
            for number in range(asked.rounds)
            for store in stores
            for case in asked.cases
            if store in ON.get(case, stores)
        ]
        measured: Measured = {}
        for number, store, case in track(work, "in turn", console=Console(stderr=True)):
            new_url, floor = stores[store]
            checkouts = [asked.old.resolve(), HERE]
            numbers = {path: _measure(path, case, new_url()) for path in checkouts[:: 1 if number % 2 else -1]}
            bare = floor() * 1e6
            for label, now in numbers[HERE].items():
                measured.setdefault((store, case, label), []).append((numbers[checkouts[0]][label], now, bare))
    lines, missed = _table(measured)
    print("\n".join(lines))
    return 1 if missed else 0


def _measure(checkout: Path, case: str, url: str) -> dict[str, float]:
    command = [sys.executable, Path(__file__).with_name("one_case.py"), case, url]
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout}"}
    told = subprocess.run(command, cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE).stdout
    numbers: dict[str, float] = json.loads(told)
    return numbers


Measured = dict[tuple[str, str, str], list[tuple[float, float, float]]]
"""By store, case and label: before, now and the floor, of each round."""


def _table(measured: Measured) -> tuple[list[str], bool]:
    """A table as the pages of this folder have it, and whether a bar is missed."""
    lines = [
        "| store | what | before | now | before / now (least to most) | now / floor | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    missed = False
    for (store, case, label), rounds in measured.items():
        ratios = [old / now for old, now, _ in rounds if now]
        old, now, floor = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(ratios) if ratios else 1.0
        spread = f"{ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
        unit, _, what = label.partition(" ")
        floors = f"{now / floor:.1f}" if unit == "µs" else ""
        verdict = ""
        if (store, case) in FLOORS or case in RATIOS:
            most, least = FLOORS.get((store, case)), RATIOS.get(case)
            bar = f"≤ {most:g} x the floor" if most is not None else f"≥ {least:.2g} x before"
            met = now <= most * floor if most is not None else ratio >= (least or 0)
            missed, verdict = missed or not met, f"{bar}: {'met' if met else '**not met**'}"
        cells = (store, what, f"{_rounded(old)} {unit}", f"{_rounded(now)} {unit}", spread, floors, verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return lines, missed


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


Opened = tuple[Callable[[], str], Callable[[], float]]
"""Makes URLs of new stores, and measures the seconds of a bare commit."""


@contextmanager
def _sqlite(folder: Path) -> Iterator[Opened]:
    numbers = iter(range(1_000_000))
    yield lambda: f"sqlite:///{folder}/{next(numbers)}.db", lambda: bare_commits(folder, 1_000) / 1_000


@contextmanager
def _postgres(folder: Path) -> Iterator[Opened]:
    server = PostgresServer("-c", "max_connections=200")
    try:
        yield server.new_url, lambda: bare_commit(server)
    finally:
        server.close()


@contextmanager
def _redis(folder: Path) -> Iterator[Opened]:
    server = RedisServer("--auto-aof-rewrite-percentage", "0")
    numbers = iter(range(1_000_000))
    try:
        yield lambda: f"{server.url}?namespace=n{next(numbers)}", lambda: bare_calls(server, 1_000) / 1_000
    finally:
        server.stop()


STORES = {"sqlite": _sqlite, "postgres": _postgres, "redis": _redis}


if __name__ == "__main__":
    sys.exit(main())
