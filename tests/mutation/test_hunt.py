"""What tests say of a mutant: only what they would not have said without it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.mutation.hunt import Hunt
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.reach import Reach, moved_lines
from tests.mutation.results import Result, Results, Verdict
from tests.mutation.trees import NO_END, Outcome

SOURCE = "def f(a):\n    return a < 1\n"
PASSED, HANGS = Outcome(True, ""), Outcome(False, NO_END)


class ScriptedTree:
    """Says what tests do with and without a mutant."""

    def __init__(self, mutated: Outcome, usual: Outcome) -> None:
        self._mutated, self._usual = mutated, usual
        self._is_changed = False

    @contextlib.contextmanager
    def changed(self, module: str, source: str) -> Iterator[None]:
        self._is_changed = True
        yield
        self._is_changed = False

    def run_tests(self, tests: list[str], seconds: float, **_: Any) -> Outcome:
        return self._mutated if self._is_changed else self._usual


@pytest.mark.parametrize(
    ("mutated", "usual", "verdict"),
    [
        (PASSED, PASSED, Verdict.SURVIVED),
        (Outcome(False, "t::it"), PASSED, Verdict.KILLED),
        (Outcome(False, "t::it"), Outcome(False, "t::it"), Verdict.NOT_REACHED),
        (HANGS, PASSED, Verdict.KILLED),
        (HANGS, HANGS, Verdict.SURVIVED),
    ],
    ids=["passes", "fails", "fails anyway", "hangs", "is slow anyway"],
)
def test_a_mutant_is_killed_by_what_happens_only_with_it(
    tmp_path: Path, mutated: Outcome, usual: Outcome, verdict: Verdict
) -> None:
    reach = Reach({"base/m.py": SOURCE})
    told = {"tests": ["t::it"], "seconds": [0.1], "broken": [], "lines": {"base/m.py": {"2": [0]}}}
    reach.add(told, lambda module: moved_lines(SOURCE, SOURCE))
    results = Results(tmp_path / "results.jsonl", reach.sources, "state")
    mutant: Mutant = next(each for each in mutants_of("base/m.py", SOURCE) if each.now == "return a <= 1")
    tree: Any = ScriptedTree(mutated, usual)
    Hunt([tree], reach, results, 60, Console(file=io.StringIO())).run([mutant])
    found: Result = results[mutant]
    assert found.verdict is verdict
