"""`make prove WHAT=chaos MINUTES=10`: faults of every kind against a fleet, as long as asked, on each store and broker.

Prints progress, and at the end figures; with `--report` they go into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.fleet.drive import Chaos
from tests.chaos.fleet.oracle import Figures
from tests.chaos.fleet.servers import PostgresStoreServer, RabbitBroker, RedisBroker, RedisStoreServer

STORES: dict[str, Callable[[], Any]] = {"Redis": RedisStoreServer, "PostgreSQL": PostgresStoreServer}
BROKERS: dict[str, Callable[[], Any]] = {"Redis": RedisBroker, "RabbitMQ": RabbitBroker}
MOST_UNFINISHED = 300
RUNS_AT_ONCE = 12
PAUSE_SECONDS = 2.0
"""Between two faults."""
PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.chaos.fleet")
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--store", choices=STORES, action="append")
    options.add_argument("--broker", choices=BROKERS, action="append")
    options.add_argument("--report", action="store_true", help="write the figures into docs/reliability.md")
    given = options.parse_args()
    pairs = [(store, broker) for store in given.store or STORES for broker in given.broker or BROKERS]
    print(f"chaos for {given.minutes:g} minutes, seed {given.seed}: {', '.join(f'{s} + {b}' for s, b in pairs)}")
    rows: list[tuple[str, str, Figures, Counter[str], float]] = []
    for number, (store, broker) in enumerate(pairs):
        rows.append((store, broker, *one(store, broker, given.minutes * 60 / len(pairs), given.seed + number)))
    table = report(rows, given.seed)
    print(table)
    if given.report:
        text = PAGE.read_text("utf-8")
        PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{table}{END}", text, flags=re.DOTALL), "utf-8")
    return 0


def one(store_name: str, broker_name: str, seconds: float, seed: int) -> tuple[Figures, Counter[str], float]:
    store, broker = STORES[store_name](), BROKERS[broker_name]()
    began = time.monotonic()

    def tell(what: str) -> None:
        print(f"{store_name:>10} + {broker_name:<8} {time.monotonic() - began:6.0f} s  {what}", flush=True)

    chaos = Chaos(store, broker, seed=seed)
    try:
        chaos.begin()
        tell("the fleet is up")
        told_at = 0.0
        while time.monotonic() - began < seconds:
            if chaos.unfinished() < MOST_UNFINISHED:
                chaos.start_runs(RUNS_AT_ONCE)
            fault = chaos.break_something()
            if time.monotonic() - told_at >= 5:
                told_at = time.monotonic()
                count = f"{len(chaos.started):,} runs started, {chaos.unfinished():,} unfinished"
                tell(f"{count}, {sum(chaos.faults.values())} faults, the last: {fault}")
            time.sleep(chaos.random.random() * PAUSE_SECONDS)
        tell("no more faults: every run must end")
        figures = chaos.heal_and_judge()
        tell(f"all {figures.runs:,} runs have ended as they must")
        return figures, chaos.faults, time.monotonic() - began
    finally:
        chaos.close()
        broker.close()
        store.close()


def report(rows: list[tuple[str, str, Figures, Counter[str], float]], seed: int) -> str:
    lines = [
        f"`make prove WHAT=chaos`, {datetime.datetime.now(datetime.UTC).date()}, seed {seed}, lease 2 s, four processes.",
        "",
        "| store | broker | seconds | runs | nodes | bodies | attempts of lost workers | interrupted | lost | double |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    faults: Counter[str] = Counter()
    for store, broker, figures, broken, seconds in rows:
        faults.update(broken)
        lines.append(
            f"| {store} | {broker} | {seconds:.0f} | {figures.runs:,} | {figures.nodes:,} | {figures.bodies:,} | "
            f"{figures.lost_attempts:,} | {figures.interrupted} | 0 | 0 |"
        )
    lines += ["", "| fault | times |", "|---|---|"]
    lines += [f"| {fault.replace('_', ' ')} | {count} |" for fault, count in faults.most_common()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
