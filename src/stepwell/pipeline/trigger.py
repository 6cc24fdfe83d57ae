"""`StateTrigger`: which states start which workflow, and the patterns that a name of states stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.words import shown
from ..errors import DefinitionError
from .patterns.pattern import Pattern
from .states.notes import noted_types

if TYPE_CHECKING:
    from ..base.templates import Expression
    from .stage import Stage
    from .states.port import StateStore

_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class StateTrigger(NamedTuple):
    """A trigger for states, declared by a pipeline or stored with an engine."""

    name: str
    kind: str
    """The type of its states: a stage, a type of states that another pipeline of the root makes, or a pattern of paths."""
    workflow: Any
    condition: Expression | None
    existing: bool

    @property
    def identity(self) -> list[Any]:
        """Everything that decides what it starts, as JSON."""
        started = self.workflow
        if callable(started):
            started = f"{started.__module__}:{getattr(started, '__qualname__', type(started).__qualname__)}"
        filtered = None if self.condition is None else self.condition.text
        return [self.name, self.kind, getattr(started, "digest", started), filtered, self.existing]


class Watched(NamedTuple):
    """The states that a trigger waits for."""

    kind: str
    """Their type: the stage that makes them, or what the trigger calls them."""
    patterns: tuple[Pattern, ...]
    is_known: bool
    """Whether a pipeline makes them, or they are named by path."""

    def match(self, address: str) -> dict[str, str] | None:
        return next((values for each in self.patterns if (values := each.match(address)) is not None), None)


def make_trigger(
    name: str, state: str, workflow: Any, condition: str | None, existing: bool, stages: Mapping[str, Stage]
) -> StateTrigger:
    """Make a trigger of a pipeline with these stages. DefinitionError if its filter cannot be evaluated."""
    if not isinstance(state, str) or not state:
        raise DefinitionError(f"trigger {name!r}: state={shown(state)}: expected a stage or a pattern of paths")
    if not _TYPE.match(state):
        Pattern(state)
    compiled = None
    if condition is not None:
        from ..base.templates import TemplateError
        from ..triggers.filters import compile_filter

        stage = stages.get(state)
        variables = None
        if stage is not None:
            variables = next(iter(stage.outputs.values())).pattern.variables
        elif not _TYPE.match(state):
            variables = Pattern(state).variables
        try:
            compiled = compile_filter(condition, variables)
        except TemplateError as error:
            raise DefinitionError(f"trigger {name!r}: filter={shown(condition)}: {error.problem}") from None
    return StateTrigger(name, state, workflow, compiled, existing)


def types_of_root(store: StateStore) -> list[Mapping[str, str]]:
    """The patterns of the states that each pipeline of a root makes, by their type, as its builds have noted them."""
    return noted_types(store.notes)


def watched(state: str, own: Mapping[str, str], others: Callable[[], Iterable[Mapping[str, str]]]) -> Watched:
    """Find what a trigger waits for: among the types of its `own` pipeline, or of the `others` of its root.

    A type that none of them makes yet stands for the files `type/{id}`, as in `state_write`.
    """
    if not _TYPE.match(state):
        return Watched(next((name for name, text in own.items() if text == state), state), (Pattern(state),), True)
    texts = [own[state]] if state in own else list(dict.fromkeys(each[state] for each in others() if state in each))
    return Watched(state, tuple(map(Pattern, texts)) or (Pattern(f"{state}/{{id}}"),), bool(texts))
