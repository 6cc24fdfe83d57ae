"""A complete claim for small shapes: every fault at every commit. `make prove` does all pairs of them."""

import pytest

from tests.simulation.simulate.explore import SHAPES, enumerate_faults, planned, shrink
from tests.simulation.simulate.faults import Fault
from tests.simulation.simulate.workload import shapes


@pytest.mark.parametrize("shape", SHAPES)
def test_no_single_fault_breaks_a_promise(shape: str) -> None:
    schedules = 0
    for plan, life in enumerate_faults(shapes()[shape], 1, workers=1):
        schedules += 1
        assert life.problem is None, f"{plan}: {life.problem}"
    assert schedules >= 6 * 8


def test_no_pair_of_faults_breaks_a_promise() -> None:
    """A shape in which nothing may happen twice; `make prove` tries the pairs of all shapes."""
    shape = shapes()["at most once"]
    for plan, life in enumerate_faults(shape, 2, workers=1):
        assert life.problem is None, f"{shrink(shape, plan, workers=1)}: {life.problem}"


def test_a_fault_really_happens_where_it_is_planned() -> None:
    life, _ = planned(shapes()["chain"], {2: Fault.CRASH_AFTER}, workers=1)
    assert life.seen[Fault.CRASH_AFTER] == 1
