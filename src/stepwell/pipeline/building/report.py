"""What a build did, and its progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class BuildReport(NamedTuple):
    """What a build did."""

    pipeline: str
    produced: tuple[str, ...]
    """Units, such as `summary 2026-01-15`, whose states were written."""
    unchanged: tuple[str, ...]
    """Those of them whose content is the same as before: nothing below ran because of them."""
    failed: Mapping[str, str]
    """Units that failed in this build, and triggers (`trigger announce`) that could not be fired, and why."""
    left: Mapping[str, str]
    """Units that are still not fresh, and their status."""
    runs: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        return not self.failed

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self._asdict().items()}


class BuildTally(NamedTuple):
    done: int
    failed: int
    running: int
    ready: int


class StateEvent(NamedTuple):
    """A state was written."""

    pipeline: str
    stage: str
    entity: str
    address: str
    code_hash: str
    content_hash: str


class Outcome:
    """What a build has done so far."""

    def __init__(self) -> None:
        self.produced: list[str] = []
        self.unchanged: list[str] = []
        self.failed: dict[str, str] = {}
        self.events: list[StateEvent] = []
