"""A run whose stored input does not fit its class as it is now is paused and says why; `resume` takes what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Engine, InputError, Run, RunConflict, Workflow, step
from stepwell.core.kernel.healing import UNFIT
from stepwell.engine.show.next_steps import next_steps
from stepwell.engine.work import unfinished_message
from stepwell.errors import RunPaused
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


def version(**inputs: Any) -> type[Workflow]:
    """The class with these inputs: a type, or a type and a default. All have the same graph, unless they have `more`."""
    more = inputs.pop("more", False)
    names: dict[str, Any] = {"__annotations__": {}, "__module__": __name__, "__qualname__": "Order"}
    for name, (kind, *default) in inputs.items():
        names["__annotations__"][name] = kind
        if default:
            names[name] = default[0]

    def validate(self: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inputs}

    def ship(self: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inputs}

    names |= {"validate": step(validate), "ship": step(ship)}
    if more:
        names["audit"] = step(job="tests.engine.jobs:nothing")
    return type(Workflow)("Order", (Workflow,), names)


OLD = version(order_id=(int,))
EXPRESS = version(order_id=(int,), express=(bool,))


def left(open_sqlite: OpenEngine) -> Run:
    """A run of the old class that nobody works on."""
    return open_sqlite(runner=None).start(OLD(order_id=7), run_id="r-1")


@pytest.mark.parametrize("more", [False, True], ids=["same graph", "other graph"])
def test_a_new_required_input_pauses_the_run_and_resume_takes_it(open_sqlite: OpenEngine, more: bool) -> None:
    run = left(open_sqlite)
    now = version(order_id=(int,), express=(bool,), more=more)
    engine = open_sqlite(workflows=[now])
    eventually(lambda: run.status == "PAUSED", "it was not paused")
    assert (run.row.reason or "").startswith(
        f"{UNFIT}express: this input is missing, expected bool. Give what is missing: "
    )
    assert 'run.resume(input={"express": ...})' in (run.row.reason or "")
    assert not any(attempt.status == "FAILED" for node in run.nodes() for attempt in node.attempts)
    with pytest.raises(RunPaused, match="express: this input is missing"):
        engine.get("r-1").wait(30).check()
    with pytest.raises(RunConflict, match="express: this input is missing"):
        engine.get("r-1").resume()
    assert "resume r-1 --input NAME=VALUE" in str(run.why())
    done = engine.get("r-1").resume(input={"express": True}).wait(30).check()
    assert done.output("ship") == {"order_id": 7, "express": True}
    assert done.input == {"order_id": 7, "express": True}
    assert engine.start(now(order_id=7, express=True), run_id="r-1").id == "r-1"
    assert done.audit() == []


def failed_once(open_sqlite: OpenEngine, ledger: list[str]) -> Run:
    """A run of the old class that a failure has paused, without an engine."""

    class Order(Workflow, on_failure="pause"):
        order_id: int

        @step
        def validate(self) -> None:
            ledger.append("validate")
            raise ConnectionError("no bank")

        @step
        def ship(self) -> None: ...

    run = open_sqlite().run(Order(order_id=7), run_id="r-1", check=False)
    assert (run.status, run.row.reason) == ("PAUSED", "node_failed")
    return run


def test_a_run_that_needs_an_input_and_a_retry_is_given_both_at_once(open_sqlite: OpenEngine) -> None:
    ledger: list[str] = []
    failed_once(open_sqlite, ledger)
    engine = open_sqlite(workflows=[EXPRESS])
    run = engine.get("r-1")
    with pytest.raises(
        RunConflict, match=r'express: this input is missing.*run\.retry\(input=\{"express": \.\.\.\}\), or --input'
    ):
        run.retry()
    done = run.retry(input={"express": True}).wait(30).check()
    assert done.output("validate") == done.output("ship") == {"order_id": 7, "express": True}
    assert (ledger, done.audit()) == (["validate"], [])


def test_whoever_finds_such_a_run_is_told_to_retry_it(open_sqlite: OpenEngine) -> None:
    failed_once(open_sqlite, [])
    run = open_sqlite(runner=None).get("r-1")
    row = run.row
    for reason in ("node_failed", f"{UNFIT}express: this input is missing", "is it a rename? a or b", "paused"):
        paused = row._replace(reason=reason)
        assert next(iter(next_steps(paused))).startswith("retry r-1"), reason
        assert "`stepwell retry r-1" in unfinished_message([paused], "sqlite:///x.db"), reason
    tolerated = row._replace(reason="paused", tolerated=row.failed)
    assert next(iter(next_steps(tolerated))) == "resume r-1"
    assert "`stepwell resume r-1" in unfinished_message([tolerated], "sqlite:///x.db")


def test_who_adopts_the_run_is_told(open_sqlite: OpenEngine) -> None:
    run = left(open_sqlite)
    engine = open_sqlite()
    engine.parts.code.introduce([EXPRESS])
    engine.parts.code.given["Order"] = EXPRESS
    with pytest.raises(
        RunConflict, match="r-1 is paused: its input does not fit its class: express: this input is missing"
    ):
        engine.adopt("r-1")
    assert (run.status, run.nodes()[0].attempts) == ("PAUSED", ())


@pytest.mark.parametrize("runner", ["local", None])
def test_what_is_missing_can_be_given_before_anybody_noticed(open_sqlite: OpenEngine, runner: Any) -> None:
    run = left(open_sqlite)
    engine = open_sqlite(runner=runner)
    engine.parts.code.given["Order"] = EXPRESS
    engine.get("r-1").resume(input={"express": False})
    assert run.input == {"order_id": 7, "express": False}
    if runner is not None:
        assert run.wait(30).output("validate") == {"order_id": 7, "express": False}


def test_a_type_that_changed_is_not_guessed(open_sqlite: OpenEngine) -> None:
    run = left(open_sqlite)
    engine = open_sqlite(workflows=[version(order_id=(str,))])
    eventually(lambda: run.status == "PAUSED", "it was not paused")
    assert "order_id: expected str, got 7 (int)" in (run.row.reason or "")
    with pytest.raises(InputError, match="order_id: expected str"):
        engine.get("r-1").resume(input={"order_id": 8})
    assert run.status == "PAUSED"
    assert engine.get("r-1").resume(input={"order_id": "A-7"}).wait(30).output("ship") == {"order_id": "A-7"}


def test_what_fits_goes_on_by_itself(open_sqlite: OpenEngine) -> None:
    """A wider type, and a new input with a default."""
    left(open_sqlite)
    now = version(order_id=(int | str,), express=(bool, True))
    assert open_sqlite(workflows=[now]).get("r-1").wait(30).output("ship") == {"order_id": 7, "express": True}


def test_an_input_that_is_gone_is_not_needed(open_sqlite: OpenEngine) -> None:
    open_sqlite(runner=None).start(EXPRESS(order_id=8, express=True), run_id="r-2")
    done = open_sqlite(workflows=[OLD]).get("r-2").wait(30)
    assert done.output("ship") == {"order_id": 8}
    assert done.fork("ship", input={"order_id": 9}).wait(30).output("ship") == {"order_id": 9}


def test_resume_changes_nothing_that_nodes_may_have_run_with(open_sqlite: OpenEngine) -> None:
    run = left(open_sqlite)
    engine = open_sqlite(workflows=[EXPRESS])
    eventually(lambda: run.status == "PAUSED", "it was not paused")
    before = (run.row.input, run.row.status, run.row.reason)
    with pytest.raises(InputError, match=r"order_id: resume and retry take only .* \(needed are express\); `run.fork"):
        engine.get("r-1").resume(input={"order_id": 8, "express": True})
    with pytest.raises(InputError, match="expres: resume and retry take only"):
        engine.get("r-1").resume(input={"expres": True})
    with pytest.raises(InputError, match="a dict of inputs by name"):
        engine.get("r-1").resume(input=[1])  # type: ignore[arg-type]
    assert (run.row.input, run.row.status, run.row.reason) == before


def test_a_run_that_has_ended_is_forked_with_what_is_missing(open_sqlite: OpenEngine) -> None:
    run = left(open_sqlite)
    run.cancel(grace_seconds=0)
    engine = open_sqlite(workflows=[EXPRESS])
    with pytest.raises(RunConflict, match=r"express: this input is missing.*`run.fork\(..., input="):
        engine.get("r-1").retry()
    assert run.status == "CANCELLED"
    fork = engine.get("r-1").fork(input={"express": True})
    assert fork.wait(30).output("ship") == {"order_id": 7, "express": True}


def test_a_pause_by_a_person_is_not_forgotten(open_sqlite: OpenEngine) -> None:
    run = left(open_sqlite)
    run.pause()
    engine = open_sqlite(workflows=[EXPRESS])
    with pytest.raises(RunConflict, match="express: this input is missing"):
        engine.get("r-1").resume()
    assert (run.status, run.row.reason) == ("PAUSED", "paused")
    assert engine.get("r-1").resume(input={"express": True}).wait(30).status == "COMPLETED"


def test_a_large_input_is_kept_once(open_sqlite: OpenEngine) -> None:
    large = "x" * 50_000
    notes = version(order_id=(int,), note=(str,))
    for number in range(2):
        open_sqlite(runner=None).start(OLD(order_id=number), run_id=f"r-{number}")
    engine: Engine = open_sqlite(runner=None)
    engine.parts.code.given["Order"] = notes
    for number in range(2):
        engine.get(f"r-{number}").resume(input={"note": large})
    assert engine.get("r-1").input == {"order_id": 1, "note": large}
