"""Children receive the stored JSON, decoded for them alone; never the object that their parent returned."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Builder, Context, Engine, Workflow, step, task
from tests.engine import jobs


class Handover(Workflow):
    @step
    def give(self) -> Any:
        return {"pair": (1, 2.5), "deep": [{"on": True}, None], "text": "ü\u0000", "big": 2**70}

    @task(depends_on=give)
    def first(self, give: Any) -> Any:
        give["pair"].append(3)
        give["deep"].clear()
        return give

    @task(depends_on=give)
    def second(self, give: Any, ctx: Context) -> Any:
        ctx.outputs["give"]["deep"].clear()
        return give

    @task(depends_on=[first, second])
    async def third(self, give: Any, first: Any, second: Any) -> Any:
        return [give, first, second]


def test_tuples_become_lists_and_no_change_is_seen_by_others(engine: Engine) -> None:
    given = {"pair": [1, 2.5], "deep": [{"on": True}, None], "text": "ü\u0000", "big": 2**70}
    changed = {**given, "pair": [1, 2.5, 3], "deep": []}
    run = engine.run(Handover())
    assert run.output("give") == given
    assert run.output("second") == given
    assert run.output("third") == [given, changed, given]


def test_an_object_kept_by_its_body_cannot_change_what_was_recorded(engine: Engine) -> None:
    kept: list[list[int]] = []

    class Keeper(Workflow):
        @step
        def give(self) -> list[int]:
            kept.append([1])
            return kept[0]

        @step
        def spoil(self) -> None:
            kept[0].append(2)

        @step
        def look(self, give: list[int]) -> list[int]:
            return give

    assert engine.run(Keeper()).output("look") == [1]


def test_a_node_that_returns_nothing_gives_its_children_none(engine: Engine) -> None:
    class Silent(Workflow):
        @step
        def quiet(self) -> None: ...

        @step
        def hears(self, quiet: None) -> list[None]:
            return [quiet]

    run = engine.run(Silent())
    assert run.outputs == {"quiet": None, "hears": [None]}


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_large_output_arrives_whole(sqlite_engine: Engine, isolation: Any) -> None:
    w = Builder("large")
    w.node("large", job=jobs.large, args={"size": 1024 * 1024}, isolation=isolation)
    w.node("total", job=jobs.describe, isolation=isolation)
    run = sqlite_engine.run(w)
    (seen,) = run.output("total")["outputs"].values()
    assert len(seen) == len(run.output("large")) == 1024 * 1024


def test_many_large_outputs_at_once_are_kept(sqlite_engine: Engine) -> None:
    w = Builder("many large")
    w.fan_out(range(60), job=jobs.large, args=lambda _: {"size": 512 * 1024})
    assert sqlite_engine.run(w, wait=30).status == "COMPLETED"
