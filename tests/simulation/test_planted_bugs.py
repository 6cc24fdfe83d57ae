"""The tests are tested: bugs planted in kernel, store and runner must be noticed."""

import pytest

from tests.simulation.simulate.explore import live
from tests.simulation.simulate.mutants import MUTANTS


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 15


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_noticed(name: str) -> None:
    with MUTANTS[name]():
        seed = next((seed for seed in range(2_000) if live(seed).problem is not None), None)
    assert seed is not None, f"not noticed: {name}"
    assert live(seed).problem is None, "it is the planted bug that was noticed"
