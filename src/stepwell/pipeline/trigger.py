"""`Trigger`: which states of a pipeline start which workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import DefinitionError
from ..words import shown
from .patterns.pattern import Pattern
from .stage import Stage

if TYPE_CHECKING:
    from ..templates import Expression


class Trigger(NamedTuple):
    name: str
    pattern: Pattern
    kind: str
    """The type of the state: the stage that makes it, or the pattern."""
    workflow: Any
    condition: Expression | None
    existing: bool


def make_trigger(
    stages: Mapping[str, Stage], name: str, state: str, workflow: Any, condition: str | None, existing: bool
) -> Trigger:
    """A trigger for a state of one of these stages, named by the stage or by a pattern."""
    compiled = None
    if condition is not None:
        from ..templates import TemplateError, compile_expression

        try:
            compiled = compile_expression(condition)
        except TemplateError as error:
            raise DefinitionError(f"trigger {name!r}: filter={shown(condition)}: {error}") from None
    stage = stages.get(state)
    if stage is not None:
        return Trigger(name, next(iter(stage.outputs.values())).pattern, state, workflow, compiled, existing)
    pattern = Pattern(state)
    makers = (each.name for each in stages.values() for o in each.outputs.values() if o.pattern.text == state)
    return Trigger(name, pattern, next(makers, state), workflow, compiled, existing)
