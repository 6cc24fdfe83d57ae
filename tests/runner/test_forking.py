"""A fork begins with what its origin has done, and goes its own way from there."""

from __future__ import annotations

import pytest

from stepwell import Engine, Run, Workflow, step, task
from stepwell.errors import InputError
from tests.runner.conftest import OpenEngine

DONE: list[str] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    DONE.clear()


class Trip(Workflow):
    city: str
    nights: int = 1

    @step
    def flight(self) -> str:
        DONE.append("flight")
        return f"to {self.city}"

    @task(depends_on=flight)
    def hotel(self, flight: str) -> str:
        DONE.append("hotel")
        return f"{self.nights} nights after the flight {flight}" + "!" * 20_000

    @task(depends_on=flight)
    def car(self) -> str:
        DONE.append("car")
        return f"car in {self.city}"

    @step(depends_on=[hotel, car])
    def bill(self, hotel: str, car: str) -> list[str]:
        DONE.append("bill")
        return [hotel[:12], car]


@pytest.fixture
def origin(open_engine: OpenEngine) -> tuple[Engine, Run]:
    engine = open_engine()
    run = engine.run(Trip(city="Oslo"))
    DONE.clear()
    return engine, run


def test_what_is_before_a_node_is_shared_and_the_rest_runs(origin: tuple[Engine, Run]) -> None:
    engine, run = origin
    fork = run.fork("hotel", input={"nights": 3}).wait(30).check()
    assert sorted(DONE) == ["bill", "hotel"]
    assert fork.output("bill") == ["3 nights aft", "car in Oslo"]
    assert fork.output("flight") == run.output("flight")
    assert fork.input == {"city": "Oslo", "nights": 3}
    assert run.output("bill") == ["1 nights aft", "car in Oslo"]
    assert fork.origin == (run.id, run.row.seq)
    assert run.origin is None
    assert fork.audit() == run.audit() == []
    assert engine.get(fork.id).node("car").attempts[0].worker == run.node("car").attempts[0].worker


def test_a_fork_of_all_has_nothing_to_do(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    fork = run.fork().wait(30).check()
    assert DONE == []
    assert fork.outputs == run.outputs
    assert fork.audit() == []


def test_a_fork_at_a_point_of_the_history_shares_what_was_done_then(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    fork = run.fork(1).wait(30).check()
    assert sorted(DONE) == ["bill", "car", "flight", "hotel"]
    assert fork.audit() == []


def test_every_point_of_the_history_can_be_forked(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    for seq in range(1, run.row.seq + 1):
        fork = run.fork(seq).wait(30).check()
        assert fork.outputs == run.outputs
        assert fork.audit() == []


def test_a_fork_outlives_its_origin(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    fork = run.fork("bill").wait(30).check()
    run.delete()
    assert fork.output("hotel").startswith("1 nights")
    fork.fork("bill").wait(30).check()
    fork.delete()


def test_a_failed_run_is_forked_with_other_input(open_engine: OpenEngine) -> None:
    class Picky(Workflow):
        number: int

        @step
        def first(self) -> int:
            DONE.append("first")
            return 1

        @step
        def second(self, first: int) -> int:
            if self.number < 0:
                raise ValueError("too small")
            return first + self.number

    engine = open_engine(workflows=[Picky])
    run = engine.run(Picky(number=-1), check=False)
    fork = run.fork("second", input={"number": 5}).wait(30).check()
    assert fork.output("second") == 6
    assert DONE == ["first"]
    assert run.status == "FAILED"


def test_what_cannot_be_forked_is_told(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    with pytest.raises(InputError, match="has no checkpoint 999; there are 1 to"):
        run.fork(999)
    with pytest.raises(InputError, match="nights"):
        run.fork("hotel", input={"nights": "many"})
    with pytest.raises(KeyError, match="has no node 'boat'"):
        run.fork("boat")
