"""Two at a time: measure files of tests, then run the tests that meet each mutant."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from .mutants import Mutant
from .reach import Moved, Reach, files_of_tests, measure, moved_lines
from .results import Result, Results, Verdict
from .trees import NO_END, ROOT, Outcome, Tree, digest

WAVES = (2.0, 15.0)
"""Seconds of tests. Most mutants die at once, so the fastest tests are run without loading the others, then some more."""
START_SECONDS = 30.0
"""What loading the tests takes at most, on a busy machine."""
SLOWER = 4.0
"""How much longer than measured tests may take before they count as hanging."""

Item = TypeVar("Item")


def measure_tests(
    trees: Sequence[Tree],
    sources: Mapping[str, str],
    kept: Path,
    below: Sequence[str],
    console: Console,
) -> tuple[Reach, str]:
    """Which tests of these folders or files run which lines, and a digest of package and tests."""
    kept.mkdir(parents=True, exist_ok=True)
    package = digest(json.dumps(sources))
    (kept / f"sources-{package}.json").write_text(json.dumps(sources))
    modules = sorted(sources)  # a new one is a reason to measure everything: nobody knows who runs it
    suite = [file.read_text("utf-8") for file in sorted((ROOT / "tests" / "conformance").rglob("*.py"))]
    files: dict[str, Path] = {}
    for name in files_of_tests(below):
        text = (ROOT / name).read_text("utf-8")
        parts = [text, *modules, *(suite if "tests.conformance" in text else ())]
        files[name] = kept / f"tests-{digest(' '.join(parts))}.json"

    def work(tree: Tree, name: str) -> None:
        found = measure(tree, name)
        draft = files[name].with_suffix(".draft")
        draft.write_text(json.dumps({"package": package, **found}))
        draft.replace(files[name])

    missing = [name for name, file in files.items() if not file.exists()]
    if missing:
        share(trees, missing, work, "measuring the tests", console)
    reach = Reach(sources)
    moved = Moves(kept, sources)
    for file in files.values():
        told = json.loads(file.read_text())
        reach.add(told, partial(moved, told["package"]))
    return reach, digest(package + " ".join(sorted(file.name for file in files.values())))


class Moves:
    """Where lines of earlier sources are now."""

    def __init__(self, kept: Path, now: Mapping[str, str]) -> None:
        self._kept = kept
        self._now = now
        self._sources: dict[str, dict[str, str]] = {}
        self._moved: dict[tuple[str, str], Moved] = {}

    def __call__(self, package: str, module: str) -> Moved:
        if package not in self._sources:
            self._sources[package] = json.loads((self._kept / f"sources-{package}.json").read_text())
        if (package, module) not in self._moved:
            old = self._sources[package][module]
            self._moved[package, module] = moved_lines(old, self._now.get(module, ""))
        return self._moved[package, module]


def share_of_others() -> float:
    """How many times as long everything takes because of what else the machine does now."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Hunt:
    def __init__(self, trees: Sequence[Tree], reach: Reach, results: Results, budget: float, console: Console) -> None:
        self._trees = trees
        self._reach = reach
        self._results = results
        self._budget = budget
        self._console = console
        self._lock = threading.Lock()
        self._sound: set[str] = set()

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
        while True:
            reaching = self._reach.tests_for(mutant)
            chosen = self._within_budget(reaching or self._reach.tests_near(mutant), mutant)
            by = self._killed_by(tree, mutant, chosen)
            if by in self._reach.seconds and not self._passes(tree, by):
                self._console.print(f"left out, because it fails without a mutant: {by}", style="yellow", markup=False)
                continue
            verdict = Verdict.KILLED if by else Verdict.SURVIVED if reaching else Verdict.NOT_REACHED
            return Result(verdict, by, len(chosen), len(reaching))

    def _killed_by(self, tree: Tree, mutant: Mutant, tests: list[str]) -> str:
        """The test that fails, or what else happened to it; nothing if all pass."""
        for wave in self._waves(tests):
            with tree.changed(mutant.module, mutant.apply(self._reach.sources[mutant.module])):
                outcome = self._run(tree, wave)
            if outcome.by == NO_END and self._run(tree, wave).by == NO_END:
                self._console.print(f"the machine is too busy for {len(wave)} tests", style="yellow", markup=False)
            elif not outcome.passed:
                return outcome.by
        return ""

    def _run(self, tree: Tree, wave: list[str]) -> Outcome:
        slowest = self._reach.seconds[wave[-1]]
        limit = START_SECONDS + SLOWER * sum(self._reach.seconds[test] for test in wave)
        share = share_of_others()
        return tree.run_tests(wave, limit * share, each_seconds=(10 + SLOWER * slowest) * share)

    def _passes(self, tree: Tree, test: str) -> bool:
        """Whether a test passes without a mutant: asked when it kills its first one."""
        if test not in self._sound and test not in self._reach.broken:
            outcome = tree.run_tests([test], START_SECONDS + 10 * self._reach.seconds[test])
            if outcome.passed:
                self._sound.add(test)
            else:
                self._reach.broken.append(test)
        return test in self._sound

    def _within_budget(self, tests: list[str], mutant: Mutant) -> list[str]:
        """If there is no time for all: those of files named like the module, then the fastest, and some of the others."""
        seconds = self._reach.seconds
        if sum(seconds[test] for test in tests) <= self._budget:
            return tests
        name = Path(mutant.module).stem
        chosen = {test for test in tests if name in Path(test.split("::")[0]).stem}
        left = self._budget / 2
        for test in tests:
            if seconds[test] > left:
                break
            left -= seconds[test]
            chosen.add(test)
        others = [test for test in tests if test not in chosen]
        every = max(1.0, 2 * sum(seconds[test] for test in others) / self._budget)
        chosen.update(others[int(place * every)] for place in range(int(len(others) / every)))
        return [test for test in tests if test in chosen]

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
        if wave:
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
