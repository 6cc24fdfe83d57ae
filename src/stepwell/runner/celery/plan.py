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
"""How long one hint is worked off before the process takes another task of its application."""
IDLE_SECONDS = 30.0
"""How long a process waits for hints, while work it could do is READY, before it reports that."""


def with_pipelines(jobs: tuple[str, ...]) -> tuple[str, ...]:
    """The modules whose jobs are allowed, and ours if one of them defines pipelines.

    Pipelines are above the runner, so they are looked for only if they are loaded.
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
    """None: one with prefork, as many as there are threads in a pool of threads."""
    lease_seconds: float = 30.0
    close_seconds: float = 10.0
    slice_seconds: float = SLICE_SECONDS
    idle_seconds: float = IDLE_SECONDS
    when_idle: str = "log"
    """`log`, or `exit`: a worker that gets no hints while there is work ends with exit code 75."""
    options: dict[str, Any] = field(default_factory=dict)
    """Other options of the engine."""
