"""A run of a class-based workflow keeps up with its class: what is done stays done, what is new joins."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell import Retry, Run, Workflow, step, task
from stepwell.engine.runs.requests import Requests
from stepwell.errors import RunConflict, RunPaused
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


class Ledger:
    """What bodies did, in order, and a gate that some of them wait at."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken = True
        self.began = threading.Event()
        self.go = threading.Event()

    def work(self, name: str) -> str:
        self.done.append(name)
        return name


LEDGER = Ledger()


@pytest.fixture(autouse=True)
def fresh_ledger() -> Iterator[None]:
    LEDGER.__init__()  # type: ignore[misc]
    yield
    LEDGER.go.set()


def broken(name: str) -> str:
    if LEDGER.broken:
        raise ValueError("broken for now")
    return LEDGER.work(name)


def orders() -> type[Workflow]:
    class Orders(Workflow):
        @step
        def validate(self) -> str:
            return LEDGER.work("validate")

        @step
        def charge(self) -> str:
            return broken("charge")

        @step
        def ship(self) -> str:
            return LEDGER.work("ship")

    return Orders


def audited_orders() -> type[Workflow]:
    class Orders(Workflow):
        """A step joins before what failed, one at the end, and a task beside them."""

        @step
        def validate(self) -> str:
            return LEDGER.work("validate")

        @step
        def audit(self, validate: str) -> str:
            return LEDGER.work(f"audit of {validate}")

        @step
        def charge(self) -> str:
            return broken("charge")

        @step
        def ship(self) -> str:
            return LEDGER.work("ship")

        @step
        def thank(self, ship: str) -> str:
            return LEDGER.work(f"thanks for {ship}")

        @task(depends_on="validate")
        def count(self) -> str:
            return LEDGER.work("count")

    return Orders


def named(name: str, *steps: str, **renamed: str) -> type[Workflow]:
    """A version of a workflow: a chain of these steps; `new=old` is a step that says what it was called."""

    def body(each: str) -> Callable[[Workflow], str]:
        def run(self: Workflow) -> str:
            return broken(each) if each.startswith("broken") else LEDGER.work(each)

        run.__name__ = run.__qualname__ = each
        return run

    made = {each: step(body(each)) for each in steps}
    made |= {new: step(was=old)(body(new)) for new, old in renamed.items()}
    return type(Workflow)(name, (Workflow,), made)


def failed(open_sqlite: OpenEngine, workflow: type[Workflow]) -> str:
    """A run that failed, of an engine that is no more."""
    with open_sqlite() as engine:
        run = engine.run(workflow(), check=False)
        assert run.status == "FAILED"
    LEDGER.broken = False
    return run.id


def retried(open_sqlite: OpenEngine, run: str, workflow: type[Workflow]) -> Run:
    found = open_sqlite(workflows=[workflow]).get(run).retry().wait(20).check()
    assert found.audit() == []
    return found


def test_a_retry_runs_what_the_class_says_now(open_sqlite: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    run = retried(open_sqlite, failed(open_sqlite, orders()), audited_orders())
    assert LEDGER.done[0] == "validate"
    assert LEDGER.done.count("validate") == 1
    assert set(LEDGER.done) == {"validate", "audit of validate", "charge", "ship", "thanks for ship", "count"}
    assert LEDGER.done.index("audit of validate") < LEDGER.done.index("charge") < LEDGER.done.index("ship")
    assert run.output("thank") == "thanks for ship"
    assert "was healed to the present version of Orders (3 new: audit, thank, count)" in caplog.text


def test_a_node_that_comes_too_late_is_skipped(open_sqlite: OpenEngine) -> None:
    before = named("Late", "one", "two", "broken", "last")
    after = named("Late", "one", "too_late", "two", "in_time", "broken", "last")
    run = retried(open_sqlite, failed(open_sqlite, before), after)
    assert LEDGER.done == ["one", "two", "in_time", "broken", "last"]
    late = run.node("too_late")
    assert (late.status, late.reason) == ("SKIPPED", "healed_late")


def test_what_is_gone_is_dropped_unless_it_was_done(open_sqlite: OpenEngine) -> None:
    before = named("Gone", "one", "two", "broken", "three", "last")
    after = named("Gone", "one", "broken", "last")
    run = retried(open_sqlite, failed(open_sqlite, before), after)
    assert {pair.id for pair in run.diff(run).pairs} == {"one", "broken", "last"}
    assert LEDGER.done == ["one", "two", "broken", "last"]
    assert [node.id for node in run.nodes()] == ["one", "broken", "last"]
    assert {node.id: node.status for node in run.nodes(removed=True)} == {
        "one": "COMPLETED",
        "two": "COMPLETED",
        "broken": "COMPLETED",
        "three": "CANCELLED",
        "last": "COMPLETED",
    }
    assert run.outputs == {"one": "one", "broken": "broken", "last": "last"}


def test_a_failed_node_that_is_gone_no_longer_fails_the_run(open_sqlite: OpenEngine) -> None:
    before, after = named("Failing", "one", "broken", "last"), named("Failing", "one", "last")
    run = retried(open_sqlite, failed(open_sqlite, before), after)
    assert run.status == "COMPLETED"
    assert LEDGER.done == ["one", "last"]


def test_a_possible_rename_is_not_guessed(open_sqlite: OpenEngine) -> None:
    before, after = named("Renamed", "charge", "broken"), named("Renamed", "bill", "broken")
    failing = failed(open_sqlite, before)
    run = open_sqlite(workflows=[after]).get(failing)
    with pytest.raises(RunConflict, match=r"gone after an attempt: 'charge'; new: 'bill'.*@step\(was=\"charge\"\)"):
        run.retry()
    assert run.status == "FAILED"
    assert run.audit() == []
    assert LEDGER.done == ["charge"]
    run.retry(accept=True).wait(20).check()
    assert LEDGER.done == ["charge", "bill", "broken"]


def test_a_node_that_says_what_it_was_called_is_the_same(open_sqlite: OpenEngine) -> None:
    before, after = named("AttemptOutput", "charge", "broken"), named("AttemptOutput", "broken", bill="charge")
    run = retried(open_sqlite, failed(open_sqlite, before), after)
    assert LEDGER.done == ["charge", "broken"]
    assert run.output("bill") == "charge"
    assert run.audit() == []


def test_a_renamed_node_keeps_its_idempotency_key(open_sqlite: OpenEngine) -> None:
    keys: list[str] = []

    def charge() -> Callable[[Workflow, Any], None]:
        def charge(self: Workflow, ctx: Any) -> None:
            keys.append(ctx.idempotency_key)
            broken("charge")

        return charge

    before = type(Workflow)("Keyed", (Workflow,), {"charge": step(charge())})
    after = type(Workflow)("Keyed", (Workflow,), {"bill": step(was="charge")(charge())})
    run = retried(open_sqlite, failed(open_sqlite, before), after)
    assert keys == [f"{run.id}:charge"] * 2


def test_a_doubt_pauses_a_run_that_goes_on_by_itself(open_sqlite: OpenEngine) -> None:
    before, after = waiting("one"), waiting("uno")
    with open_sqlite() as engine:
        run = engine.start(before())
        assert LEDGER.began.wait(10)
        engine.close(0)
    LEDGER.go.set()
    engine = open_sqlite(workflows=[after])
    eventually(lambda: engine.get(run.id).status == "PAUSED", "it never paused", seconds=20)
    with pytest.raises(RunPaused, match=r"is it a rename\?.*gone after an attempt: 'one'; new: 'uno'"):
        engine.get(run.id).wait(5).check()
    with pytest.raises(RunConflict, match=r"run\.resume\(accept=True\)"):
        engine.get(run.id).resume()
    engine.get(run.id).resume(accept=True).wait(20).check()
    assert engine.get(run.id).audit() == []


def test_an_accepted_run_may_complete_before_it_is_asked_to_go_on(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with the switch to the present class, and a worker that serves it may be quick."""
    before, after = waiting("one"), waiting("uno")
    with open_sqlite() as engine:
        run = engine.start(before())
        assert LEDGER.began.wait(10)
        engine.close(0)
    LEDGER.go.set()
    engine = open_sqlite(workflows=[after])
    eventually(lambda: engine.get(run.id).status == "PAUSED", "it never paused", seconds=20)
    enact = Requests._enact

    def enact_late(self: Requests, gate: Any, entries: Any) -> Any:
        eventually(lambda: engine.get(run.id).status == "COMPLETED", "it never completed", seconds=20)
        return enact(self, gate, entries)

    monkeypatch.setattr(Requests, "_enact", enact_late)
    assert engine.get(run.id).resume(accept=True).status == "COMPLETED"
    assert [entry.action for entry in engine.audit_log(run.id)] == ["resume"], "with the switch that let it go on"


def test_an_answer_to_the_doubt_lets_the_run_go_on(open_sqlite: OpenEngine) -> None:
    before, after = waiting("one"), waiting("uno")
    answer = type(Workflow)("Waiting", (Workflow,), {"uno": step(was="one")(waits()), "rest": step(rest())})
    with open_sqlite() as engine:
        run = engine.start(before())
        assert LEDGER.began.wait(10)
        engine.close(0)
    with open_sqlite(workflows=[after]) as engine:
        eventually(lambda: engine.get(run.id).status == "PAUSED", "it never paused", seconds=20)
    LEDGER.go.set()
    found = open_sqlite(workflows=[answer]).get(run.id)
    eventually(lambda: found.status == "COMPLETED", "it never went on", seconds=20, show=lambda: found.row)
    assert found.audit() == []


def rest() -> Callable[[Workflow], None]:
    def rest(self: Workflow) -> None:
        LEDGER.work("rest")

    return rest


def waits() -> Callable[[Workflow], None]:
    def waits(self: Workflow) -> None:
        LEDGER.began.set()
        LEDGER.go.wait(20)
        LEDGER.work("waited")

    return waits


def waiting(name: str) -> type[Workflow]:
    """A step that waits, so that its engine can go away, and one after it."""

    return type(Workflow)("Waiting", (Workflow,), {name: step(waits()), "rest": step(rest())})


def test_a_running_node_that_is_removed_ends_and_releases_nothing(open_sqlite: OpenEngine) -> None:
    before, after = waiting("one"), named("Waiting", "rest")
    run = open_sqlite().start(before())
    assert LEDGER.began.wait(10)
    healer = open_sqlite(workflows=[after]).get(run.id)
    eventually(lambda: healer.row.heals == 1, "it was not healed", seconds=20)
    LEDGER.go.set()
    eventually(
        lambda: [node.status for node in healer.nodes(removed=True)] == ["COMPLETED", "COMPLETED"],
        seconds=20,
        show=lambda: healer.nodes(removed=True),
    )
    eventually(lambda: healer.status == "COMPLETED", seconds=20)
    assert LEDGER.done.count("rest") == 1
    assert healer.audit() == []


def test_after_a_rollback_the_older_version_heals_back(
    open_sqlite: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    old, new = named("Back", "one", "broken", "last"), named("Back", "one", "extra", "broken", "last")
    run = failed(open_sqlite, old)
    LEDGER.broken = True
    with open_sqlite(workflows=[new]) as engine:
        assert engine.get(run).retry().wait(20).status == "FAILED"
    LEDGER.broken = False
    found = retried(open_sqlite, run, old)
    assert "healed back to an older version of Back" in caplog.text
    assert [node.id for node in found.nodes()] == ["one", "broken", "last"]
    assert LEDGER.done == ["one", "extra", "broken", "last"]


def test_a_node_that_was_dropped_and_comes_back_runs(open_sqlite: OpenEngine) -> None:
    long, short = named("There", "one", "broken", "two", "last"), named("There", "one", "broken", "last")
    run = failed(open_sqlite, long)
    LEDGER.broken = True
    with open_sqlite(workflows=[short]) as engine:
        assert engine.get(run).retry().wait(20).status == "FAILED"
    LEDGER.broken = False
    retried(open_sqlite, run, long)
    assert LEDGER.done == ["one", "broken", "two", "last"]


def test_a_frozen_run_keeps_its_graph(open_sqlite: OpenEngine) -> None:
    before, after = named("Frozen", "one", "broken"), named("Frozen", "one", "broken", "more")
    run = failed(open_sqlite, before)
    engine = open_sqlite(workflows=[after])
    assert [node.id for node in engine.get(run).freeze().retry().wait(20).check().nodes()] == ["one", "broken"]
    assert engine.get(run).audit() == []


def test_changed_options_hold_for_what_has_not_run(open_sqlite: OpenEngine) -> None:
    before = named("Options", "broken")

    def patient() -> type[Workflow]:
        class Options(Workflow):
            @step(retry=Retry(3, base_delay=0.01))
            def broken(self, ctx: Any) -> int:
                if ctx.attempt < 4:
                    raise ValueError("again")
                return int(ctx.attempt)

        return Options

    assert retried(open_sqlite, failed(open_sqlite, before), patient()).output("broken") == 4


def test_thousands_of_new_nodes_join_in_seconds(open_sqlite: OpenEngine) -> None:
    before = named("Long", "one", "broken")
    after = named("Long", "one", "broken", *(f"step_{number}" for number in range(10_000)))
    run = failed(open_sqlite, before)
    began = time.perf_counter()
    found = open_sqlite(workflows=[after], runner=None).get(run).retry()
    assert time.perf_counter() - began < 30
    assert len(found.nodes()) == 10_002
    assert found.audit() == []
