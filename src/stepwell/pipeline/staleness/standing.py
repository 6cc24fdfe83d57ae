"""What can be said of a state, an entity or a pipeline: a status, and its causes, as data."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

Status: TypeAlias = Literal["fresh", "stale", "failed", "blocked", "waiting", "unrecorded", "orphan"]
STATUSES: tuple[Status, ...] = ("fresh", "stale", "failed", "blocked", "waiting", "unrecorded", "orphan")

CauseCode: TypeAlias = Literal[
    "missing",  # it is not there, whatever the manifest says
    "code_changed",
    "config_changed",
    "input_changed",  # the set of inputs, or what is in them
    "output_changed",  # its bytes differ from the record
    "invalid",  # it fails validation
    "upstream_stale",  # something it is made of is stale
    "retry_due",  # it failed, and its back-off has ended
    "invalidated",  # somebody asked for it
    "failed",  # it failed and is in back-off, or stays failed until asked
    "blocked",  # it stands behind something that failed
    "input_missing",  # an input that all entities share is not there
    "still_written",  # an input changed less than `quiet` seconds ago
    "unrecorded",  # a file nobody produced
    "name_clash",  # another system could not tell it from another state
    "orphan",  # its source is gone
]
CERTAIN = frozenset(
    {
        "missing",
        "code_changed",
        "config_changed",
        "input_changed",
        "output_changed",
        "invalid",
        "retry_due",
        "invalidated",
    }
)
"""Causes for which a stage runs. What is only `upstream_stale` runs if what is above it comes out different."""


class Cause(NamedTuple):
    """Why something is stale, or waits. `text` is for people, `subject` the path or function it is about."""

    code: CauseCode
    text: str
    subject: str = ""

    def to_json(self) -> dict[str, str]:
        return {"cause": self.code, "text": self.text, "subject": self.subject}


class Standing(NamedTuple):
    status: Status
    causes: tuple[Cause, ...] = ()
    due_at: float | None = None
    """When time alone will change it, in seconds since 1970."""

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "causes": [cause.to_json() for cause in self.causes], "dueAt": self.due_at}


FRESH = Standing("fresh")
