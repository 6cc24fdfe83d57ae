"""`run.diff()` and `engine.compare()`: what is stored of two runs, side by side."""

from __future__ import annotations

from typing import Annotated

import pytest

from stepwell import Builder, Delta, Engine, Workflow, step
from stepwell.engine.reports import compare as comparing
from stepwell.errors import RunNotFound
from stepwell.reducers import add
from tests.engine.conftest import OpenEngine


class Price(Workflow):
    amount: int
    discount: int = 0

    @step
    def load(self) -> dict[str, int]:
        return {"amount": self.amount}

    @step
    def reduced(self, load: dict[str, int]) -> dict[str, int]:
        if self.discount > load["amount"]:
            raise ValueError("too much")
        return {"amount": load["amount"] - self.discount}

    @step
    def note(self) -> None:
        return None


def test_a_run_and_its_fork(engine: Engine) -> None:
    run = engine.run(Price(amount=10))
    fork = run.fork("reduced", input={"discount": 3}).wait(30).check()
    found = run.diff(fork)
    assert not found.same_outputs
    assert [str(change) for change in found.input] == ["$.discount: 0 / 3"]
    (pair,) = found.different
    assert (pair.id, pair.differs) == ("reduced", ("output",))
    assert [str(change) for change in pair.output] == ["$.amount: 10 / 7"]
    assert [pair.id for pair in found.pairs] == ["reduced", "load", "note"]
    assert engine.compare(run.id, fork) == engine.compare(run, fork.id) == found
    assert run.diff(run).same_outputs


class Counted(Workflow):
    amount: int
    output: int = 7

    class State:
        total: Annotated[int, add]

    @step
    def count(self) -> Delta:
        return Delta(self.output, total=self.amount)

    @step
    def note(self) -> Delta | None:
        return Delta(total=1) if self.amount > 2 else None


def test_a_delta_is_told_apart_from_the_output(engine: Engine) -> None:
    one, two, three = (engine.run(Counted(amount=amount)) for amount in (1, 2, 3))
    found = one.diff(two)
    assert (found.same_outputs, found.same_deltas) == (True, False)
    (pair,) = found.different
    assert (pair.differs, pair.output) == (("delta",), ())
    assert [str(change) for change in pair.delta] == ["$.total: 1 / 2"]
    assert pair.first is not None
    assert pair.second is not None
    assert pair.first.output == pair.second.output
    assert str(found).splitlines()[0].endswith(": the same outputs, different deltas")
    assert str(found).endswith("count: delta\n  delta $.total: 1 / 2")
    note = {pair.id: pair for pair in one.diff(three).pairs}["note"]
    assert [str(change) for change in note.delta] == ['$: only in the second: {"total":1}']
    assert one.diff(engine.run(Counted(amount=1))).same_deltas


def test_an_output_that_differs_beside_equal_deltas(engine: Engine) -> None:
    found = engine.run(Counted(amount=1)).diff(engine.run(Counted(amount=1, output=8)))
    assert (found.same_outputs, found.same_deltas) == (False, True)
    assert [(pair.differs, *map(str, pair.output)) for pair in found.different] == [(("output",), "$: 7 / 8")]


def test_a_run_that_failed_and_one_that_did_not(engine: Engine) -> None:
    bad = engine.run(Price(amount=1, discount=2), check=False)
    good = engine.run(Price(amount=1))
    found = bad.diff(good)
    pairs = {pair.id: pair for pair in found.pairs}
    assert pairs["reduced"].differs == ("output", "status")
    assert [str(change) for change in pairs["reduced"].output] == ['$: only in the second: {"amount":1}']
    assert pairs["note"].differs == ("output", "status", "attempts")
    assert [str(change) for change in pairs["note"].output] == ["$: only in the second: null"]
    assert pairs["load"].differs == ()


def test_a_node_that_was_dropped_from_a_run_is_compared_with_nothing(engine: Engine) -> None:
    w = Builder("prices")
    first = w.node("load", job=dict)
    w.node("dropped", job="tests.engine.jobs:removed", depends_on=first)
    whole = engine.run(w, check=False)
    run = engine.run(w, check=False)
    form, dropped = run.export_graph(), run.node("dropped").id
    del form["nodes"][dropped]
    run.import_graph(form).retry().wait(30).check()
    assert [pair.name for pair in run.diff(run).pairs] == ["load"]
    (pair,) = whole.diff(run).different
    assert (pair.id, pair.differs) == (dropped, ("missing",))


def test_runs_of_different_workflows_and_stores(engine: Engine, open_sqlite: OpenEngine) -> None:
    other = Builder("prices")
    other.node("load", job=dict)
    here, there = engine.run(Price(amount=1)), open_sqlite().run(other)
    found = here.diff(there)
    assert {pair.id for pair in found.pairs} == {*here.graph.nodes, *there.graph.nodes}
    assert all("missing" in pair.differs for pair in found.pairs)
    assert found.second.workflow == "prices"


def test_a_large_run_is_read_in_pages_and_few_of_its_outputs_twice(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_PAGE", 7)
    monkeypatch.setattr(comparing, "SHOWN_OUTPUTS", 3)

    def wide(start: int) -> Builder:
        made = Builder("wide")
        made.fan_out(range(50), job=dict, name=lambda i: f"n{i}", args=lambda i: {"value": start + i // 25})
        return made

    found = engine.run(wide(0)).diff(engine.run(wide(1)))
    assert len(found.different) == 50
    assert [bool(pair.output) for pair in found.pairs] == [True] * 3 + [False] * 47


def test_a_run_that_is_not_there(engine: Engine) -> None:
    run = engine.run(Price(amount=1))
    with pytest.raises(RunNotFound):
        run.diff("nobody")
    with pytest.raises(RunNotFound):
        engine.compare("nobody", run)
