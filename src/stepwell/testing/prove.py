"""`make prove`: the promises, checked by everything that can be enumerated or drawn in about ten minutes.

python -m stepwell.testing.prove [--seeds 20000] [--first 0] [--report docs/proof.md]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .simulate.explore import SHAPES, SOMETIMES, enumerate_faults, live, planned, shortest
from .simulate.mutants import MUTANTS
from .simulate.workload import shapes

MUTANT_SEEDS = 2_000
CHUNK = 250


class Finding(NamedTuple):
    where: str
    problem: str


class Part(NamedTuple):
    """What one part of the proof found."""

    name: str
    figures: str
    findings: list[Finding]
    seconds: float


def seeds_of(chunk: tuple[int, int]) -> tuple[int, float, list[Finding], Counter[str], dict[int, int]]:
    """(events, virtual seconds, findings, states reached, trace hashes of every hundredth seed)."""
    events, virtual, seen = 0, 0.0, Counter[str]()
    findings, hashes = [], {}
    for seed in range(*chunk):
        life = live(seed)
        events += life.events
        virtual += life.virtual_seconds
        seen.update(life.seen)
        if life.problem is not None:
            findings.append(Finding(f"seed {seed}", life.problem))
        if seed % 100 == 0:
            hashes[seed] = life.trace_hash
    return events, virtual, findings, seen, hashes


def shape_with(task: tuple[str, int]) -> tuple[int, int, list[Finding]]:
    """Every fault, or every pair of faults, in one shape: (schedules, calls, findings)."""
    name, at_once = task
    workload = shapes()[name]
    schedules, findings = 0, []
    workers = 2 if at_once == 1 else 1
    for plan, life in enumerate_faults(workload, at_once, workers=workers):
        schedules += 1
        if life.problem is not None:
            findings.append(Finding(f"{name} with {plan}", life.problem))
    return schedules, planned(workload, {}, workers=workers)[0].calls, findings


def mutant_is_caught(name: str) -> tuple[str, int | None]:
    """The first seed that notices a planted bug, and is well without it."""
    with MUTANTS[name]():
        seed = next((seed for seed in range(MUTANT_SEEDS) if live(seed).problem is not None), None)
    return name, seed if seed is not None and live(seed).problem is None else None


def rehash(seeds: list[int]) -> dict[int, int]:
    """The traces of these seeds in a fresh process with another hash seed."""
    code = (
        "import sys, json\nfrom stepwell.testing.simulate.explore import live\n"
        "print(json.dumps({seed: live(seed).trace_hash for seed in json.loads(sys.argv[1])}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    output = subprocess.run(
        [sys.executable, "-c", code, str(seeds)], env=environment, check=True, capture_output=True, text=True
    ).stdout
    return {int(seed): value for seed, value in json.loads(output).items()}


def prove(seeds: int, first: int, tell: Callable[[str], None]) -> list[Part]:
    with ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        return [
            *_seeds(pool, seeds, first, tell),
            *_shapes(pool, 1, tell),
            *_shapes(pool, 2, tell),
            *_mutants(pool, tell),
        ]


def _timed(results: Iterable[Any], tell: Callable[[str], None], what: str, total: int) -> list[Any]:
    done = []
    for number, result in enumerate(results, 1):
        done.append(result)
        tell(f"{what}: {number} of {total}")
    return done


def _seeds(pool: ProcessPoolExecutor, seeds: int, first: int, tell: Callable[[str], None]) -> list[Part]:
    start = time.perf_counter()
    chunks = [(at, min(at + CHUNK, first + seeds)) for at in range(first, first + seeds, CHUNK)]
    results = _timed(pool.map(seeds_of, chunks), tell, "seeds", len(chunks))
    seconds = time.perf_counter() - start
    seen = sum((result[3] for result in results), Counter[str]())
    findings = [finding for result in results for finding in result[2]]
    virtual = sum(result[1] for result in results)
    figures = (
        f"{seeds:,} seeds, {sum(result[0] for result in results):,} events, {virtual / 3600:,.1f} virtual hours, "
        f"{seeds / seconds / (os.cpu_count() or 1):.0f} seeds/s per core"
    )
    unseen = [Finding("sometimes", f"never reached: {state}") for state in SOMETIMES if not seen[state]]
    reached = ", ".join(f"{state} {seen[state]:,}" for state in SOMETIMES)
    hashes = {seed: value for result in results for seed, value in result[4].items()}
    again = rehash(sorted(hashes))
    unequal = [
        Finding(f"seed {seed}", "another trace in another process") for seed in hashes if hashes[seed] != again[seed]
    ]
    return [
        Part("random worlds", figures, findings, seconds),
        Part("interesting states reached", reached, unseen, 0),
        Part("determinism", f"{len(hashes):,} seeds lived again in another process: equal traces", unequal, 0),
    ]


def _shapes(pool: ProcessPoolExecutor, at_once: int, tell: Callable[[str], None]) -> list[Part]:
    start = time.perf_counter()
    tasks = sorted(
        ((name, at_once) for name in SHAPES), key=lambda task: task[0] not in ("finish", "run retry", "fan-out")
    )
    results = _timed(
        pool.map(shape_with, tasks), tell, "single faults" if at_once == 1 else "pairs of faults", len(tasks)
    )
    findings = [finding for result in results for finding in result[2]]
    workers = "two workers" if at_once == 1 else "one worker and its successors"
    figures = (
        f"{sum(result[0] for result in results):,} schedules: every fault at every commit of {len(tasks)} shapes, {workers}, "
        f"{min(result[1] for result in results)} to {max(result[1] for result in results)} commits each"
    )
    name = "every single fault" if at_once == 1 else "every pair of faults"
    return [Part(name, figures, findings, time.perf_counter() - start)]


def _mutants(pool: ProcessPoolExecutor, tell: Callable[[str], None]) -> list[Part]:
    start = time.perf_counter()
    caught = _timed(pool.map(mutant_is_caught, MUTANTS), tell, "planted bugs", len(MUTANTS))
    missed = [Finding(name, f"not noticed within {MUTANT_SEEDS:,} seeds") for name, seed in caught if seed is None]
    worst = max((seed for _, seed in caught if seed is not None), default=0)
    figures = f"{len(caught) - len(missed)} of {len(caught)} planted bugs noticed, the last at seed {worst}"
    return [Part("planted bugs", figures, missed, time.perf_counter() - start)]


def report(parts: list[Part]) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [f"| {part.name} | {part.figures} | {len(part.findings)} | {part.seconds:.0f} s |" for part in parts]
    head = f"# The last proof\n\n`make prove`, {today}, {os.cpu_count()} cores.\n\n"
    return head + "| part | figures | findings | time |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the promises of Stepwell in simulated worlds.")
    parser.add_argument("--seeds", type=int, default=24_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--report", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    tty = sys.stderr.isatty()
    parts = prove(
        options.seeds, options.first, lambda line: print(f"\r{line}   ", end="", file=sys.stderr) if tty else None
    )
    print("\r", end="", file=sys.stderr)
    for part in parts:
        print(f"{'ok ' if not part.findings else 'BAD'}  {part.name:28s} {part.figures}")
        for finding in part.findings[:5]:
            print(f"       {finding.where}: {finding.problem[:300]}")
    failing = [finding for part in parts for finding in part.findings]
    if options.report and not failing:
        options.report.write_text(report(parts), "utf-8")
    first = next((finding.where for finding in failing if finding.where.startswith("seed ")), None)
    if first is not None:
        print("\n".join(["", f"the shortest story of {first}:", *shortest(int(first.split()[1]))[-80:]]))
    passed = len(parts) - sum(bool(part.findings) for part in parts)
    print(f"{passed} passed, {len(parts) - passed} failed")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
