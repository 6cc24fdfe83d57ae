"""Which tests meet a mutant, also when the package has changed since they were measured."""

from __future__ import annotations

from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.reach import Reach, moved_lines

TOLD = {
    "tests": ["t::slow", "t::fast", "t::other"],
    "seconds": [2.0, 0.1, 0.2],
    "broken": [],
    "lines": {"m.py": {"2": [0, 1], "3": [0], "6": [2]}},
}
SOURCE = "def f(a):\n    if a:\n        return a < 1\n\ndef g(a):\n    return a < 2\n"


def mutant(now: str, source: str = SOURCE) -> Mutant:
    return next(each for each in mutants_of("m.py", source) if each.now == now)


def reach(source: str = SOURCE) -> Reach:
    found = Reach({"m.py": source})
    found.add(TOLD, lambda module: moved_lines(SOURCE, source))
    return found


def test_the_tests_that_run_the_line_come_the_fastest_first() -> None:
    assert reach().tests_for(mutant("if False:")) == ["t::fast", "t::slow"]
    assert reach().tests_for(mutant("return a <= 1")) == ["t::slow"]
    assert reach().tests_for(mutant("return a <= 2")) == ["t::other"]


def test_a_test_that_fails_without_a_mutant_says_nothing() -> None:
    found = reach()
    found.broken.append("t::slow")
    assert found.tests_for(mutant("return a <= 1")) == []


def test_lines_that_moved_are_found_and_new_ones_are_run_by_who_runs_the_line_before() -> None:
    changed = "import os\n\n" + SOURCE.replace("return a < 1", "a += 3\n        return a < 1")
    found = reach(changed)
    assert found.tests_for(mutant("if False:", changed)) == ["t::fast", "t::slow"]
    assert found.tests_for(mutant("a += 4", changed)) == ["t::fast", "t::slow"]
    assert found.tests_for(mutant("return a <= 1", changed)) == ["t::slow"]
    assert found.tests_for(mutant("return a <= 2", changed)) == ["t::other"]


def test_a_line_that_was_changed_is_run_by_who_ran_it_before() -> None:
    assert moved_lines("a\nb\nc\n", "a\nB\nC\nd\n") == {1: [1], 2: [2, 3, 4], 3: [2, 3, 4]}
    assert moved_lines("a\nb\nc\n", "a\nc\n") == {1: [1], 2: [], 3: [2]}
    assert moved_lines("a\nb\n", "a\nx\nb\n") == {1: [1, 2], 2: [3]}
