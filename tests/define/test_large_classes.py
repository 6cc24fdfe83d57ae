"""A class that a program wrote, with ten thousand steps, is a class like any other.

The limits are far above what it takes (about a second); work that grows with the square of the steps misses them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from stepwell.base.place import SourceLine
from stepwell.define import Builder, Workflow, step, task
from stepwell.errors import GraphError

STEPS = 10_000
LIMIT_SECONDS = 12.0

Lines = Callable[[int], list[str]]


def plain(number: int) -> list[str]:
    return ["@step", f"def s{number}(self): ..."]


def takes_the_output_of_the_first(number: int) -> list[str]:
    return ["@step", f"def s{number}(self, s0): ..."]


def inserted_after_another(number: int) -> list[str]:
    return [f"@step(after_step=s{number // 2})", f"def s{number}(self): ..."]


def inserted_at_the_head(number: int) -> list[str]:
    return [f"@step(before_step=s{number - 1}, was='old_{number}')", f"def s{number}(self): ..."]


def a_task_of_the_first(number: int) -> list[str]:
    return ["@task(depends_on=s0)", f"def s{number}(self, s0): ..."]


def a_job(number: int) -> list[str]:
    return [f"s{number} = step(job='shop.jobs:work')"]


def a_parameter_that_nothing_fills(number: int) -> list[str]:
    return ["@step", f"def s{number}(self, nothing): ..."]


def a_misspelt_place(number: int) -> list[str]:
    return [f"@step(after_step='r{number}')", f"def s{number}(self): ..."]


def a_misspelt_dependency(number: int) -> list[str]:
    return [f"@step(also_depends_on='r{number}')", f"def s{number}(self): ..."]


def written(lines: Lines) -> type[Workflow]:
    source = ["class Large(Workflow):", *(f"    {line}" for line in plain(0))]
    for number in range(1, STEPS):
        source += [f"    {line}" for line in lines(number)]
    code = compile("\n".join(source), "large.py", "exec")  # Python's own part is not ours to measure
    namespace: dict[str, Any] = {"Workflow": Workflow, "step": step, "task": task, "__name__": "large"}
    started = time.perf_counter()
    try:
        exec(code, namespace)
        assert len(namespace["Large"].workflow_graph().order) == STEPS
    finally:
        assert time.perf_counter() - started < LIMIT_SECONDS
    made: type[Workflow] = namespace["Large"]
    return made


@pytest.mark.parametrize(
    "lines",
    [plain, takes_the_output_of_the_first, inserted_after_another, inserted_at_the_head, a_task_of_the_first, a_job],
)
def test_ten_thousand_steps_compile(lines: Lines) -> None:
    written(lines)


@pytest.mark.parametrize("lines", [a_parameter_that_nothing_fills, a_misspelt_place, a_misspelt_dependency])
def test_ten_thousand_mistakes_are_reported(lines: Lines) -> None:
    with pytest.raises(GraphError) as caught:
        written(lines)
    assert len(caught.value.problems) == STEPS - 1
    assert len(str(caught.value)) < 400 * STEPS


def test_a_subclass_of_ten_thousand_steps_compiles() -> None:
    base = written(plain)
    started = time.perf_counter()

    class Child(base):  # type: ignore[valid-type, misc]
        @step(before_step="s0")
        def first(self) -> None: ...

    assert time.perf_counter() - started < LIMIT_SECONDS
    assert Child.workflow_graph().nodes["s0"].depends_on == ("first",)


def test_no_line_is_counted_while_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts lines from the top: asked for by every step, that alone would take the square of their number."""

    def counted(place: SourceLine) -> int:
        raise AssertionError("a line was counted")

    monkeypatch.setattr(SourceLine, "line", property(counted))

    class Small(Workflow):
        @step
        def first(self) -> None: ...
        @step(retry=3)
        def second(self) -> None: ...

        third = step(job="shop.jobs:work")

    w = Builder("small")
    w.node("first", job="shop.jobs:work")
    assert len(Small.workflow_graph()) + len(w.graph()) == 4
