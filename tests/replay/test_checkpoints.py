"""A checkpoint is a view of the journal: derived when it is asked for, and complete."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from stepwell import Context, Delta, Engine, NodeStatus, Retry, Run, Workflow, step, task
from stepwell.codec import encode
from stepwell.errors import InputError
from stepwell.reducers import add, append
from stepwell.replay.checkpoint import idempotency_key
from stepwell.store import reader
from tests.runner.conftest import OpenEngine

FAIL: set[str] = set()


@pytest.fixture(autouse=True)
def nothing_fails() -> None:
    FAIL.clear()


class Order(Workflow):
    order_id: int = 7

    class State:
        total: Annotated[int, add] = 0
        log: Annotated[list[str], append]

    @step(side_effects="recordable")
    def validate(self, ctx: Context) -> Delta:
        ctx.effect("look up", lambda order: {"order": order}, self.order_id)
        return Delta(total=1, log="validate")

    @step(side_effects="recordable", retry=Retry(3, base_delay=0))
    def charge(self, ctx: Context) -> Delta:
        ctx.checkpoint("half paid")
        ctx.effect("charge", lambda attempt: attempt, ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("no line")
        ctx.checkpoint("paid")
        return Delta(total=10, log="charge")

    @task(depends_on=charge)
    def mail(self, ctx: Context) -> None:
        ctx.checkpoint("told")

    @task(depends_on=charge)
    def pack(self) -> Delta:
        if "pack" in FAIL:
            raise ValueError("no box")
        return Delta(total=100, log="pack")


def seq_of(run: Run, kind: str, node: str) -> int:
    index = run.index_of(node)
    journal = reader.list_journal(run._engine.store, run.id)
    return next(entry.seq for entry in journal if entry.kind == kind and entry.index == index)


def test_a_label_stands_for_the_moment_its_node_completed(engine: Engine) -> None:
    run = engine.run(Order())
    named = {label.label: label for label in run.checkpoints()}
    assert list(named) == ["half paid", "paid", "told"]
    assert named["paid"].step == named["half paid"].step == seq_of(run, "completed", "charge")
    assert (named["paid"].node, named["paid"].attempt) == ("charge", 2), (
        "what the attempt that failed named counts for nothing"
    )
    assert named["paid"].time == run.checkpoint("paid").time


def test_it_has_everything_and_is_json(engine: Engine) -> None:
    run = engine.run(Order(), run_id="order-1", seed=2**64 - 1)
    found = run.checkpoint("paid")
    assert (found.version, found.run_id, found.step) == (1, "order-1", seq_of(run, "completed", "charge"))
    assert found.label == "paid"
    assert found.state == {"total": 11, "log": ["validate", "charge"]}
    assert [(effect.node, effect.attempt, effect.name) for effect in found.effects] == [
        ("validate", 1, "look up"),
        ("charge", 1, "charge"),
        ("charge", 2, "charge"),
    ]
    data = json.loads(json.dumps(found.data()))
    assert list(data) == [
        "version",
        "run_id",
        "step",
        "state",
        "frontier",
        "seed",
        "effects",
        "idempotency_key",
        "timestamp",
        "label",
    ]
    assert data["seed"] == str(2**64 - 1)
    items = {item["node"]: item for item in data["frontier"]}
    assert set(items) == {"mail", "pack"}
    assert items["mail"]["order_key"] == str(run.graph.order_key("mail"))
    assert (items["mail"]["edge"], items["pack"]["edge"]) == (0, 1)
    assert items["pack"]["parents"] == ["charge"]
    assert (items["pack"]["status"], items["pack"]["attempt"]) == ("READY", 1)
    assert data["timestamp"].endswith("Z")
    ordered = sorted(data["frontier"], key=lambda item: (item["level"], int(item["order_key"]), item["node"]))
    assert data["frontier"] == ordered


def test_every_step_has_one_and_each_has_its_own_key(engine: Engine) -> None:
    run = engine.run(Order())
    all_of_them = [run.checkpoint(step) for step in range(1, run.row.seq + 1)]
    assert len({each.idempotency_key for each in all_of_them}) == len(all_of_them)
    assert all(each.idempotency_key.startswith("sha256:") for each in all_of_them)
    assert [item.node for item in all_of_them[0].frontier] == ["validate"]
    assert all_of_them[0].state == {"total": 0, "log": []}
    last = all_of_them[-1]
    assert (last.frontier, last.state) == ((), run.state)
    assert last == run.checkpoint()
    running = run.checkpoint(seq_of(run, "claimed", "charge"))
    assert [(item.node, item.status, item.attempt) for item in running.frontier] == [("charge", NodeStatus.RUNNING, 1)]
    waiting = run.checkpoint(seq_of(run, "failed", "charge"))
    assert [(item.node, item.attempt) for item in waiting.frontier] == [("charge", 2)]
    for each in all_of_them:
        assert run.checkpoint(each.idempotency_key) == each


def test_the_key_has_separators() -> None:
    assert idempotency_key("r-1", 12, [], None) != idempotency_key("r-11", 2, [], None)
    assert idempotency_key("r", 1, [], {}) != idempotency_key("r", 1, [], None)


def test_a_workflow_without_a_state_has_none(engine: Engine) -> None:
    class Plain(Workflow):
        @step
        def one(self) -> int:
            return 1

    found = engine.run(Plain()).checkpoint()
    assert found.state is None
    assert found.data()["state"] is None


@pytest.mark.parametrize("at", [0, -1, 10_000, True, 1.5, "nobody named it", "sha256:00"])
def test_what_is_not_there_is_refused(engine: Engine, at: Any) -> None:
    run = engine.run(Order())
    with pytest.raises(InputError, match=run.id):
        run.checkpoint(at)


@pytest.mark.parametrize("label", ["", " ", "two\nlines", "x" * 201, 7, None])
def test_a_label_is_some_text(engine: Engine, label: Any) -> None:
    class Named(Workflow):
        @step
        def one(self, ctx: Context) -> None:
            ctx.checkpoint(label)

    run = engine.run(Named(), check=False)
    assert run.node("one").error is not None
    assert run.node("one").error.type == "InputError"


def test_a_body_in_a_process_names_checkpoints_too(engine: Engine) -> None:
    run = engine.run(Elsewhere())
    assert [(label.label, label.node) for label in run.checkpoints()] == [("elsewhere", "one")]


class Elsewhere(Workflow):
    @step(isolation="process")
    def one(self, ctx: Context) -> None:
        ctx.checkpoint("elsewhere")


def test_a_fork_begins_at_a_label(engine: Engine) -> None:
    FAIL.add("pack")
    run = engine.run(Order(), check=False)
    FAIL.clear()
    fork = run.fork("paid").wait(60).check()
    assert fork.origin is not None
    assert fork.origin[:2] == (run.id, run.step_of("paid"))
    assert fork.node("charge").attempts[0].number == 1
    assert fork.state["total"] == 111
    assert "paid" in [label.label for label in fork.checkpoints()], "what is shared keeps its labels"
    again = run.fork("pack").wait(60).check()
    assert again.origin is not None
    assert again.origin[:2] == (run.id, run.row.seq)


def test_the_latest_of_equal_labels_counts(engine: Engine) -> None:
    run = engine.run(Twice())
    first, second = run.checkpoints()
    assert first.step < second.step
    assert run.checkpoint("here").step == second.step


class Twice(Workflow):
    @step
    def one(self, ctx: Context) -> None:
        ctx.checkpoint("here")

    @step
    def two(self, ctx: Context) -> None:
        ctx.checkpoint("here")


def test_looking_at_a_healed_run(open_sqlite: OpenEngine) -> None:
    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            @step
            def first(self) -> int:
                return 1

            if number == 2:

                @step
                def between(self) -> int:
                    return 2

            @step
            def last(self) -> int:
                if number == 1:
                    raise ValueError("broken")
                return 3

        return Healed

    old, new = version(1), version(2)
    engine = open_sqlite(workflows=[old])
    run = engine.run(old(), check=False)
    steps = run.row.seq
    before = [run.checkpoint(step).data() for step in range(1, steps + 1)]
    engine.close()
    healed = open_sqlite(workflows=[new]).get(run.id).retry().wait(60).check()
    after = [healed.checkpoint(step).data() for step in range(1, healed.row.seq + 1)]
    assert [encode(each) for each in after[:steps]] == [encode(each) for each in before], "the past stays as it was"
    assert any(item["node"] == "between" for each in after for item in each["frontier"])
