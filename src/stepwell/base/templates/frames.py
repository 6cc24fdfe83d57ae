"""What every part of a compiled template is handed, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from .limits import Budget

Scope: TypeAlias = Mapping[str, Any]
"""What an expression may name: JSON values, and `NodeOutput` for nodes."""


class Reference(NamedTuple):
    """A name that is read from its scope, and the first field of it: None if it is read whole or by a computed key."""

    name: str
    field: str | None
    line: int
    column: int
    whole: bool = False
    """It stands by itself, without a field or an item of it."""
    defaulted: bool = False
    """The filter `default` says what stands for it if it is missing."""
    tested: bool = False
    """It is only looked whether it is there: `is defined`."""


class Frame:
    """One rendering: the scope, the variables of its loops, and what it may still cost."""

    __slots__ = ("budget", "local", "scope")

    def __init__(self, scope: Any, budget: Budget, local: dict[str, Any]) -> None:
        self.scope = scope
        self.budget = budget
        self.local = local


Evaluate = Callable[[Frame], Any]
Write = Callable[[Frame, list[str]], None]
