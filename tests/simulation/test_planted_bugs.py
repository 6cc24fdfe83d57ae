"""The tests are tested: bugs planted in kernel, store and runner must be noticed."""

import pytest

from tests.simulation.simulate import branching_mutants, core_mutants
from tests.simulation.simulate.explore import live
from tests.simulation.simulate.mutants import MUTANTS

HERE = (core_mutants.__name__, branching_mutants.__name__)


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 40


@pytest.mark.parametrize("name", [name for name in MUTANTS if MUTANTS[name].__module__ in HERE])
def test_a_planted_bug_is_noticed(name: str) -> None:
    notice(name)


NOTICED_BY = {
    "the body of a handed over node is called again": 2,
    "the end of a child run is handed on by nobody": 2,
    "the result of a child run is taken before it has ended": 2,
    "a retry does not reach child runs": 2,
    "a retry starts a second child run": 2,
    "a pause does not reach child runs": 64,
    "a resume does not reach child runs": 56,
    "a child run is created although its parent is stopping": 81,
    "a parked node of a cancelled run waits for ever": 103,
    "a cancel does not reach child runs": 107,
    "a removed node keeps its child run": 107,
    "a pause misses a child run that is being created": 169,
    "a wake between look and park is lost": 256,
    "a child run that is handed over during a pause runs": 1017,
    "a cancelled run does not wait for its child runs": 768,
    "a resume misses a child run that is being created": 1887,
    "a parent that a heal added too late skips its child": 21,
    "a node that comes too late runs all the same": 21,
    "the failure of a removed node fails the run": 21,
    "a lost at-most-once node runs again": 23,
    "a fork says that skipped nodes came too late": 24,
    "a node is attempted again while what is below it is running": 29,
    "a repeated settlement releases the children again": 31,
    "a worker goes on with a graph that the run no longer has": 49,
    "a gate that was left is taken for something else": 52,
    "a node that was removed is run": 60,
    "a fork shares what was done after the point it was forked at": 60,
    "a fork whose maker died is left as it is": 61,
    "a node is attempted again although something stands on it": 63,
    "a cascade begins at the top": 63,
    "a retry runs skipped nodes": 106,
    "a heal takes every skipped node for one that came too late": 1204,
    "what is to run again does not wait for a parent it was given meanwhile": 1514,
}
"""The world that noticed a bug last time is tried first. When it no longer does, others are looked through."""


def notice(name: str) -> None:
    seeds = [NOTICED_BY[name]] if name in NOTICED_BY else []
    with MUTANTS[name]():
        seed = next((seed for seed in (*seeds, *range(2_000)) if live(seed).problem is not None), None)
    assert seed is not None, f"not noticed: {name}"
    assert live(seed).problem is None, "it is the planted bug that was noticed"
