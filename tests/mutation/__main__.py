"""`make mutate`: plant small bugs one at a time, and see whether a test fails.

python -m tests.mutation [--seed 1] [--count 30] [--room core ...] [--only core/kernel/healing.py ...] [--tests tests/core]
                         [--survivors] [--budget 60] [--enough 85]

Of each room (`rooms.py`) the same number of bugs is drawn, SQL and Lua included. With --room, only the tests that guard that
room are measured and run, which takes minutes instead of an hour. `--room stores` stands for all rooms in that folder.

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
from .results import Harmless, Results, Verdict, by_room, score, summary, table_of_rooms, write_report
from .rooms import ROOMS, is_in, room_of, rooms_below
from .trees import ROOT, private_trees, read_sources

KEPT = ROOT / ".mutation"
DOORS = [name for name in ROOMS if "/" not in name]


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=True)
    KEPT.mkdir(exist_ok=True)
    sources = read_sources()
    rooms = [name for folder in asked.room or DOORS for name in rooms_below(folder)]
    modules = [module for module in sources if room_of(module) in rooms]
    everything = list(
        make_mutants(sources, [module for module in modules if not asked.only or is_in(module, asked.only)])
    )
    sample = choose(everything, sources, asked.seed, asked.count)
    tests = asked.tests or ([path for name in rooms for path in ROOMS[name].tests] if asked.room else ["tests"])
    harmless = Harmless(Path(__file__).with_name("harmless.toml"))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="stepwell-mutation-", ignore_cleanup_errors=True) as folder,
            private_trees(Path(folder), asked.jobs) as trees,
        ):
            Path(folder).chmod(0o711)  # a PostgreSQL server of a test runs as another user, and has its data below
            reach, state = measure_tests(trees, sources, KEPT / "reach", tests, console)
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
    console.print(table_of_rooms(verdicts))
    console.print(summary(verdicts), highlight=False)
    for entry in [] if asked.only or asked.room else harmless.without_a_mutant(everything):
        console.print(
            f"tests/mutation/harmless.toml: there is no such mutant any more: {entry}", style="yellow", markup=False
        )
    console.print(f"report: {(KEPT / 'report.md').relative_to(ROOT)}")
    return 0 if all(score(of) >= asked.enough for of in by_room(verdicts).values()) else 1


def choose(mutants: Iterable[Mutant], sources: Mapping[str, str], seed: int, count: int) -> list[Mutant]:
    """As many of each room. A sample stays what it is, but for what has changed itself, when the package changes."""

    def drawn(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}:{mutant.id}".encode()).hexdigest()

    chosen: dict[str, list[Mutant]] = {}
    for mutant in sorted(mutants, key=drawn):
        of_room = chosen.setdefault(room_of(mutant.module), [])
        if len(of_room) < count and mutant.compiles(sources[mutant.module]):
            of_room.append(mutant)
    return [mutant for of_room in chosen.values() for mutant in of_room]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description="Plant small bugs; see whether a test fails."
    )
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--count", type=int, default=30, help="how many mutants of each room")
    parser.add_argument(
        "--room", nargs="*", choices=list(ROOMS), metavar="ROOM", help="rooms; then only the tests that guard them run"
    )
    parser.add_argument("--only", nargs="*", metavar="PATH", help="folders or files below src/stepwell")
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="folders or files of tests to run at all")
    parser.add_argument("--survivors", action="store_true", help="only those that no test has noticed so far")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for one mutant")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at a time")
    parser.add_argument("--enough", type=float, default=85.0, help="percent that have to be noticed for exit code 0")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
