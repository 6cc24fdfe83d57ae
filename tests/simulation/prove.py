"""`make prove`: the promises, checked by everything that can be enumerated or drawn in about ten minutes.

python -m tests.simulation.prove [--seeds 24000] [--first 0] [--report docs/proof.md]
python -m tests.simulation.prove --seed 17                                  the story of one random world
python -m tests.simulation.prove --shape chain --fault 3:TWICE --workers 1  the story of one planned world
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.simulation.simulate.explore import (
    SHAPES,
    SOMETIMES,
    commits,
    enumerate_faults,
    live,
    planned,
    shortest,
    shrink,
    story,
)
from tests.simulation.simulate.faults import Fault
from tests.simulation.simulate.mutants import MUTANTS
from tests.simulation.simulate.share import Progress, make_pool, share
from tests.simulation.simulate.workload import shapes

MUTANT_SEEDS = 2_000
CHUNK = 100
ENOUGH = 20
"""Findings, after which nothing more is looked for."""


class Finding(NamedTuple):
    where: str
    problem: str
    again: str = ""
    """What to give to this module to see it again."""


class Part(NamedTuple):
    """What one part of the proof found."""

    name: str
    figures: str
    findings: list[Finding]
    seconds: float


class Seeds(NamedTuple):
    """What a range of random worlds came to."""

    events: int
    virtual_seconds: float
    findings: list[Finding]
    seen: Counter[str]
    hashes: dict[int, int]
    """The traces of every hundredth seed."""


class Schedules(NamedTuple):
    """What the planned worlds with the same shape and the same first commit to fail came to."""

    schedules: int
    hit: int
    """In how many of them every planned fault really happened."""
    findings: list[Finding]


class Plans(NamedTuple):
    """The planned worlds of one shape whose first fault is at one commit."""

    shape: str
    faults_at_once: int
    workers: int
    first: int


class Proof:
    """Its parts, one after the other, on all cores, until enough is found."""

    def __init__(self, pool: ProcessPoolExecutor, progress: Progress) -> None:
        self.parts: list[Part] = []
        self._pool = pool
        self._progress = progress
        self._found = 0

    @property
    def over(self) -> bool:
        """Enough has gone wrong."""
        return self._found >= ENOUGH

    def seeds(self, seeds: int, first: int) -> None:
        start = time.perf_counter()
        chunks = [(at, min(at + CHUNK, first + seeds)) for at in range(first, first + seeds, CHUNK)]
        tasks = [(chunk, float(chunk[1] - chunk[0])) for chunk in chunks]
        results = share(self._pool, "random worlds", seeds_of, tasks, self._progress, self._enough)
        seconds = time.perf_counter() - start
        lived = seeds if len(results) == len(chunks) else len(results) * CHUNK
        figures = (
            f"{lived:,} seeds, {sum(result.events for result in results):,} events, "
            f"{sum(result.virtual_seconds for result in results) / 3600:,.1f} virtual hours, "
            f"{lived / seconds / (os.cpu_count() or 1):.0f} seeds/s per core"
        )
        findings = [finding for result in results for finding in result.findings]
        self.parts.append(Part("random worlds", figures, findings, seconds))
        if not self.over:
            self._states(sum((result.seen for result in results), Counter[str]()))
            self._determinism({seed: value for result in results for seed, value in result.hashes.items()})

    def _states(self, seen: Counter[str]) -> None:
        unseen = [Finding("sometimes", f"never reached: {state}") for state in SOMETIMES if not seen[state]]
        reached = ", ".join(f"{state} {seen[state]:,}" for state in SOMETIMES)
        self.parts.append(Part("interesting states reached", reached, unseen, 0))

    def _determinism(self, hashes: dict[int, int]) -> None:
        start = time.perf_counter()
        again = rehash(sorted(hashes))
        unequal = [
            Finding(f"seed {seed}", "another trace in another process", f"--seed {seed}")
            for seed in hashes
            if hashes[seed] != again[seed]
        ]
        figures = f"{len(hashes):,} seeds lived again in another process: equal traces"
        self.parts.append(Part("determinism", figures, unequal, time.perf_counter() - start))

    def faults(self, faults_at_once: int) -> None:
        start = time.perf_counter()
        workers = 2 if faults_at_once == 1 else 1
        lengths = {shape: commits(shapes()[shape], workers=workers) for shape in SHAPES}
        tasks = [
            (Plans(shape, faults_at_once, workers, first), _weight(length, first, faults_at_once))
            for shape, length in lengths.items()
            for first in range(1, length + 1)
        ]
        name = "every single fault" if faults_at_once == 1 else "every pair of faults"
        results = share(self._pool, name, schedules_of, tasks, self._progress, self._enough)
        findings = [finding for result in results for finding in result.findings]
        hit = sum(result.hit for result in results)
        figures = (
            f"{sum(result.schedules for result in results):,} schedules, {hit:,} of them with "
            f"{'the fault' if faults_at_once == 1 else 'both faults'} hit: every fault at every commit of {len(SHAPES)} "
            f"shapes, {'two workers' if workers == 2 else 'one worker and its successors'}, "
            f"{min(lengths.values())} to {max(lengths.values())} commits each without faults"
        )
        self.parts.append(Part(name, figures, findings, time.perf_counter() - start))

    def mutants(self) -> None:
        start = time.perf_counter()
        tasks = [(name, 1.0) for name in MUTANTS]
        caught = share(self._pool, "planted bugs", mutant_is_caught, tasks, self._progress)
        missed = [Finding(name, f"not noticed within {MUTANT_SEEDS:,} seeds") for name, seed in caught if seed is None]
        worst = max((seed for _, seed in caught if seed is not None), default=0)
        figures = f"{len(caught) - len(missed)} of {len(caught)} planted bugs noticed, the last at seed {worst}"
        self.parts.append(Part("planted bugs", figures, missed, time.perf_counter() - start))

    def _enough(self, result: Seeds | Schedules) -> bool:
        self._found += len(result.findings)
        return self.over


def _weight(length: int, first: int, faults_at_once: int) -> float:
    """Schedules with a first fault at this commit, about; one that is longer takes longer."""
    return float(length) if faults_at_once == 1 else float((length - first + 8) * length)


def seeds_of(chunk: tuple[int, int]) -> Seeds:
    events, virtual, seen = 0, 0.0, Counter[str]()
    findings: list[Finding] = []
    hashes = {}
    for seed in range(*chunk):
        life = live(seed)
        events += life.events
        virtual += life.virtual_seconds
        seen.update(life.seen)
        if life.problem is not None:
            findings.append(Finding(f"seed {seed}", life.problem, f"--seed {seed}"))
        if seed % 100 == 0:
            hashes[seed] = life.trace_hash
    return Seeds(events, virtual, findings, seen, hashes)


def schedules_of(plans: Plans) -> Schedules:
    workload, workers = shapes()[plans.shape], plans.workers
    count = hit = 0
    findings: list[Finding] = []
    for plan, life in enumerate_faults(workload, plans.faults_at_once, workers=workers, first=plans.first):
        count += 1
        hit += life.hits == plans.faults_at_once
        if life.problem is not None:
            less = shrink(workload, plan, workers=workers)
            findings.append(Finding(_place(plans.shape, less), life.problem, _again(plans.shape, less, workers)))
        if len(findings) >= ENOUGH:
            break
    return Schedules(count, hit, findings)


def _place(shape: str, plan: dict[int, Fault]) -> str:
    faults = " and ".join(f"'{fault}' at commit {number}" for number, fault in plan.items())
    return f"{shape} with {faults or 'no fault at all'}"


def _again(shape: str, plan: dict[int, Fault], workers: int) -> str:
    faults = [f"--fault {number}:{fault.name}" for number, fault in plan.items()]
    return " ".join([f"--shape {shlex.quote(shape)}", *faults, f"--workers {workers}"])


def mutant_is_caught(name: str) -> tuple[str, int | None]:
    """The first seed that notices a planted bug, and is well without it."""
    with MUTANTS[name]():
        seed = next((seed for seed in range(MUTANT_SEEDS) if live(seed).problem is not None), None)
    return name, seed if seed is not None and live(seed).problem is None else None


def rehash(seeds: list[int]) -> dict[int, int]:
    """The traces of these seeds in a fresh process with another hash seed."""
    code = (
        "import sys, json\nfrom tests.simulation.simulate.explore import live\n"
        "print(json.dumps({seed: live(seed).trace_hash for seed in json.loads(sys.argv[1])}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    output = subprocess.run(
        [sys.executable, "-c", code, str(seeds)], env=environment, check=True, capture_output=True, text=True
    ).stdout
    return {int(seed): value for seed, value in json.loads(output).items()}


def prove(seeds: int, first: int, progress: Progress) -> list[Part]:
    with make_pool(os.cpu_count() or 1) as pool:
        proof = Proof(pool, progress)
        steps: list[Callable[[], None]] = [
            lambda: proof.seeds(seeds, first),
            lambda: proof.faults(1),
            lambda: proof.faults(2),
            proof.mutants,
        ]
        for step in steps:
            if not proof.over:
                step()
    return proof.parts


def report(parts: list[Part]) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [f"| {part.name} | {part.figures} | {len(part.findings)} | {part.seconds:.0f} s |" for part in parts]
    head = f"# The last proof\n\n`make prove`, {today}, {os.cpu_count()} cores.\n\n"
    return head + "| part | figures | findings | time |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"


def _further_sections(file: Path) -> str:
    """What else stands in the report, such as the figures of `make fuzz`."""
    text = file.read_text("utf-8") if file.exists() else ""
    return "\n" + text[text.index("## ") :] if "\n## " in text else ""


def _tell(parts: list[Part]) -> None:
    for part in parts:
        print(f"{'ok ' if not part.findings else 'BAD'}  {part.name:28s} {part.figures}")
        for finding in part.findings[:5]:
            print(f"       {finding.where}: {finding.problem[:300]}")
            if finding.again:
                print(f"         again: python -m tests.simulation.prove {finding.again}")
    found = sum(len(part.findings) for part in parts)
    if found >= ENOUGH:
        print(f"stopped after {found} findings: the rest was not looked at")


def _told_again(options: argparse.Namespace) -> int:
    """The story of one world, to see a finding again."""
    if options.seed is not None:
        lines = story(options.seed)
        print("\n".join(lines))
        well = live(options.seed).problem is None
        if not well:
            print("\n".join(["", "its shortest form:", *shortest(options.seed)]))
        return 0 if well else 1
    life, world = planned(shapes()[options.shape], dict(options.fault), workers=options.workers, tell=True)
    print("\n".join([*(world.trace or ()), life.problem or "all is well"]))
    print(f"{life.hits} of {len(options.fault)} planned faults happened")
    return 0 if life.problem is None else 1


def _fault(text: str) -> tuple[int, Fault]:
    number, _, name = text.partition(":")
    if not number.isdigit() or name not in Fault.__members__:
        raise argparse.ArgumentTypeError(f"{text!r}: COMMIT:FAULT, as 3:TWICE; faults: {', '.join(Fault.__members__)}")
    return int(number), Fault[name]


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the promises of Stepwell in simulated worlds.")
    parser.add_argument("--seeds", type=int, default=24_000, help="how many random worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--report", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, help="tell the story of this one random world instead")
    parser.add_argument("--shape", choices=SHAPES, help="tell the story of this shape with the planned faults instead")
    parser.add_argument("--fault", type=_fault, action="append", default=[], metavar="COMMIT:FAULT")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    if options.seed is not None or options.shape is not None:
        return _told_again(options)
    parts = prove(options.seeds, options.first, Progress(live=sys.stderr.isatty()))
    _tell(parts)
    failing = any(part.findings for part in parts)
    if options.report and not failing:
        options.report.write_text(report(parts) + _further_sections(options.report), "utf-8")
    passed = len(parts) - sum(bool(part.findings) for part in parts)
    print(f"{passed} passed, {len(parts) - passed} failed")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
