"""What is noted beside states: what failed, what triggers were fired for, what stages were made of, which states there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .port import Notes
from .records import StageFailure, failure_from


def read_failures(notes: Notes, pipeline: str) -> dict[str, StageFailure]:
    """What failed of one pipeline, by stage and entity."""
    own = f"{pipeline}#"
    return {
        key[len(own) :]: failure
        for key, written in notes.read("failures").items()
        if key.startswith(own) and (failure := failure_from(written)) is not None
    }


def change_failures(notes: Notes, pipeline: str, changes: Mapping[str, StageFailure | None]) -> None:
    written = {unit: None if failure is None else failure.to_json() for unit, failure in changes.items()}
    notes.change("failures", {f"{pipeline}#{unit}": failure for unit, failure in written.items()})


def known_code(notes: Notes, code_hash: str) -> Mapping[str, Any] | None:
    """What a stage of this hash was made of."""
    note = notes.read("code").get(code_hash)
    return note if isinstance(note, dict) else None


def keep_code(notes: Notes, code_hash: str, parts: Mapping[str, str]) -> None:
    """Remember what a stage was made of, so that `why` can name what changed."""
    if known_code(notes, code_hash) is None:
        notes.change("code", {code_hash: dict(parts)})


def note_types(notes: Notes, pipeline: str, types: Mapping[str, str]) -> None:
    """Note which states a pipeline makes, so that others of the root find them by their type."""
    if notes.read("types").get(pipeline) != types:
        notes.change("types", {pipeline: dict(types)})


def noted_types(notes: Notes) -> dict[str, Mapping[str, str]]:
    """The patterns of the states that each pipeline of the root makes, by their type."""
    return {pipeline: types for pipeline, types in notes.read("types").items() if isinstance(types, dict)}
