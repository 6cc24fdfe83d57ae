"""A checkpoint is a view of the journal: derived when it is asked for, and complete."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from stepwell import Builder, Context, Delta, Engine, NodeStatus, Retry, Run, Workflow, step, task
from stepwell.base.codec import encode
from stepwell.core.store import reader
from stepwell.engine.reports import checkpoints
from stepwell.errors import InputError
from stepwell.history.replay.checkpoint import Frontiers, idempotency_key
from stepwell.reducers import add, append
from tests.engine.conftest import OpenEngine

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

    @step(side_effects="recordable", retry=Retry(3, base_delay=0.001))
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
    index = run._index_of(node)
    journal = reader.list_journal(run._parts.store, run.id)
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


@pytest.mark.parametrize("label", ["", " ", "two\nlines", "x" * 201, "sha256:ab", 7, None])
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
    assert fork.origin[:2] == (run.id, run._step_of("paid"))
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


def versions() -> tuple[type[Workflow], type[Workflow]]:
    """In the later one a node has another name, one is gone, and one stands before the others."""

    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            class State:
                log: Annotated[list[str], append]

            if number == 2:

                @task(depends_on=None, side_effects="recordable")
                def earlier(self, ctx: Context) -> Delta:
                    return Delta(ctx.effect("ask", lambda: 0), log="earlier")

            if number == 1:

                @task(depends_on=None, side_effects="recordable")
                def zebra(self, ctx: Context) -> Delta:
                    ctx.checkpoint("named")
                    return Delta(ctx.effect("ask", lambda: 1), log="zebra")

                @task(depends_on=None, side_effects="recordable")
                def gone(self, ctx: Context) -> Delta:
                    return Delta(ctx.effect("ask", lambda: 2), log="gone")

            else:

                @task(depends_on=None, side_effects="recordable", was="zebra")
                def ant(self, ctx: Context) -> Delta:
                    ctx.checkpoint("named")
                    return Delta(ctx.effect("ask", lambda: 1), log="ant")

            @task(depends_on=None, side_effects="recordable")
            def middle(self, ctx: Context) -> Delta:
                return Delta(ctx.effect("ask", lambda: 3), log="middle")

            @task(depends_on=middle, side_effects="recordable")
            def last(self, ctx: Context) -> None:
                ctx.effect("ask", lambda: 4)
                if "last" in FAIL:
                    raise ValueError("broken")

        return Healed

    return version(1), version(2)


def test_a_heal_changes_nothing_in_the_checkpoints_before_it(open_sqlite: OpenEngine) -> None:
    old, new = versions()
    FAIL.add("last")
    with open_sqlite(workflows=[old]) as engine:
        run = engine.run(old(), run_id="healed", check=False)
        steps = run.row.seq
        before = [run.checkpoint(step) for step in range(1, steps + 1)]
        labels = run.checkpoints()
    FAIL.clear()
    healed = open_sqlite(workflows=[new]).get("healed").retry(accept=True).wait(60).check()
    assert healed.row.heals == 1
    assert {effect.node for effect in before[-1].effects} == {"zebra", "gone", "middle", "last"}
    assert [healed.checkpoint(step) for step in range(1, steps + 1)] == before
    assert [healed.checkpoint(each.idempotency_key) for each in before] == before
    assert (labels[0].label, labels[0].node) == ("named", "zebra")
    assert healed.checkpoints()[: len(labels)] == labels
    now = healed.checkpoint()
    assert {effect.node for effect in now.effects} == {"ant", "gone", "middle", "last", "earlier"}
    assert now.effects[-1].node == "gone", "what is no longer there comes last"


def test_two_nodes_that_had_one_name_keep_their_effects_apart(open_sqlite: OpenEngine) -> None:
    """The first was removed, then the second got its name."""

    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            if number == 1:

                @task(depends_on=None, side_effects="recordable")
                def a(self, ctx: Context) -> str:
                    return ctx.effect("ask", lambda: "first")

            if number < 3:

                @task(depends_on=None, side_effects="recordable")
                def b(self, ctx: Context) -> str:
                    return ctx.effect("ask", lambda: "second")

            else:

                @task(depends_on=None, side_effects="recordable", was="b")
                def a(self, ctx: Context) -> str:
                    return ctx.effect("ask", lambda: "second")

            @task(depends_on=None)
            def last(self) -> None:
                if "last" in FAIL:
                    raise ValueError("broken")

        return Healed

    FAIL.add("last")
    with open_sqlite(workflows=[version(1)]) as engine:
        engine.run(version(1)(), run_id="healed", check=False)
    with open_sqlite(workflows=[version(2)]) as engine:
        engine.get("healed").retry(accept=True).wait(60)
    FAIL.clear()
    healed = open_sqlite(workflows=[version(3)]).get("healed").retry(accept=True).wait(60).check()
    told = [(effect.node, effect.response) for effect in healed.checkpoint().effects]
    assert told == [("a", "second"), ("a", "first")]
    report = healed.replay()
    assert report.executed == ("a",)


def found_by_key(run: Run) -> list[str]:
    """The keys of all checkpoints of a run, each of which finds the checkpoint it is of."""
    each_of_them = [run.checkpoint(step) for step in range(1, run.row.seq + 1)]
    for each in each_of_them:
        run._parts.checkpoint_keys.clear()  # looked for, and not remembered
        assert run.checkpoint(each.idempotency_key) == each
    return [each.idempotency_key for each in each_of_them]


@pytest.mark.parametrize("ahead", [0, 1, checkpoints.AHEAD])
def test_a_key_finds_its_checkpoint_whatever_happened(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    monkeypatch.setattr(checkpoints, "AHEAD", ahead)
    old, new = versions()
    FAIL.add("last")
    with open_sqlite(workflows=[old]) as engine:
        engine.run(old(), run_id="healed", check=False)
    FAIL.clear()
    engine = open_sqlite(workflows=[new, Wide])
    healed = engine.get("healed").retry(accept=True).wait(60).check()
    healed.reattempt("earlier").wait(60).check()
    found_by_key(healed)
    found_by_key(healed.fork("ant").wait(60).check())
    wide = engine.run(Wide(), check=False)
    wide.retry().wait(60)
    assert len(set(found_by_key(wide))) == wide.row.seq
    wide.reattempt("one", cascade=True).wait(60)
    assert len(set(found_by_key(wide))) == wide.row.seq


class Wide(Workflow, on_failure="finish"):
    """Two chains beside each other, one of which is retried, fails, and is retried by hand: deltas come out of order."""

    class State:
        log: Annotated[list[str], append]

    @task(depends_on=None)
    def one(self) -> Delta:
        return Delta(log="one")

    @task(depends_on=one, retry=Retry(2, base_delay=0.001))
    def two(self, ctx: Context) -> Delta:
        if ctx.attempt < 4:
            raise ValueError("not yet")
        return Delta(log="two")

    @task(depends_on=two)
    def three(self) -> Delta:
        return Delta(log="three")

    @task(depends_on=None)
    def left(self) -> Delta:
        return Delta(log="left")

    @task(depends_on=left)
    def middle(self) -> Delta:
        return Delta(log="middle")

    @task(depends_on=middle)
    def right(self) -> Delta:
        return Delta(log="right")


def test_looking_for_a_key_looks_at_each_node_a_few_times_only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder("fan")
    builder.fan_out(range(300), job=unchanged, depends_on=None)
    run = engine.run(builder)
    last = run.checkpoint()
    looked: list[int] = []
    item = Frontiers.item

    def counted(self: Frontiers, index: int, folded: Any) -> Any:
        looked.append(index)
        return item(self, index, folded)

    monkeypatch.setattr(Frontiers, "item", counted)
    assert run.checkpoint(last.idempotency_key) == last
    assert 300 <= len(looked) <= 4 * 300
    looked.clear()
    assert run.checkpoint(last.idempotency_key) == last
    assert looked == [], "it was remembered where that is, and at the end there is no frontier"


def unchanged(item: int) -> int:
    return item


def test_a_key_that_was_remembered_wrongly_is_looked_for(engine: Engine) -> None:
    run = engine.run(Order())
    there = run.checkpoint("paid")
    for wrong in (1, 10_000):
        run._parts.checkpoint_keys[there.idempotency_key] = wrong
        assert run.checkpoint(there.idempotency_key) == there
