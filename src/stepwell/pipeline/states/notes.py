"""What is noted beside states: what failed, what triggers were fired for, and what stages were made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .port import Notes
from .records import Failure, failure_from


def read_failures(notes: Notes) -> dict[str, Failure]:
    """What failed, by stage and entity."""
    return {unit: failure_from(written) for unit, written in notes.read("failures").items()}


def change_failures(notes: Notes, changes: Mapping[str, Failure | None]) -> None:
    notes.change(
        "failures", {unit: None if failure is None else failure.to_json() for unit, failure in changes.items()}
    )


def known_code(notes: Notes, code_hash: str) -> Mapping[str, Any] | None:
    """What a stage of this hash was made of."""
    found = notes.read("code").get(code_hash)
    return found if isinstance(found, dict) else None


def keep_code(notes: Notes, code_hash: str, parts: Mapping[str, str]) -> None:
    """Remember what a stage was made of, so that `why` can name what changed."""
    if known_code(notes, code_hash) is None:
        notes.change("code", {code_hash: dict(parts)})
