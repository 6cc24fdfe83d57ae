"""The tests are tested: bugs planted in kernel, store and runner must be noticed."""

import pytest

from tests.simulation.simulate import core_mutants
from tests.simulation.simulate.explore import live
from tests.simulation.simulate.mutants import MUTANTS


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 40


@pytest.mark.parametrize("name", [name for name in MUTANTS if MUTANTS[name].__module__ == core_mutants.__name__])
def test_a_planted_bug_is_noticed(name: str) -> None:
    notice(name)


def notice(name: str) -> None:
    with MUTANTS[name]():
        seed = next((seed for seed in range(2_000) if live(seed).problem is not None), None)
    assert seed is not None, f"not noticed: {name}"
    assert live(seed).problem is None, "it is the planted bug that was noticed"
