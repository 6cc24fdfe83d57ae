"""Two at a time: measure files of tests, then run the tests that meet each mutant."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from .mutants import Mutant
from .reach import Reach, digest, files_of_tests, measure, shared_digest
from .results import Result, Results, Verdict
from .trees import PACKAGE, Tree

WAVES = (2.0, 15.0)
"""Seconds of tests. Most mutants die at once, so the fastest tests are run without loading the others, then some more."""
START_SECONDS = 30.0
"""What loading the tests takes at most, on a busy machine."""
SLOWER = 4.0
"""How much longer than measured tests may take before they count as hanging."""

Item = TypeVar("Item")


def measure_tests(
    trees: Sequence[Tree], kept: Path, below: Sequence[str], rooms: list[str], console: Console
) -> tuple[Reach, str]:
    """Which tests of these folders or files run which lines, and a digest of all this is true for."""
    kept.mkdir(parents=True, exist_ok=True)
    shared = shared_digest()
    everything = {name: kept / f"{digest([name])}-{shared}.json" for name in files_of_tests()}
    files = {name: everything[name] for name in files_of_tests(below)}
    for old in kept.iterdir():
        if old not in everything.values():
            old.unlink()
    missing = [name for name, file in files.items() if not file.exists()]

    def work(tree: Tree, name: str) -> None:
        measure(tree, name, files[name], rooms)

    if missing:
        share(trees, missing, work, "measuring the tests", console)
    reach = Reach()
    for file in files.values():
        reach.add(file)
    if reach.broken:
        console.print(
            f"left out, because they fail without a mutant: {', '.join(reach.broken)}", style="yellow", markup=False
        )
    return reach, hashlib.sha256(" ".join(sorted(file.name for file in files.values())).encode()).hexdigest()[:16]


class Hunt:
    def __init__(self, trees: Sequence[Tree], reach: Reach, results: Results, budget: float, console: Console) -> None:
        self._trees = trees
        self._reach = reach
        self._results = results
        self._budget = budget
        self._console = console
        self._lock = threading.Lock()

    def run(self, mutants: list[Mutant]) -> None:
        """Judge those that are not judged yet."""
        share(
            self._trees, [each for each in mutants if each not in self._results], self._judge, "mutants", self._console
        )

    def _judge(self, tree: Tree, mutant: Mutant) -> None:
        result = self._result(tree, mutant)
        with self._lock:
            self._results.add(mutant, result)
            if result.verdict is not Verdict.KILLED:
                self._console.print(f"{result.verdict} {mutant.module}:{mutant.line} {mutant.now}", markup=False)

    def _result(self, tree: Tree, mutant: Mutant) -> Result:
        reaching = self._reach.tests_for(mutant)
        if not reaching:
            return Result(Verdict.NOT_REACHED, "", 0, 0)
        chosen = self._within_budget(reaching)
        source = (PACKAGE / mutant.module).read_text("utf-8")
        with tree.changed(mutant.module, mutant.apply(source)):
            for wave in self._waves(chosen):
                slowest = self._reach.seconds[wave[-1]]
                limit = START_SECONDS + SLOWER * sum(self._reach.seconds[test] for test in wave)
                outcome = tree.run_tests(wave, limit, each_seconds=10 + SLOWER * slowest)
                if not outcome.passed:
                    return Result(Verdict.KILLED, outcome.by, len(chosen), len(reaching))
        return Result(Verdict.SURVIVED, "", len(chosen), len(reaching))

    def _within_budget(self, tests: list[str]) -> list[str]:
        """The fastest for half of the time, and for the other half some of all the others."""
        chosen, left = [], self._budget
        while tests and left - self._reach.seconds[tests[0]] > self._budget / 2:
            left -= self._reach.seconds[tests[0]]
            chosen.append(tests[0])
            tests = tests[1:]
        every = max(1.0, sum(self._reach.seconds[test] for test in tests) / left)
        return chosen + [tests[int(at * every)] for at in range(int(len(tests) / every))]

    def _waves(self, tests: list[str]) -> Iterator[list[str]]:
        wave: list[str] = []
        taken, limits = 0.0, [*WAVES, float("inf")]
        for test in tests:
            taken += self._reach.seconds[test]
            if wave and taken > limits[0]:
                yield wave
                wave = []
                limits.pop(0)
            wave.append(test)
        yield wave


def share(
    trees: Sequence[Tree], items: Sequence[Item], work: Callable[[Tree, Item], None], title: str, console: Console
) -> None:
    """Do all the work, each piece in the tree that is free, and show how it goes."""
    free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(item: Item) -> None:
        tree = free.get()
        try:
            work(tree, item)
        finally:
            free.put(tree)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(len(trees)) as pool:
        bar = progress.add_task(title, total=len(items))
        waiting = [pool.submit(one, item) for item in items]
        try:
            for each in as_completed(waiting):
                each.result()
                progress.advance(bar)
        except BaseException:
            for tree in trees:
                tree.close()
            raise


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{60 * task.speed:.1f} a minute" if task.speed else "")
