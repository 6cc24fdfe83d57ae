"""What a build did, and its progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ...answers.pipelines import BuildRecord, ScanProgress
    from ...answers.staleness import Status


class BuildReport(NamedTuple):
    """What a build did."""

    pipeline: str
    produced: tuple[str, ...]
    """Units, such as `summary 2026-01-15`, whose states were written."""
    unchanged: tuple[str, ...]
    """Those of them whose content is the same as before: nothing below ran because of them."""
    failed: Mapping[str, str]
    """Units that failed in this build, and triggers (`trigger announce`) that could not be fired, and why."""
    left: Mapping[str, Status | Literal["paused"]]
    """Units that are still not fresh, and their status, or that their run is paused."""
    runs: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        return not self.failed

    def to_dict(self) -> BuildRecord:
        return {
            "pipeline": self.pipeline,
            "produced": list(self.produced),
            "unchanged": list(self.unchanged),
            "failed": dict(self.failed),
            "left": dict(self.left),
            "runs": list(self.runs),
            "seconds": self.seconds,
        }


class BuildTally(NamedTuple):
    done: int
    failed: int
    running: int
    ready: int

    def to_dict(self) -> ScanProgress:
        return {"done": self.done, "failed": self.failed, "running": self.running, "ready": self.ready}


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
