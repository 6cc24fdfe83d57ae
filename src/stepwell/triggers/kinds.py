"""What a trigger fires on, what may be chosen, and what can be wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..base.forms.problems import Problem
from ..base.secrets import SecretRef
from ..errors import DefinitionError
from .schedule import Cron

Path = tuple[str | int, ...]
CatchUp = Literal["skip", "last", "all"]
Overlap = Literal["allow", "skip", "queue"]
Kind = Literal["cron", "every", "webhook", "run_finished", "state"]
GRACE_SECONDS = 60


class TriggerError(DefinitionError):
    """A trigger is written wrongly. `problems` lists everything that is wrong with it."""

    def __init__(self, name: object, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"trigger {name!r} has {count}:\n{lines}")


@dataclass(frozen=True)
class Interval:
    """Every `every` microseconds, counted from `start`, or from when the trigger was added."""

    every: int
    start: int | None = None


@dataclass(frozen=True)
class Webhook:
    """A request to `/hooks/NAME`, proved by a secret."""

    secret: SecretRef
    scheme: str = "hmac"
    header: str | None = None
    window_seconds: float = 300.0
    delivery: str | None = None
    """A template of what tells one delivery from another."""
    rate_per_minute: int = 60


@dataclass(frozen=True)
class RunFinished:
    """The end of a run of another workflow."""

    workflow: str
    statuses: tuple[str, ...] = ("COMPLETED",)


@dataclass(frozen=True)
class StateWritten:
    """A new state of a pipeline, or one with new content. A scan of the pipeline fires it."""

    pipeline: str
    state: str
    """The stage that makes it, the type of a state in the same root, or a pattern of paths."""
    filter: str | None = None
    """An expression over the names of `filters.NAMES`."""


When: TypeAlias = Cron | Interval | Webhook | RunFinished | StateWritten
KINDS: dict[type, Kind] = {
    Cron: "cron",
    Interval: "every",
    Webhook: "webhook",
    RunFinished: "run_finished",
    StateWritten: "state",
}
"""What each is called in a definition."""
