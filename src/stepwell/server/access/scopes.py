"""What a token allows. Each scope includes those before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from ...errors import InputError
from ...words import shown

Scope: TypeAlias = Literal["read", "run", "author", "admin"]

SCOPES: tuple[Scope, ...] = ("read", "run", "author", "admin")
MEANINGS: dict[Scope, str] = {
    "read": "look at workflows, runs, logs, outputs and pipelines",
    "run": "start runs of what is stored, and steer them",
    "author": "store documents and triggers, edit graphs: decides what runs",
    "admin": "delete runs, look at tokens",
}


def allows(scopes: Iterable[str], needed: Scope) -> bool:
    """
    >>> allows(["author"], "run"), allows(["read"], "run")
    (True, False)
    """
    return any(SCOPES.index(scope) >= SCOPES.index(needed) for scope in scopes if scope in SCOPES)


def checked_scopes(given: Iterable[str]) -> tuple[Scope, ...]:
    chosen = tuple(given)
    wrong = [scope for scope in chosen if scope not in SCOPES]
    if wrong or not chosen:
        told = f"there is no scope {shown(wrong[0])}" if wrong else "a token needs a scope"
        raise InputError(f"{told}; there are {', '.join(SCOPES)}, each of which includes those before it")
    return tuple(scope for scope in SCOPES if scope in chosen)
