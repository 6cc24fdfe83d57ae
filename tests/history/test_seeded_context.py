"""Chance, ids and time through ctx: the same for every attempt, every process and every Python, or recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Graph, NodeSpec, Run, Workflow, step
from stepwell.base.ids import AttemptId, NodeId, RunId
from stepwell.core.graph import Arranged
from stepwell.define import Bodies
from stepwell.engine.bodies.held import Held, RunFacts
from stepwell.engine.bodies.host import EngineHost, Services
from stepwell.engine.bodies.log_lines import UnstoredLines
from tests.engine.ledger import noted
from tests.history import bodies
from tests.history.test_effects import ISOLATIONS, run_one

DRAWN = {
    "seed": 7,
    "order_key": str(0x00CA4E3A99613D93),
    "random": [0.3513138918508901, 707063],
    "uuids": ["e06de1ce-4842-47bb-befe-8becf4898e31", "0b78d96d-deef-4f4f-883a-ffca4bce635a"],
    "attempt": 1,
}


def drawn(engine: Engine, isolation: Any = "thread", **options: Any) -> Any:
    w = Builder("draws")
    w.node("body", job=bodies.draw, isolation=isolation)
    return engine.run(w, **options).output("body")


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_is_drawn_depends_on_seed_and_node_only(engine: Engine, isolation: Any) -> None:
    """The vector: every later version draws it too, or what was recorded by this one could not be replayed."""
    assert drawn(engine, isolation, seed=7) == DRAWN
    other = drawn(engine, isolation, seed=8)
    assert other["random"] != DRAWN["random"]
    assert other["uuids"] != DRAWN["uuids"]
    assert other["order_key"] == DRAWN["order_key"]


def test_nodes_of_one_run_draw_differently(engine: Engine) -> None:
    w = Builder("draws")
    w.fan_out(range(3), job=bodies.tell_the_time, args=lambda _: {}, name="time")
    w.node("one", job=bodies.draw)
    w.node("two", job=bodies.draw)
    run = engine.run(w, seed=7)
    assert run.output("one")["random"] != run.output("two")["random"]
    assert set(run.output("one")["uuids"]).isdisjoint(run.output("two")["uuids"])


def test_every_attempt_draws_the_same(engine: Engine, ledger: str) -> None:
    run = run_one(engine, bodies.draw_twice, ledger=ledger)
    assert run.output("body")["attempt"] == 2
    first, second = noted(ledger)
    assert first == second


def test_a_renamed_node_draws_as_before() -> None:
    charge = Graph([NodeSpec(NodeId("charge"), "charge")])
    pay = Arranged([NodeSpec(NodeId("pay"), "pay")], [NodeId("pay")], {}, {"pay": ("charge", "pay")}, pinned=False)

    def drawn_by(graph: Graph) -> list[Any]:
        facts = RunFacts(RunId("r"), "w", None, graph, b"{}", 7, Bodies())
        ctx = Context(EngineHost(Held(AttemptId("c.0"), facts, 0, 1, 0, ()), Services(lambda *_: {}, UnstoredLines())))
        return [ctx.random.random(), ctx.uuid(), ctx.idempotency_key]

    assert drawn_by(pay) == drawn_by(charge)


def test_hash_seed_time_zone_and_locale_change_nothing(tmp_path: Any) -> None:
    program = f"""
from stepwell import Builder, Engine
from tests.history import bodies
w = Builder("draws")
w.node("body", job=bodies.draw)
with Engine("sqlite:///{tmp_path}/other.db") as engine:
    print(engine.run(w, seed=7).output("body") == {DRAWN!r})
"""
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n", done.stderr


def recorded_times(run: Run) -> list[Any]:
    (clock,) = run.effects()
    assert (clock.name, clock.index, clock.request) == ("stepwell.now", -1, None)
    found: list[Any] = clock.response
    return found


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_time_is_recorded_and_never_goes_back(
    engine: Engine, isolation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_one(engine, bodies.tell_the_time, isolation)
    told = [datetime.fromisoformat(text) for text in run.output("body")]
    assert all(each.utcoffset() == timedelta(0) for each in told)
    assert told == sorted(told)
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    assert [epoch + timedelta(microseconds=each) for each in recorded_times(run)] == told


def test_a_clock_that_is_set_back_is_not_followed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    from stepwell.history.effects import recorder

    clock = iter([3_000_000, 1_000_000, 4_000_000])
    double = types.SimpleNamespace(time_ns=lambda: next(clock) * 1_000, perf_counter_ns=lambda: 0)
    monkeypatch.setattr(recorder, "time", double)
    run = run_one(engine, bodies.tell_the_time)
    assert recorded_times(run) == [3_000_000, 3_000_000, 4_000_000]


class Keyed(Workflow):
    order: int

    @step
    def price(self) -> int:
        return 40 + self.order

    @step(idempotency_key=lambda self, price: f"order-{self.order}-{price}")
    def charge(self, price: int, ctx: Context) -> str:
        return ctx.idempotency_key

    @step(idempotency_key=lambda self: f"mail-{self.order}", isolation="process")
    def mail(self, ctx: Context) -> str:
        return ctx.idempotency_key


class Broken(Workflow):
    key: Any

    @step(idempotency_key=lambda self: self.key)
    def charge(self) -> None: ...


def test_a_node_may_have_an_idempotency_key_of_its_own(engine: Engine) -> None:
    run = engine.run(Keyed(order=2))
    assert run.output("charge") == "order-2-42"
    assert run.output("mail") == "mail-2"
    run.reattempt("mail")
    assert run.wait(60).output("mail") == "mail-2:1"


@pytest.mark.parametrize("key", [None, "", 7])
def test_a_key_that_is_no_text_fails_the_node(engine: Engine, key: Any) -> None:
    error = engine.run(Broken(key=key), check=False).node("charge").error
    assert error is not None
    assert f"the idempotency_key of node 'charge' gave {key!r}: expected a text that is not empty" in error.message


def test_what_makes_a_key_is_not_part_of_the_graph() -> None:
    """That a function makes it is: without the code nobody could tell whose key it is."""

    class Other(Workflow):
        key: Any

        @step(idempotency_key=lambda self: "another")
        def charge(self) -> None: ...

    class Plain(Workflow):
        key: Any

        @step
        def charge(self) -> None: ...

    assert Other.workflow_graph().digest == Broken.workflow_graph().digest
    assert Plain.workflow_graph().digest != Broken.workflow_graph().digest
