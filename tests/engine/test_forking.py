"""A fork begins with what its origin has done, and goes its own way from there."""

from __future__ import annotations

import threading

import pytest

from stepwell import Context, Engine, Run, Workflow, step, task
from stepwell.base.ids import RunId, new_run_id
from stepwell.core.model import Create, Delete, GateState, Op, Receipt, Share
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.procedures.forking import fork_arguments
from stepwell.errors import InputError, RunConflict, RunNotFound
from tests.engine.conftest import OpenEngine

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
    assert fork.origin == (run.id, run.row.seq, run._index_of("hotel"))
    assert str(fork.origin) == f"{run.id} at {run.row.seq}"
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


def test_a_class_inside_a_function_is_known_to_who_started_it(engine: Engine) -> None:
    class Local(Workflow):
        number: int

        @step
        def only(self) -> int:
            return self.number

    fork = engine.run(Local(number=1)).fork("only", input={"number": 2})
    assert fork.wait(30).output("only") == 2


def test_a_run_that_is_at_work_is_forked(open_engine: OpenEngine) -> None:
    engine = open_engine()
    started, go = threading.Event(), threading.Event()

    class Long(Workflow):
        @step
        def first(self) -> int:
            DONE.append("first")
            return 1

        @step
        def second(self, first: int) -> int:
            DONE.append("second")
            started.set()
            assert go.wait(30)
            return first + 1

    run = engine.start(Long())
    assert started.wait(30)
    fork = run.fork()
    go.set()
    assert fork.wait(30).check().outputs == run.wait(30).check().outputs
    assert DONE == ["first", "second", "second"]
    assert fork.audit() == run.audit() == []


def test_what_cannot_be_forked_is_told(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    with pytest.raises(InputError, match="has no checkpoint 999; there are 1 to"):
        run.fork(999)
    with pytest.raises(InputError, match="nights"):
        run.fork("hotel", input={"nights": "many"})
    with pytest.raises(KeyError, match="has no node 'boat'"):
        run.fork("boat")


def test_a_run_knows_its_forks(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    first = run.fork("bill").wait(30)
    second = run.fork().wait(30)
    assert [fork.id for fork in run.forks()] == [second.id, first.id]
    third = first.fork()
    assert [fork.id for fork in first.forks()] == [third.id]
    assert third.forks() == []
    first.delete()
    assert [fork.id for fork in run.forks()] == [second.id]


def test_the_same_fork_again_is_the_same_run(origin: tuple[Engine, Run]) -> None:
    _, run = origin
    once = run.fork("hotel", run_id="again").wait(30)
    DONE.clear()
    assert run.fork("hotel", run_id="again").id == once.id
    assert DONE == []
    with pytest.raises(
        RunConflict, match=f"run again exists already: forked from {run.id} at {run.row.seq}, and not from"
    ):
        run.fork("bill", run_id="again")
    with pytest.raises(RunConflict, match="with another workflow or input"):
        run.fork("hotel", input={"nights": 9}, run_id="again")
    with pytest.raises(RunConflict, match="is no fork"):
        once.fork(run_id=run.id)


def test_a_fork_of_all_is_the_same_while_its_origin_goes_on(open_engine: OpenEngine) -> None:
    """The first answer was lost: who asks again gets what was shared then."""
    engine = open_engine()
    started, go = threading.Event(), threading.Event()

    class Long(Workflow):
        @step
        def first(self) -> int:
            return 1

        @step
        def second(self, first: int) -> int:
            started.set()
            assert go.wait(30)
            return first + 1

    run = engine.start(Long())
    assert started.wait(30)
    once, named = run.fork(idempotency_key="once"), run.fork(run_id="named")
    go.set()
    run.wait(30)
    assert run.fork(idempotency_key="once").id == once.id
    assert run.fork(run_id="named").id == named.id
    assert len(run.forks()) == 2
    with pytest.raises(RunConflict, match="not from where it was asked for"):
        run.fork(run.row.seq, run_id="named")
    for fork in (once, named):
        fork.wait(30).check()


def test_a_fork_that_nobody_finished_is_finished_by_who_works(open_engine: OpenEngine) -> None:
    """Its maker died after the first commit: what it left is found by the sweeper."""
    engine = open_engine(workflows=[Trip])
    run = engine.run(Trip(city="Oslo"))
    DONE.clear()
    row, name = run.row, new_run_id()
    place = fork_arguments(row, row.seq, run._index_of("bill"))
    engine.store.commit([Create(name, row.workflow, row.target, row.digest, row.input, row.seed, fork=place)])
    fork = engine.adopt(name).wait(60).check()
    assert DONE == ["bill"]
    assert fork.outputs == run.outputs
    assert fork.audit() == []


class Deleting(MemoryStore):
    """Another process deletes the origin just before a fork shares."""

    victim: RunId | None = None

    def commit(self, batch: list[Op]) -> list[Receipt]:  # type: ignore[override]
        if self.victim is not None and any(isinstance(op, Share) for op in batch):
            super().commit([Delete(self.victim)])
        return super().commit(batch)


def test_a_fork_whose_origin_is_deleted_meanwhile_does_not_begin() -> None:
    store = Deleting()
    with Engine(store) as engine:
        run = engine.run(Trip(city="Oslo"))
        DONE.clear()
        store.victim = run.id
        with pytest.raises(RunConflict, match="run late could not begin: the run it is a fork of was deleted"):
            run.fork("bill", run_id="late")
        assert DONE == []
        late = engine.get("late")
        assert (late.status, late.row.reason, late.row.gate) == ("CANCELLED", "origin_deleted", GateState.SHUT)
        assert late.audit() == []
        assert "because the run it was forked from was deleted" in str(late.why("bill"))
        with pytest.raises(RunNotFound):
            run.fork()


def grown(*, mended: bool) -> type[Workflow]:
    """Two versions of one class; in the later one another step is the second."""
    if not mended:

        class Grown(Workflow):
            @step
            def first(self) -> int:
                return 1

            @step
            def second(self) -> int:
                DONE.append("second")
                raise ValueError("always")

        return Grown

    class Grown(Workflow):  # type: ignore[no-redef]
        @step
        def first(self) -> int:
            return 1

        @step
        def last(self, first: int) -> int:
            if "mended" not in DONE:
                raise ValueError("not yet")
            return first + 1

    return Grown


def test_the_fork_of_a_healed_run_is_retried_without_what_was_removed(open_sqlite: OpenEngine) -> None:
    before, after = grown(mended=False), grown(mended=True)
    with open_sqlite(workflows=[before]) as engine:
        engine.run(before(), run_id="grown", check=False)
    engine = open_sqlite(workflows=[after])
    run = engine.get("grown").retry(accept=True).wait(30)
    assert run.status == "FAILED"
    fork = run.fork().wait(30)
    assert fork.status == "FAILED"
    DONE[:] = ["mended"]
    fork.retry().wait(30).check()
    assert DONE == ["mended"]
    assert fork.output("last") == 2
    assert fork.audit() == run.audit() == []


class Payment(Workflow):
    order: int = 7

    @step
    def pay(self, ctx: Context) -> str:
        return ctx.idempotency_key

    @step(idempotency_key=lambda self: f"order-{self.order}")
    def pay_order(self, ctx: Context) -> str:
        return ctx.idempotency_key


def test_a_node_that_runs_in_a_fork_has_a_new_key_unless_it_has_its_own(open_engine: OpenEngine) -> None:
    """Its own key names the operation, whichever run asks for it; the engine's names the run."""
    run = open_engine().run(Payment(), run_id="first")
    again = run.fork("pay", run_id="second").wait(30).check()
    assert (run.output("pay"), again.output("pay")) == ("first:pay", "second:pay")
    assert run.output("pay_order") == again.output("pay_order") == "order-7"
    other = run.fork("pay", input={"order": 8}).wait(30).check()
    assert other.output("pay_order") == "order-8"
