"""`Standing`: the status of a state and its causes, as data."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

Status: TypeAlias = Literal["fresh", "stale", "failed", "blocked", "waiting", "unrecorded", "orphan"]
STATUSES: tuple[Status, ...] = ("fresh", "stale", "failed", "blocked", "waiting", "unrecorded", "orphan")

CauseCode: TypeAlias = Literal[
    "missing",  # the state does not exist, whatever the manifest says
    "code_changed",
    "config_changed",
    "input_changed",  # the set of inputs, or their content
    "output_changed",  # its content differs from the record
    "invalid",  # it fails validation
    "upstream_stale",  # an input is stale
    "retry_due",  # it failed, and its back-off has ended
    "invalidated",  # somebody asked for it
    "failed",  # it failed and is in back-off, or stays failed until `retry`
    "blocked",  # an input failed
    "input_missing",  # an input that all entities share does not exist
    "still_written",  # an input changed less than `quiet` seconds ago
    "unrecorded",  # no stage produced the file
    "name_clash",  # some file systems cannot distinguish it from another state
    "orphan",  # its source is gone
]


class Cause(NamedTuple):
    """Why a state is stale or waits. `text` is for people, `subject` is the path or function."""

    code: CauseCode
    text: str
    subject: str = ""

    def to_json(self) -> dict[str, str]:
        return {"cause": self.code, "text": self.text, "subject": self.subject}


class Standing(NamedTuple):
    status: Status
    causes: tuple[Cause, ...] = ()
    due_at: float | None = None
    """When it will change by itself, in seconds since 1970."""

    def to_json(self) -> dict[str, Any]:
        return {"status": self.status, "causes": [cause.to_json() for cause in self.causes], "dueAt": self.due_at}


FRESH = Standing("fresh")
