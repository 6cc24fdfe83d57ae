"""The routes, a module for each part of the API."""

from __future__ import annotations

from ..routes import Routes


def parts() -> list[Routes]:
    """Every part of the API. What is not in this list is not served."""
    from . import (
        about,
        audit_log,
        events,
        health,
        nodes,
        pipelines,
        reading,
        replaying,
        runs,
        sessions,
        steering,
        triggers,
        workers,
        workflows,
    )

    first = (health, workflows, runs, nodes, steering, replaying, events, workers, pipelines, triggers, audit_log)
    return [*(each.routes for each in first), about.routes, triggers.hooks, sessions.routes, reading.routes]
