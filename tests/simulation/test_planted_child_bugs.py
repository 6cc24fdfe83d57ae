"""Bugs planted in child runs must be noticed."""

import pytest

from tests.simulation.simulate import children_mutants
from tests.simulation.simulate.mutants import MUTANTS
from tests.simulation.test_planted_bugs import notice


@pytest.mark.parametrize("name", [name for name in MUTANTS if MUTANTS[name].__module__ == children_mutants.__name__])
def test_a_planted_bug_is_noticed(name: str) -> None:
    notice(name)
