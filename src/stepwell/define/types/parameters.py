"""The parameters of a body."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

CONTEXT = "ctx"
STATE = "state"


class Parameters(NamedTuple):
    """The parameters of a function that can be given by name."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    """Those without a default; also positional-only ones, which cannot be filled by name."""
    has_self: bool

    @property
    def takes_ctx(self) -> bool:
        return CONTEXT in self.names

    @property
    def takes_state(self) -> bool:
        return STATE in self.names


def parameters_of(function: Callable[..., Any], *, method: bool = False) -> Parameters:
    """The parameters of `function`, without the `self` of a method."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return Parameters((), (), False)
    has_self = method and bool(found) and found[0].kind is not inspect.Parameter.KEYWORD_ONLY
    if has_self and found[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        del found[0]
    named = [each for each in found if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    positional = [each for each in found if each.kind is each.POSITIONAL_ONLY]
    return Parameters(
        tuple(each.name for each in named),
        tuple(each.name for each in [*positional, *named] if each.default is each.empty),
        has_self,
    )


def yields(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives a generator instead of a result."""
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
