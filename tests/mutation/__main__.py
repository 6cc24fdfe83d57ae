"""`make mutate`: plant small bugs one at a time, and see whether a test fails.

python -m tests.mutation [--seed 1] [--count 100] [--only kernel/healing.py ...] [--tests tests/kernel ...]
                         [--survivors] [--budget 60] [--enough 85]

The first time, and when the package has a new module, every test is measured for the lines it runs, later those of files that
have changed; that is kept in `.mutation/`, and measured anew when that is removed. Each bug is then met by the tests that run
its line, the fastest first, up to the first that fails. What was found is kept too, so a run that was interrupted goes on where
it was. The report is `.mutation/report.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console

from .hunt import Hunt, measure_tests
from .mutants import Mutant, make_mutants
from .results import Harmless, Results, Verdict, score, summary, write_report
from .trees import ROOT, private_trees, read_sources

ROOMS = ["kernel", "store", "runner", "define", "replay"]
KEPT = ROOT / ".mutation"


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=True)
    KEPT.mkdir(exist_ok=True)
    sources = read_sources()
    everything = list(make_mutants(sources, asked.only or ROOMS))
    sample = choose(everything, sources, asked.seed, asked.count)
    harmless = Harmless(Path(__file__).with_name("harmless.toml"))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="stepwell-mutation-", ignore_cleanup_errors=True) as folder,
            private_trees(Path(folder), asked.jobs) as trees,
        ):
            Path(folder).chmod(0o711)  # a PostgreSQL server of a test runs as another user, and has its data below
            reach, state = measure_tests(trees, sources, KEPT / "reach", asked.tests, ROOMS, console)
            results = Results(KEPT / "results.jsonl", sources, state)
            if asked.survivors:
                sample = [mutant for mutant in sample if results.last_verdict(mutant) is not Verdict.KILLED]
            console.print(f"{len(sample)} of {len(everything):,} mutants, seed {asked.seed}")
            Hunt(trees, reach, results, asked.budget, console).run(
                [each for each in sample if not harmless.knows(each)]
            )
    except KeyboardInterrupt:
        console.print("interrupted: the same command goes on from here")
        return 130
    verdicts = {each: Verdict.HARMLESS if harmless.knows(each) else results[each].verdict for each in sample}
    write_report(KEPT / "report.md", verdicts, results, sources)
    console.print(summary(verdicts), highlight=False)
    for entry in [] if asked.only else harmless.without_a_mutant(everything):
        console.print(
            f"tests/mutation/harmless.toml: there is no such mutant any more: {entry}", style="yellow", markup=False
        )
    console.print(f"report: {(KEPT / 'report.md').relative_to(ROOT)}")
    return 0 if score(verdicts) >= asked.enough else 1


def choose(mutants: Iterable[Mutant], sources: Mapping[str, str], seed: int, count: int) -> list[Mutant]:
    """A sample that stays what it is, but for what has changed itself, when the package changes."""

    def drawn(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}:{mutant.id}".encode()).hexdigest()

    chosen: list[Mutant] = []
    for mutant in sorted(mutants, key=drawn):
        if len(chosen) == count:
            break
        if mutant.compiles(sources[mutant.module]):
            chosen.append(mutant)
    return chosen


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description="Plant small bugs; see whether a test fails."
    )
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--count", type=int, default=100, help="how many mutants")
    parser.add_argument("--only", nargs="*", metavar="PATH", help="folders or files below src/stepwell")
    parser.add_argument(
        "--tests", nargs="*", metavar="PATH", default=["tests"], help="folders or files of tests to run at all"
    )
    parser.add_argument("--survivors", action="store_true", help="only those that no test has noticed so far")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for one mutant")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at a time")
    parser.add_argument("--enough", type=float, default=85.0, help="percent that have to be noticed for exit code 0")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
