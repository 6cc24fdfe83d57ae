"""A node that was renamed is the same for its body, in a thread, on the loop and in a process of its own."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from stepwell import Workflow
from tests.engine.conftest import OpenEngine

BEFORE = """
from stepwell import Context, Workflow, step

OPTIONS = {options}

class Renamed(Workflow):
    @step(**OPTIONS)
    def load(self):
        return "loaded"

    @step(**OPTIONS, side_effects="recordable")
    {kind} charge(self, ctx: Context):
        ctx.outcome["seen"] = [ctx.idempotency_key, str(ctx.uuid()), ctx.random.random(), ctx.node_id, ctx.node_name]
        ctx.effect("pay", lambda: "paid", durable=True)
        raise ValueError("not yet")

    @step
    def close(self):
        pass
"""
AFTER = """
from stepwell import Context, Workflow, step

def never():
    raise AssertionError("it was paid before")

OPTIONS = {options}

class Renamed(Workflow):
    @step(was="load", **OPTIONS)
    def fetch(self):
        raise AssertionError("it was done before")

    @step(was="charge", **OPTIONS, side_effects="recordable")
    {kind} bill(self, fetch, ctx: Context):
        ctx.outcome["seen"] = [ctx.idempotency_key, str(ctx.uuid()), ctx.random.random(), ctx.node_id, ctx.node_name]
        return [fetch, ctx.outputs["fetch"], dict(ctx.outputs), ctx.effect("pay", never, durable=True)]

    @step
    def close(self):
        pass
"""


@pytest.mark.parametrize(
    ("where", "kind", "options"),
    [("thread", "def", {}), ("process", "def", {"isolation": "process"}), ("loop", "async def", {})],
)
def test_it_has_its_key_its_chance_its_effects_and_the_outputs_of_others(
    open_sqlite: OpenEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, kind: str, options: Any
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def version(name: str, source: str) -> type[Workflow]:
        module = f"{name}_{where}"
        (tmp_path / f"{module}.py").write_text(source.replace("{kind}", kind).replace("{options}", repr(options)))
        found: type[Workflow] = importlib.import_module(module).Renamed
        return found

    with open_sqlite(workflows=[version("before", BEFORE)]) as engine:
        run = engine.run(version("before", BEFORE)(), check=False)
        assert run.status == "FAILED"
    engine = open_sqlite(workflows=[version("after", AFTER)])
    healed = engine.get(run.id).retry().wait(30).check()
    assert healed.output("bill") == ["loaded", "loaded", {"fetch": "loaded"}, "paid"]
    first, second = (_seen(attempt.outcome) for attempt in healed.node("bill").attempts)
    assert first[:3] == second[:3]
    assert first[0] == f"{run.id}:charge"
    assert (first[3:], second[3:]) == (["charge", "charge"], ["bill", "bill"])
    assert [effect.from_attempt for effect in healed.effects("bill")] == [None, 1]
    assert healed.audit() == []


def _seen(outcome: Any) -> list[Any]:
    found: list[Any] = outcome["seen"]
    return found
