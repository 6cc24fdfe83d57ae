"""The statuses of states of pipelines and the causes of these, a table of each."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Status: TypeAlias = Literal["fresh", "stale", "failed", "blocked", "waiting", "unrecorded", "orphan"]


class StatusLook(NamedTuple):
    symbol: str
    style: str


STATUSES: dict[Status, StatusLook] = {
    "fresh": StatusLook("✓", "green"),
    "stale": StatusLook("~", "yellow"),
    "failed": StatusLook("✗", "bold red"),
    "blocked": StatusLook("⊘", "dark_orange"),
    "waiting": StatusLook("…", "cyan"),
    "unrecorded": StatusLook("?", "magenta"),
    "orphan": StatusLook("-", "dim"),
}

CauseCode: TypeAlias = Literal[
    "missing", "input_changed", "code_changed", "config_changed", "output_changed", "invalid", "invalidated",
    "upstream_stale", "retry_due", "failed", "blocked", "input_missing", "name_clash", "still_written", "unrecorded", "orphan",
]  # fmt: skip


class CauseMeaning(NamedTuple):
    status: Status
    """The status that it explains."""
    words: str
    """What it says, for the docs."""


CAUSES: dict[CauseCode, CauseMeaning] = {
    "missing": CauseMeaning("stale", "it is not on disk, whatever the manifest says"),
    "input_changed": CauseMeaning("stale", "the *set* of inputs, or their content; never their time"),
    "code_changed": CauseMeaning(
        "stale", "the function, or anything of the project that it uses; `why` says what changed, and where"
    ),
    "config_changed": CauseMeaning("stale", "its config"),
    "output_changed": CauseMeaning(
        "stale",
        "its content is not what was recorded; it is made again, and the changed file is kept in `.stepwell/aside/`",
    ),
    "invalid": CauseMeaning("stale", "it is now too small, or a changed validation refuses it"),
    "invalidated": CauseMeaning("stale", "somebody asked for it"),
    "upstream_stale": CauseMeaning(
        "stale", "something above it is stale; if that comes out unchanged, nothing runs here"
    ),
    "retry_due": CauseMeaning("stale", "it failed, and its back-off has ended"),
    "failed": CauseMeaning("failed", "it failed: it is in back-off, or stays failed until `retry`"),
    "blocked": CauseMeaning("blocked", "something above it failed, is blocked, or is a file that nobody made"),
    "input_missing": CauseMeaning("blocked", "a gate, or an input that all entities share, is not there"),
    "name_clash": CauseMeaning("blocked", "other systems could not tell its name from another one"),
    "still_written": CauseMeaning("waiting", "an input changed less than `quiet` seconds ago"),
    "unrecorded": CauseMeaning(
        "unrecorded", "a file that nobody made is there: it is never replaced before `accept` or `invalidate`"
    ),
    "orphan": CauseMeaning("orphan", "its source is gone; `clean` removes it"),
}
