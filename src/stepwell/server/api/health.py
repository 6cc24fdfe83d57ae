"""Whether the server is there and can work, and what it counts. Health checks need no token and tell nothing else."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from ...answers.fleet import HealthRecord
from ..metrics import MEDIA_TYPE, metrics_text
from ..problems import HttpProblem
from ..routes import Routes
from ..service import Given

routes = Routes("health", prefix="")


@routes.open("GET", "/healthz")
async def healthz() -> HealthRecord:
    """The process answers."""
    return {"status": "ok"}


@routes.open("GET", "/readyz")
async def readyz(service: Given) -> HealthRecord:
    """The store takes what is committed: requests can be served."""
    if not await service.threads.run("caller", service.readiness.check):
        raise HttpProblem(503, "the store takes no commits", headers={"Retry-After": "2"})
    return {"status": "ready"}


@routes.get(
    "/metrics",
    "read",
    threads="view",
    response_class=Response,
    responses={200: {"description": "Metrics for Prometheus.", "content": {"text/plain": {}}}},
)
def metrics(service: Given) -> Any:
    """Runs by status, workers, streams, requests, and what the runner in this process does."""
    return Response(metrics_text(service), media_type=MEDIA_TYPE)
