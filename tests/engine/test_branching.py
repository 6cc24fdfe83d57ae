"""Conditions and joins: what runs, what is skipped and why, and what becomes of it afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from stepwell import Builder, Delta, Engine, Run, Workflow, effect, step, task
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import MissingJob, ReplayMismatch, RunConflict
from stepwell.history.replay.loading import load_cassette
from stepwell.reducers import append
from tests.engine.conftest import OpenEngine


def reasons(run: Run) -> dict[str, str | None]:
    return {node.name: node.reason for node in run.nodes() if node.status == "SKIPPED"}


def statuses(run: Run) -> dict[str, str]:
    return {node.name: str(node.status) for node in run.nodes()}


class Review(Workflow):
    """check -> (review | approve) -> ship, and a chain below review."""

    risky: bool = False

    @step
    def check(self) -> dict[str, bool]:
        return {"risky": self.risky}

    @task(depends_on=check, when=lambda check: check["risky"])
    def review(self) -> str:
        return "reviewed"

    @task(depends_on=review)
    def note(self) -> str:
        return "noted"

    @task(depends_on=note)
    def file(self) -> str:
        return "filed"

    @task(depends_on=check, when=lambda self, check: not check["risky"] and not self.risky)
    async def approve(self) -> str:
        return "approved"

    @step(depends_on=[file, approve])
    def ship(self, review: str | None = None, approve: str | None = None) -> str:
        return f"{review or approve}"

    @task(depends_on=[review, approve], join="all")
    def both(self) -> None: ...


def test_a_child_of_a_skipped_and_another_parent_runs(engine: Engine) -> None:
    assert engine.run(Review()).output("ship") == "approved"
    assert engine.run(Review(risky=True)).output("ship") == "reviewed"


def test_a_node_all_of_whose_parents_were_skipped_is_skipped_and_so_on_down_a_chain(engine: Engine) -> None:
    run = engine.run(Review())
    assert reasons(run) == {
        "review": "condition",
        "note": "parents_skipped",
        "file": "parents_skipped",
        "both": "parent_skipped",
    }
    assert run.status == "COMPLETED"
    assert run.audit() == []


def test_why_names_the_condition_behind_a_chain_of_skips(engine: Engine) -> None:
    run = engine.run(Review())
    told = str(run.why("file"))
    assert "file was skipped: all of its parents were skipped" in told
    assert "review was skipped: its condition did not hold" in told
    assert "note" not in told
    assert 'with join="all" it runs only after all of them' in str(run.why("both"))


def test_a_parameter_of_a_skipped_node_has_its_default(engine: Engine) -> None:
    class Order(Workflow):
        @step
        def check(self) -> None: ...
        @step(when=lambda check: check is not None)
        def review(self) -> str:
            return "reviewed"

        @step(depends_on=[check, review])
        def ship(self, review: str = "not reviewed") -> str:
            return review

    assert engine.run(Order()).output("ship") == "not reviewed"


def test_a_condition_that_raises_fails_its_node_and_is_never_taken_for_one_that_does_not_hold(engine: Engine) -> None:
    class Order(Workflow):
        @step
        def check(self) -> dict[str, bool]:
            return {}

        @step(when=lambda check: check["risky"])
        def review(self) -> None: ...

    run = engine.run(Order(), check=False)
    assert (run.status, run.node("review").status) == ("FAILED", "FAILED")
    (attempt,) = run.node("review").attempts
    assert attempt.error is not None
    assert (attempt.error.type, attempt.error.message) == ("KeyError", "'risky' (raised by its condition <lambda>)")
    assert "<lambda>" in attempt.error.traceback


def test_a_condition_counts_into_the_time_limit_of_its_node(engine: Engine) -> None:
    class Order(Workflow):
        @step
        def check(self) -> None: ...
        @step(when=lambda check: time.sleep(1), timeout=0.1)
        def review(self) -> None: ...

    run = engine.run(Order(), check=False)
    assert run.node("review").attempts[0].status == "TIMED_OUT"


def test_a_failure_goes_before_a_skip(engine: Engine) -> None:
    class Order(Workflow, on_failure="finish"):
        @step
        def check(self) -> None: ...
        @task(depends_on=check, when=lambda check: check)
        def review(self) -> None: ...
        @task(depends_on=check)
        def charge(self) -> None:
            raise ValueError("no money")

        @step(depends_on=[review, charge])
        def ship(self) -> None: ...

    run = engine.run(Order(), check=False)
    assert statuses(run) == {
        "check": "COMPLETED",
        "review": "SKIPPED",
        "charge": "FAILED",
        "ship": "UPSTREAM_FAILED",
    }


def test_a_run_whose_last_nodes_are_all_skipped_completes(engine: Engine) -> None:
    class Order(Workflow):
        @step(when=lambda self: False)
        def check(self) -> None: ...
        @step
        def ship(self) -> None: ...

    run = engine.run(Order())
    assert (run.status, run.outputs) == ("COMPLETED", {})
    assert set(statuses(run).values()) == {"SKIPPED"}


class Flaky(Workflow):
    """The condition holds when it is evaluated again."""

    @step
    def check(self) -> None: ...
    @step(when=lambda self: Flaky.holds)
    def review(self) -> str:
        return "reviewed"

    @step
    def ship(self) -> str:
        if not Flaky.holds and not Flaky.ships:
            raise ValueError("not yet")
        return "shipped"

    @task(depends_on=[check, review])
    def end(self) -> None:
        if not Flaky.ships:
            raise ValueError("not yet")


Flaky.holds = Flaky.ships = False  # type: ignore[attr-defined]


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(Flaky, "holds", False)
    monkeypatch.setattr(Flaky, "ships", False)
    return monkeypatch


def test_a_retry_does_not_decide_again(engine: Engine, flaky: pytest.MonkeyPatch) -> None:
    run = engine.run(Flaky(), check=False)
    assert run.status == "FAILED"
    flaky.setattr(Flaky, "holds", True)
    flaky.setattr(Flaky, "ships", True)
    run.retry().wait(30).check()
    assert statuses(run) == {"check": "COMPLETED", "review": "SKIPPED", "ship": "SKIPPED", "end": "COMPLETED"}


def test_a_reattempt_of_a_skipped_node_evaluates_its_condition_again(engine: Engine, flaky: pytest.MonkeyPatch) -> None:
    run = engine.run(Flaky(), check=False)
    flaky.setattr(Flaky, "holds", True)
    flaky.setattr(Flaky, "ships", True)
    run.reattempt("review").wait(30).check()
    assert statuses(run) == dict.fromkeys(("check", "review", "ship", "end"), "COMPLETED")
    assert run.audit() == []


def test_a_node_that_was_skipped_with_its_parents_is_not_attempted_again_alone(
    engine: Engine, flaky: pytest.MonkeyPatch
) -> None:
    run = engine.run(Flaky(), check=False)
    with pytest.raises(RunConflict, match="attempt the node again whose condition did not hold"):
        run.reattempt("ship")


def test_a_reattempt_is_refused_where_a_join_has_completed_unless_it_cascades(engine: Engine) -> None:
    run = engine.run(Review())
    with pytest.raises(RunConflict, match="cascade=True"):
        run.reattempt("review")
    run.reattempt("review", cascade=True).wait(30).check()
    assert reasons(run)["review"] == "condition"


def test_a_fork_keeps_what_was_skipped_and_why(engine: Engine) -> None:
    run = engine.run(Review())
    fork = run.fork(at="ship").wait(30).check()
    assert reasons(fork) == reasons(run)
    assert fork.output("ship") == "approved"
    assert fork.audit() == []


def test_skipped_nodes_contribute_nothing_to_the_state(engine: Engine) -> None:
    class Order(Workflow):
        class State:
            notes: Annotated[list[str], append]

        @step
        def check(self) -> Delta:
            return Delta(notes="checked")

        @step(when=lambda self: False)
        def review(self) -> Delta:
            return Delta(notes="reviewed")

        @step(depends_on=[check, review])
        def ship(self, state: Any) -> list[str]:
            return list(state.notes)

    run = engine.run(Order())
    assert run.output("ship") == ["checked"]
    assert run.state == {"notes": ["checked"]}


def test_a_body_that_is_skipped_takes_no_process(engine: Engine) -> None:
    run = engine.run(Isolated(wanted=False))
    assert reasons(run) == {"work": "condition", "after": "parents_skipped"}
    assert engine.run(Isolated(wanted=True)).output("after") == 7


class Isolated(Workflow):
    wanted: bool

    @step
    def check(self) -> bool:
        return self.wanted

    @step(when=lambda check: check, isolation="process")
    def work(self) -> int:
        return 7

    @step(isolation="process")
    def after(self, work: int) -> int:
        return work


def test_a_chain_of_skips_needs_one_commit_a_node_and_no_body(engine: Engine) -> None:
    w = Builder("chain")
    w.node("first", job=nothing)
    w.node("gate", job=nothing, when=never)
    for number in range(300):
        w.node(f"n{number}", job=never_called)
    run = engine.run(w, wait=60)
    assert [node.reason for node in run.nodes()].count("parents_skipped") == 300
    assert str(run.why("n299")).count("its condition did not hold") == 1


def nothing() -> None: ...


def never(first: Any) -> bool:
    return False


def never_called() -> None:
    raise AssertionError("its parents were skipped")


class Replayed(Workflow, side_effects="pure"):
    limit: int = 10

    @step
    def check(self) -> int:
        return 7

    @step(when=lambda self, check: check > Replayed.over)
    def review(self) -> str:
        return "reviewed"

    @task(depends_on=check, when=lambda check: check <= Replayed.over)
    def approve(self) -> str:
        return "approved"


Replayed.over = 10  # type: ignore[attr-defined]


def test_a_replay_evaluates_conditions_again_and_compares(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine.run(Replayed())
    assert set(run.replay().executed) == {"check", "review", "approve"}
    monkeypatch.setattr(Replayed, "over", 5)
    with pytest.raises(ReplayMismatch, match="its condition holds; when it was recorded it did not") as mismatch:
        run.replay()
    assert mismatch.value.node == "review"


def test_a_cassette_has_the_conditions(engine: Engine, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "review.cassette.json"
    engine.run(Replayed()).export(file)
    assert set(replay_cassette(load_cassette(file), Replayed).executed) == {"check", "review", "approve"}
    monkeypatch.setattr(Replayed, "over", 5)
    with pytest.raises(ReplayMismatch, match="its condition"):
        replay_cassette(load_cassette(file), Replayed)


def changing(limit: int, *, conditional: bool = True, fails: bool = False) -> type[Workflow]:
    options: Any = {"when": lambda check: check > limit} if conditional else {}

    class Order(Workflow, name="order"):
        @step
        def check(self) -> int:
            return 7

        @step(**options)
        def review(self) -> str:
            return "reviewed"

        @task(depends_on=check)
        def charge(self) -> None:
            if fails:
                raise ValueError("no money")

        @step(depends_on=charge, **options)
        def thank(self) -> str:
            return "thanks"

    return Order


@pytest.mark.parametrize("conditional", [True, False])
def test_a_heal_keeps_what_was_decided_and_lets_the_new_code_decide_the_rest(
    open_sqlite: OpenEngine, conditional: bool
) -> None:
    first = open_sqlite(workflows=[changing(10, fails=True)])
    run = first.run(changing(10, fails=True)(), check=False)
    assert (run.node("review").status, run.node("thank").status) == ("SKIPPED", "UPSTREAM_FAILED")
    first.close()
    second = open_sqlite(workflows=[changing(5, conditional=conditional)])
    again = second.get(run.id).retry().wait(30).check()
    assert statuses(again) == {"check": "COMPLETED", "review": "SKIPPED", "charge": "COMPLETED", "thank": "COMPLETED"}
    assert again.audit() == []


def is_more(left: int, right: int) -> bool:
    return left > right


def number(value: int) -> int:
    return value


def counted(ctx: Any) -> list[str]:
    return sorted(ctx.outputs.parents())


def decisions() -> Builder:
    w = Builder("numbers")
    w.node("right", job=number, args={"value": 1}, depends_on=None)
    w.node("left", job=number, args={"value": 2}, depends_on=None)
    w.node("more", job=nothing, depends_on=["left", "right"], when=is_more)
    w.node("less", job=nothing, depends_on=["left", "right"], when=is_less)
    w.node("count", job=counted, depends_on=["more", "less"])
    return w


def is_less(right: int, left: int) -> bool:
    return left < right


def test_conditions_of_builders_run_on_servers_without_being_allowed(server_url: str) -> None:
    with Engine(server_url) as engine:
        run = engine.run(decisions(), wait=60)
        assert statuses(run) | {"count": ""} == {
            "right": "COMPLETED",
            "left": "COMPLETED",
            "more": "COMPLETED",
            "less": "SKIPPED",
            "count": "",
        }
        assert run.output("count") == ["more"]


def test_parameters_of_a_condition_stand_for_nodes_whatever_their_order(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_sqlite(runner=None).start(decisions())
    monkeypatch.setattr(f"{__name__}.is_more", is_more_turned)
    open_sqlite().adopt(run.id).wait(30).check()
    assert reasons(run) == {"less": "condition"}


def test_a_condition_that_has_lost_a_parameter_is_missing_before_anything_is_attempted(
    open_sqlite: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_sqlite(runner=None).start(decisions())
    monkeypatch.setattr(f"{__name__}.is_more", lambda left: True)
    with pytest.raises(MissingJob, match="it has no parameter 'right' any more"):
        open_sqlite().adopt(run.id)


def is_more_turned(right: int, left: int) -> bool:
    return left > right


async def later() -> bool:
    return False


@pytest.mark.parametrize("gives", [later, lambda: (each for each in ())])
def test_a_condition_that_gives_a_coroutine_or_a_generator_fails_its_node(engine: Engine, gives: Any) -> None:
    class Order(Workflow):
        @step(when=lambda self: gives())
        def review(self) -> None: ...

    run = engine.run(Order(), check=False)
    assert run.node("review").status == "FAILED"
    assert "a condition is a plain function" in str(run.why("review"))


def test_a_condition_cannot_change_what_the_body_receives(engine: Engine) -> None:
    class Order(Workflow):
        @step
        def check(self) -> dict[str, int]:
            return {"x": 1}

        @step(when=lambda check: check.update(x=99) is None)
        def review(self, check: dict[str, int]) -> int:
            return check["x"]

    assert engine.run(Order()).output("review") == 1


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_outputs_of_skipped_nodes_are_not_there(engine: Engine, isolation: str) -> None:
    run = engine.run(Looking() if isolation == "thread" else LookingApart())
    assert run.output("look") == [["check"], ["check"], False, None, "node 'review' was skipped and has no output"]


def look(ctx: Any) -> list[Any]:
    try:
        ctx.outputs["review"]
        message = ""
    except KeyError as error:
        message = error.args[0].partition(":")[0]
    return [
        sorted(ctx.outputs.parents()),
        sorted(ctx.outputs.all()),
        "review" in ctx.outputs,
        ctx.outputs.get("review"),
        message,
    ]


class Looking(Workflow):
    @step
    def check(self) -> int:
        return 1

    @step(when=lambda check: False)
    def review(self) -> None: ...
    @step(depends_on=[check, review])
    def look(self, ctx: Any) -> list[Any]:
        return look(ctx)


class LookingApart(Workflow):
    @step
    def check(self) -> int:
        return 1

    @step(when=lambda check: False)
    def review(self) -> None: ...
    @step(depends_on=[check, review], isolation="process")
    def look(self, ctx: Any) -> list[Any]:
        return look(ctx)


def test_an_idempotency_key_receives_none_of_a_skipped_node(engine: Engine) -> None:
    class Order(Workflow):
        @step
        def check(self) -> int:
            return 1

        @step(when=lambda check: False)
        def review(self) -> None: ...
        @step(depends_on=[check, review], idempotency_key=lambda self, review: f"order-{review}")
        def ship(self, ctx: Any, review: str | None = None) -> str:
            return str(ctx.idempotency_key)

    assert engine.run(Order()).output("ship") == "order-None"


@effect("rate")
def rate() -> int:
    return 7


class Priced(Workflow, side_effects="recordable"):
    @step(when=lambda self: rate() > 100)
    def review(self) -> None: ...


def test_effects_of_a_condition_that_does_not_hold_are_recorded_and_replayed(engine: Engine) -> None:
    run = engine.run(Priced())
    assert reasons(run) == {"review": "condition"}
    assert run.replay().effects == 1


def test_a_class_does_not_answer_for_a_condition_that_was_edited(engine: Engine) -> None:
    run = engine.run(changing(10, fails=True)(), check=False)
    frozen = run.export_graph()
    frozen["nodes"]["thank"]["when"] = "nonsense"
    run.import_graph(frozen)
    with pytest.raises(MissingJob, match="the class of this run has no condition nonsense of node 'thank'"):
        run.retry()


def test_async_engines_and_coroutines_skip_too() -> None:
    async def both() -> Mapping[str, Any]:
        async with Engine("memory://") as engine:
            run = await engine.run(Review(risky=True))
            return dict(await run.outputs)

    assert "approve" not in asyncio.run(both())
