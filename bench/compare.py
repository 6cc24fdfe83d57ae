"""`python -m bench.compare OLD_CHECKOUT`: this code beside another checkout of it, in turn, as ratios.

Both are measured in the same minutes on the same servers, each measurement in a process of its own, so that what else the
machine does hits both. Both run on the packages of this environment. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import statistics
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
from .rows import HERE, measure

FLOORS = {("sqlite", "chain"): 3.0, ("postgres", "chain"): 5.0, ("redis", "chain"): 5.0}
"""How many times a bare commit or call one of these may take, by store and case."""
RATIOS = {"fan": 0.8, "diamonds": 0.8, "diamond": 1 / 1.3, "outputs": 0.8, "show": 0.8, "close": 0.8, "wait": 0.8}
"""The least ratio of before to now, by case."""
LIMITS = {"memory": 100.0}
"""The most that it may be now: of what is nearly nothing a ratio says little."""


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
            numbers = {path: measure(case, new_url(), path) for path in checkouts[:: 1 if number % 2 else -1]}
            bare = floor() * 1e6
            for label, now in numbers[HERE].items():
                measured.setdefault((store, case, label), []).append((numbers[checkouts[0]][label], now, bare))
    lines, missed = _table(measured)
    print("\n".join(lines))
    return 1 if missed else 0


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
        bar, met = _judged(store, case, now, floor, ratio)
        missed = missed or not met
        verdict = f"{bar}: {'met' if met else '**not met**'}" if bar else ""
        cells = (store, what, f"{_rounded(old)} {unit}", f"{_rounded(now)} {unit}", spread, floors, verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return lines, missed


def _judged(store: str, case: str, now: float, floor: float, ratio: float) -> tuple[str, bool]:
    """The bar, empty if there is none, and whether it is met."""
    if (store, case) in FLOORS:
        most = FLOORS[store, case]
        return f"≤ {most:g} x the floor", now <= most * floor
    if case in LIMITS:
        return f"≤ {LIMITS[case]:g}", now <= LIMITS[case]
    if case in RATIOS:
        return f"≥ {RATIOS[case]:.2g} x before", ratio >= RATIOS[case]
    return "", True


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
