"""The routes, a module for each part of the API."""

from __future__ import annotations

from ..routes import Routes


def parts() -> list[tuple[str, Routes]]:
    """Every part with the path it is below. What is not in this list is not served."""
    from . import events, health, nodes, pipelines, reading, runs, sessions, steering, triggers, workers, workflows

    v1 = "/api/v1"
    return [
        ("", health.routes),
        (v1, workflows.routes),
        (v1, runs.routes),
        (v1, nodes.routes),
        (v1, steering.routes),
        (v1, events.routes),
        (v1, workers.routes),
        (v1, pipelines.routes),
        (v1, triggers.routes),
        ("", triggers.hooks),
        (v1, sessions.routes),
        (v1, reading.routes),
    ]
