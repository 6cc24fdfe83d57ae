"""What tokens allow."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Scope: TypeAlias = Literal["read", "run", "author", "admin"]
"""Each includes those before it."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
MEANINGS: dict[Scope, str] = {
    "read": "look at workflows, runs, logs, outputs and pipelines",
    "run": "start runs of what is stored, and steer them",
    "author": "store documents and triggers, edit graphs: decides what runs",
    "admin": "delete runs, look at tokens and the audit log",
}
