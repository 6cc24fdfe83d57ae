"""An insertion that cannot be made says so, with its line."""

from __future__ import annotations

import pytest

from stepwell.define import Workflow, step, task
from stepwell.errors import DefinitionError, GraphError
from tests.define.lines import place


def test_before_and_after_at_once_are_refused() -> None:
    with pytest.raises(DefinitionError, match="not both") as caught:

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            @step(before_step=validate, after_step=validate)  # both
            def audit(self) -> None: ...

    assert caught.value.where == place(__file__, "both")


def test_an_unknown_step_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            @step(after_step="valdate")  # typo
            def audit(self) -> None: ...
            @step(before_step="something else")  # unknown
            def ship(self) -> None: ...

    assert [str(problem) for problem in caught.value.problems] == [
        f"audit: after_step='valdate': that is no step; did you mean 'validate'? ({place(__file__, 'typo')})",
        f"ship: before_step='something else': that is no step of this class ({place(__file__, 'unknown')})",
    ]


def test_a_task_is_no_place_in_the_chain() -> None:
    with pytest.raises(GraphError, match="that is a task, and not in the chain"):

        class Order(Workflow):
            @task(depends_on=None)
            def news(self) -> None: ...
            @step(after_step=news)
            def read(self) -> None: ...


def test_steps_that_stand_next_to_each_other_only_are_refused() -> None:
    with pytest.raises(GraphError) as caught:

        class Order(Workflow):
            @step
            def validate(self) -> None: ...
            @step(after_step="b")
            def a(self) -> None: ...
            @step(before_step=a)
            def b(self) -> None: ...
            @step(after_step="itself")
            def itself(self) -> None: ...

    assert [problem.where for problem in caught.value.problems] == ["a", "b", "itself"]
    assert "in a circle" in str(caught.value)
