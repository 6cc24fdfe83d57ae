"""What the processes of a Celery worker are to serve, and how."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ...define import Workflow
from ...handlers import Handlers

SLICE_SECONDS = 5.0
"""How long one hint is worked off before the process looks what else its application has for it."""
IDLE_SECONDS = 30.0
"""A process that hears of nothing for so long while work it could do is READY says so."""


def with_pipelines(jobs: tuple[str, ...]) -> tuple[str, ...]:
    """The modules whose jobs are allowed, and ours if pipelines are written in one of them.

    Pipelines stand above the runner: who has not loaded them has none.
    """
    if "stepwell.pipeline.registry" not in sys.modules:
        return jobs
    return (*jobs, *import_module("stepwell.pipeline.building.found").jobs_of(jobs))


@dataclass(frozen=True)
class Plan:
    app: Any
    """The Celery application."""
    url: str
    workflows: tuple[type[Workflow], ...] = ()
    jobs: tuple[str, ...] = ()
    handlers: Callable[[], Handlers | Iterable[Any]] = tuple
    queues: tuple[str, ...] = ("default",)
    max_concurrent_nodes: int | None = None
    """None: one in a process of its own, as many as there are threads in a pool of threads."""
    lease_seconds: float = 30.0
    close_seconds: float = 10.0
    slice_seconds: float = SLICE_SECONDS
    idle_seconds: float = IDLE_SECONDS
    when_idle: str = "log"
    """`log`, or `exit`: a worker that hears of nothing while there is work ends with exit code 75."""
    options: dict[str, Any] = field(default_factory=dict)
    """What else the engine takes."""
