"""The triggers of a pipeline: `Trigger(state=...)`, and the patterns that a name of states stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.words import shown
from ..errors import DefinitionError
from .patterns.pattern import Pattern

if TYPE_CHECKING:
    from ..triggers.definition import Trigger
    from .stage import Stage

_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class OwnTrigger(NamedTuple):
    """A trigger that a pipeline declares."""

    trigger: Trigger
    target: Any = None
    """What it starts, if that was given as an object: a Document, a class, or a function of the event."""

    @property
    def identity(self) -> list[Any]:
        """Everything that decides what it starts, as JSON."""
        return [self.trigger.canonical, getattr(self.target, "digest", None)]


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
    name: str,
    pipeline: str,
    state: str,
    workflow: Any,
    *,
    stages: Mapping[str, Stage],
    filter: str | None = None,
    existing: bool = False,
    input: Any = None,
) -> OwnTrigger:
    """Make a trigger of a pipeline with these stages. DefinitionError if its filter cannot be evaluated."""
    from ..triggers.definition import Trigger

    if not isinstance(state, str) or not state:
        raise DefinitionError(f"trigger {name!r}: expected a stage or a pattern of paths as state=, got {shown(state)}")
    is_type = _TYPE.match(state)
    wanted = {"pipeline": pipeline, "state_type" if is_type else "path": state, "existing": existing}
    if filter is not None:
        wanted["filter"] = filter
    trigger = Trigger(name, _name_of(workflow), state=wanted, input=input)
    if filter is not None:
        check_filter(name, filter, state, stages)
    return OwnTrigger(trigger, None if isinstance(workflow, str) else workflow)


def _name_of(workflow: Any) -> Any:
    """What a trigger calls a workflow that was given as an object."""
    if callable(workflow):
        return f"{workflow.__module__}:{getattr(workflow, '__qualname__', type(workflow).__qualname__)}"
    return getattr(workflow, "name", workflow)


def check_filter(name: str, text: str, state: str, stages: Mapping[str, Stage]) -> None:
    """Refuse a filter that names a variable which these states do not have."""
    from ..base.templates import TemplateError
    from ..triggers.filters import compile_filter

    stage = stages.get(state)
    pattern = Pattern(state) if not _TYPE.match(state) else stage and next(iter(stage.outputs.values())).pattern
    try:
        compile_filter(text, pattern.variables if pattern else None)
    except TemplateError as error:
        raise DefinitionError(f"trigger {name!r}: filter={shown(text)}: {error.problem}") from None


def watched(state: str, own: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> Watched:
    """Find what a trigger waits for: among the types of its `own` pipeline, or of the `others` of its root.

    A type that none of them makes yet stands for the files `type/{id}`, as in `state_write`.
    """
    if not _TYPE.match(state):
        return Watched(next((name for name, text in own.items() if text == state), state), (Pattern(state),), True)
    texts = [own[state]] if state in own else list(dict.fromkeys(each[state] for each in others if state in each))
    return Watched(state, tuple(map(Pattern, texts)) or (Pattern(f"{state}/{{id}}"),), bool(texts))
