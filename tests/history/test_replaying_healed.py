"""A run that was healed is replayed with what each attempt was given when it began."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from stepwell import Context, Delta, Run, Workflow, step, task
from stepwell.engine.reports.replay import Replayed, replay_cassette
from stepwell.history.replay.loading import load_cassette
from stepwell.reducers import append
from tests.engine.conftest import OpenEngine

BROKEN: set[str] = set()


@pytest.fixture(autouse=True)
def nothing_is_broken() -> None:
    BROKEN.clear()


def before() -> type[Workflow]:
    class Healed(Workflow):
        @step(side_effects="recordable")
        def fetch(self, ctx: Context) -> list[object]:
            return [ctx.effect("page", lambda: "page"), str(ctx.uuid())]

        @step(side_effects="pure")
        def count(self, ctx: Context, fetch: list[object]) -> list[object]:
            return [len(fetch), sorted(ctx.outputs), ctx.idempotency_key]

        @task(depends_on=None, side_effects="pure")
        def aside(self) -> int:
            return 1

        @step(side_effects="pure")
        def publish(self) -> str:
            if "publish" in BROKEN:
                raise ValueError("broken for now")
            return "published"

    return Healed


def after() -> type[Workflow]:
    class Healed(Workflow):
        @step(side_effects="recordable")
        def fetch(self, ctx: Context) -> list[object]:
            return [ctx.effect("page", lambda: "page"), str(ctx.uuid())]

        @task(depends_on=None, side_effects="pure")
        def licence(self) -> str:
            return "MIT"

        @step(side_effects="pure", was="count", also_depends_on=licence)
        def measure(self, ctx: Context, fetch: list[object], licence: str | None = None) -> list[object]:
            """It was `count`, which knew nothing of a licence."""
            return [len(fetch) if licence is None else 0, sorted(ctx.outputs), ctx.idempotency_key]

        @step(side_effects="pure")
        def publish(self) -> str:
            return "published"

    return Healed


def test_a_healed_run_is_replayed(open_sqlite: OpenEngine) -> None:
    BROKEN.add("publish")
    old, new = before(), after()
    engine = open_sqlite(workflows=[old])
    run = engine.run(old(), check=False)
    assert run.status == "FAILED"
    engine.close()
    BROKEN.clear()
    healed = open_sqlite(workflows=[new]).get(run.id).retry(accept=True).wait(60).check()
    assert healed.row.heals == 1
    assert healed.output("measure") == [2, ["fetch"], f"{run.id}:count"]
    report = healed.replay()
    assert sorted(report.executed) == ["fetch", "measure", "publish"]
    assert report.stubbed == {"aside": "removed from the graph since"}
    assert report.effects == 1


def fails(when: str) -> None:
    if when in BROKEN:
        raise ValueError("broken for now")


def healed(open_sqlite: OpenEngine, *versions: type[Workflow]) -> Run:
    """A run that failed under each version but the last, and was healed and retried each time."""
    BROKEN.add("last")
    engine = open_sqlite(workflows=[versions[0]])
    run = engine.run(versions[0](), run_id="healed", check=False)
    assert run.status == "FAILED"
    for number, version in enumerate(versions[1:], 1):
        engine.close()
        engine = open_sqlite(workflows=[version])
        if number == len(versions) - 1:
            BROKEN.clear()
        run = engine.get("healed").retry(accept=True).wait(60)
        assert run.row.heals == number
    return run.check()


def agree(run: Run, version: type[Workflow], file: Path) -> Replayed:
    """The run, its cassette, a fork of it and the cassette of that are all replayed without a difference."""
    report = run.replay()
    fork = run.fork().wait(60).check()
    for each in (run, fork):
        from_cassette = replay_cassette(load_cassette(each.export(file)), version)
        again = each.replay()
        assert again.executed == from_cassette.executed == report.executed
        assert again.stubbed == from_cassette.stubbed == report.stubbed
    return report


def test_a_node_is_given_the_state_of_its_time(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            class State:
                notes: Annotated[list[str], append]

            @step(side_effects="pure")
            def a(self) -> Delta:
                return Delta(notes="a")

            if number == 1:

                @step(side_effects="pure")
                def gone(self) -> Delta:
                    return Delta(notes="gone")

            @step(side_effects="pure")
            def b(self) -> Delta:
                return Delta(notes="b")

            @step(side_effects="pure")
            def c(self, state: State) -> list[str]:
                return list(state.notes)

            @step(side_effects="pure")
            def d(self, state: State) -> list[str]:
                fails("last")
                return list(state.notes)

        return Healed

    new = version(2)
    run = healed(open_sqlite, version(1), new)
    assert (run.output("c"), run.output("d")) == (["a", "gone", "b"], ["a", "b"])
    report = agree(run, new, tmp_path / "healed.json")
    assert report.executed == ("a", "b", "c", "d")
    assert report.stubbed == {"gone": "removed from the graph since"}


def test_a_node_is_shown_the_ancestors_of_its_time(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            @step(side_effects="pure")
            def a(self) -> int:
                return 1

            if number == 2:

                @step(side_effects="pure")
                def inserted(self) -> int:
                    return 2

            @step(side_effects="pure")
            def b(self) -> int:
                return 3

            @step(side_effects="pure")
            def c(self, ctx: Context) -> list[object]:
                return [sorted(ctx.outputs), len(ctx.outputs), ctx.outputs.all(), "inserted" in ctx.outputs]

            @step(side_effects="pure")
            def d(self, ctx: Context) -> list[str]:
                fails("last")
                return sorted(ctx.outputs)

        return Healed

    new = version(2)
    run = healed(open_sqlite, version(1), new)
    assert run.output("c") == [["a", "b"], 2, {"a": 1, "b": 3}, False]
    assert run.output("d") == ["a", "b", "c", "inserted"]
    agree(run, new, tmp_path / "healed.json")


def test_a_node_has_the_order_key_of_its_time(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            @step(side_effects="pure")
            def a(self) -> int:
                return 1

            if number == 2:

                @task(depends_on=a, side_effects="pure")
                def before_b(self) -> int:
                    return 2

            @task(depends_on=a, side_effects="pure")
            def b(self, ctx: Context) -> str:
                return str(ctx.order_key)

            @task(depends_on=b, side_effects="pure")
            def c(self) -> None:
                fails("last")

        return Healed

    old, new = version(1), version(2)
    run = healed(open_sqlite, old, new)
    assert run.output("b") == str(old.workflow_graph().order_key("b")) != str(new.workflow_graph().order_key("b"))
    agree(run, new, tmp_path / "healed.json")


def before_renaming() -> type[Workflow]:
    class Healed(Workflow):
        @task(depends_on=None, side_effects="pure")
        def a(self) -> int:
            return 1

        @task(depends_on=a, side_effects="pure")
        def b(self, ctx: Context, a: int) -> list[object]:
            return [a, str(ctx.order_key), ctx.node_id, ctx.node_name, ctx.idempotency_key, sorted(ctx.outputs)]

        @task(depends_on=b, side_effects="pure")
        def c(self, ctx: Context) -> list[object]:
            return [ctx.outputs["a"], dict(ctx.outputs)["a"], sorted(ctx.outputs.all())]

        @task(depends_on=c, side_effects="pure")
        def last(self) -> None:
            fails("last")

    return Healed


def after_renaming() -> type[Workflow]:
    class Healed(Workflow):
        @task(depends_on=None, side_effects="pure", was="a")
        def aa(self) -> int:
            return 1

        @task(depends_on=None, side_effects="pure")
        def x(self) -> int:
            return 2

        @task(depends_on=[aa, x], side_effects="pure", was="b")
        def bb(self, ctx: Context, aa: int) -> list[object]:
            return [aa, str(ctx.order_key), ctx.node_id, ctx.node_name, ctx.idempotency_key, sorted(ctx.outputs)]

        @task(depends_on=bb, side_effects="pure")
        def c(self, ctx: Context) -> list[object]:
            """It asks for what it used to ask for, by the name that has now."""
            return [ctx.outputs["aa"], dict(ctx.outputs)["a"], sorted(ctx.outputs.all())]

        @task(depends_on=c, side_effects="pure")
        def last(self) -> None:
            fails("last")

    return Healed


def test_a_renamed_node_knows_itself_and_others_as_it_did(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    old, new = before_renaming(), after_renaming()
    run = healed(open_sqlite, old, new)
    assert run.output("bb") == [1, str(old.workflow_graph().order_key("b")), "b", "b", "healed:b", ["a"]]
    report = agree(run, new, tmp_path / "healed.json")
    assert set(report.executed) == {"aa", "bb", "c", "last"}


def test_every_attempt_of_a_run_that_was_healed_twice_is_given_what_it_was_given(
    open_sqlite: OpenEngine, tmp_path: Path
) -> None:
    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            class State:
                notes: Annotated[list[str], append]

            if number != 2:

                @step(side_effects="pure")
                def comes_and_goes(self) -> Delta:
                    return Delta(notes="comes and goes")

            @step(side_effects="pure")
            def a(self, state: State, ctx: Context) -> Delta:
                return Delta([state.notes, str(ctx.order_key)], notes="a")

            @step(side_effects="pure")
            def b(self, state: State, ctx: Context) -> Delta:
                if number == 1:
                    fails("last")
                return Delta([state.notes, str(ctx.order_key)], notes="b")

            @step(side_effects="pure")
            def c(self, state: State, ctx: Context) -> Delta:
                fails("last")
                return Delta([state.notes, str(ctx.order_key)], notes="c")

        return Healed

    versions = [version(1), version(2), version(3)]
    run = healed(open_sqlite, *versions)
    assert run.output("a")[0] == ["comes and goes"]
    assert run.output("b")[0] == ["a"]
    assert run.output("c")[0] == ["comes and goes", "a", "b"]
    assert len({run.output(node)[1] for node in "abc"}) == 3
    agree(run, versions[2], tmp_path / "healed.json")


def test_what_a_node_stood_on_is_kept_when_it_is_asked_for_again_later(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    """A heal has parted the two, so nothing stands on the first any more and it may be attempted again."""

    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            class State:
                notes: Annotated[list[int], append]

            @task(depends_on=None, side_effects="recordable")
            def a(self, ctx: Context) -> Delta:
                return Delta(ctx.attempt, notes=ctx.attempt)

            @task(depends_on=a if number == 1 else None, side_effects="pure")
            def b(self, state: State, ctx: Context) -> list[object]:
                return [ctx.outputs.get("a"), list(state.notes)]

            @task(depends_on=b, side_effects="pure")
            def c(self) -> None:
                fails("last")

        return Healed

    new = version(2)
    run = healed(open_sqlite, version(1), new).reattempt("a").wait(60).check()
    assert (run.output("a"), run.output("b")) == (2, [1, [1]])
    agree(run, new, tmp_path / "healed.json")


def test_the_fork_of_a_healed_run_that_is_asked_for_more_is_replayed(open_sqlite: OpenEngine, tmp_path: Path) -> None:
    def version(number: int) -> type[Workflow]:
        class Healed(Workflow):
            @task(depends_on=None, side_effects="recordable")
            def a(self, ctx: Context) -> str:
                return f"{ctx.run_id} {ctx.attempt}"

            @task(depends_on=a if number == 1 else None, side_effects="pure")
            def b(self, ctx: Context) -> str:
                return ctx.outputs.get("a", "nobody")

            @task(depends_on=b, side_effects="pure")
            def c(self) -> None:
                fails("last")

        return Healed

    new = version(2)
    fork = healed(open_sqlite, version(1), new).fork(run_id="fork").wait(60).check()
    fork.reattempt("a").wait(60).check()
    assert (fork.output("a"), fork.output("b")) == ("fork 2", "healed 1")
    agree(fork, new, tmp_path / "fork.json")


class Kept(Workflow):
    """It keeps its graph: frozen, or edited by hand."""

    class State:
        notes: Annotated[list[str], append]

    @task(depends_on=None, side_effects="pure")
    def first(self, ctx: Context) -> Delta:
        return Delta(str(ctx.order_key), notes="first")

    @task(depends_on=None, side_effects="pure")
    def aside(self, ctx: Context) -> Delta:
        return Delta(str(ctx.order_key), notes="aside")

    @task(depends_on=[first, aside], side_effects="pure")
    def both(self, state: State) -> list[str]:
        return list(state.notes)

    @task(depends_on=both, side_effects="pure")
    def last(self, state: State) -> list[str]:
        fails("last")
        return list(state.notes)


def test_a_run_whose_graph_was_edited_is_replayed(open_engine: OpenEngine, tmp_path: Path) -> None:
    BROKEN.add("last")
    run = open_engine(workflows=[Kept]).run(Kept(), check=False)
    BROKEN.clear()
    form = run.export_graph()
    nodes = form["nodes"]
    nodes["first"]["position"], nodes["aside"]["position"] = nodes["aside"]["position"], nodes["first"]["position"]
    run.import_graph(form).retry().wait(60).check()
    assert run.output("both") == run.output("last")[::-1], "who was declared first is folded in another order now"
    agree(run, Kept, tmp_path / "edited.json")


def test_a_run_that_was_frozen_is_replayed(open_engine: OpenEngine, tmp_path: Path) -> None:
    BROKEN.add("last")
    run = open_engine(workflows=[Kept]).run(Kept(), check=False)
    BROKEN.clear()
    run.freeze().retry().wait(60).check()
    assert agree(run, Kept, tmp_path / "frozen.json").executed[-1] == "last"
