"""Who did it, as JSON."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

Via: TypeAlias = Literal["cli", "http", "ui", "python", "trigger"]
TargetKind: TypeAlias = Literal["run", "workflow", "pipeline", "trigger", "token", "store"]


class AuditEntryRecord(TypedDict):
    """A change that somebody asked for."""

    id: str
    """Its id."""
    at: str
    """When it was made, by the clock of the store."""
    who: str
    """The name of the token or of the trigger, or the user and the machine."""
    token: str | None
    """The id of the token."""
    via: Via
    """What it was asked with: the command line, the web UI, Python, or other requests over HTTP; or that a trigger did it."""
    action: str
    """What was asked for: cancel, start, save and the like."""
    kind: TargetKind
    """What was changed."""
    target: str
    """Its id, or its name."""
    options: dict[str, Any]
    """How it was asked for. Of inputs only the names."""
    reason: str | None
    """Why, if that was given."""
