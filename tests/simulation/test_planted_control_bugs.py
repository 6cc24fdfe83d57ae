"""Bugs planted in what users ask of runs must be noticed. A file of its own, so that both are looked for at once."""

import pytest

from tests.simulation.simulate import control_mutants
from tests.simulation.simulate.mutants import MUTANTS
from tests.simulation.test_planted_bugs import notice


@pytest.mark.parametrize("name", [name for name in MUTANTS if MUTANTS[name].__module__ == control_mutants.__name__])
def test_a_planted_bug_of_control_is_noticed(name: str) -> None:
    notice(name)
