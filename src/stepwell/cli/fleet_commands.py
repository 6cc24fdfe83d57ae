"""The commands for fleets of Celery workers, as `app.py` declares the others."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import AsJson, argument, option

BROKER_HELP = (
    "The broker of Celery, as in redis://localhost:6379/1 or amqp://localhost. Also STEPWELL_BROKER, or `broker`."
)
Broker = Annotated[str | None, option("URL", BROKER_HELP, show_default=False)]
LogLevel = Annotated[str, option("LEVEL", "DEBUG, INFO, WARNING or ERROR.")]
MODULES_HELP = "Modules that hold workflows and jobs; documents need none."
PROCESSES_HELP = "Processes or threads; as many as there are cores."
WHEN_IDLE_HELP = "What to do when no hint comes although there is work: say so, or end with exit code 75."


def add_fleet_commands(app: typer.Typer) -> None:
    @declare(app, "fleet", jobs=True)
    def worker(
        modules: Annotated[list[str] | None, argument("[MODULE...]", MODULES_HELP)] = None,
        queues: Annotated[str, option("A,B", "Take only nodes of these queues.")] = "default",
        concurrency: Annotated[int | None, option("N", PROCESSES_HELP, "--concurrency", "-c", min=1)] = None,
        pool: Annotated[str, option("POOL", "prefork (processes), threads or solo.")] = "prefork",
        broker: Broker = None,
        name: Annotated[str | None, option("NAME", "As in worker1@%h; names must differ.")] = None,
        when_idle: Annotated[str, option("log|exit", WHEN_IDLE_HELP)] = "log",
        idle_seconds: Annotated[float, option("N", "How long no hint comes until then.")] = 30.0,
        log_level: LogLevel = "INFO",
    ) -> None:
        """Run nodes in a Celery worker, until SIGTERM. What runs then may end; what did not begin is given back."""

    @declare(app, "fleet")
    def orchestrator(broker: Broker = None, log_level: LogLevel = "INFO") -> None:
        """Look after a fleet: lost workers, due retries and timers, deadlines, lost hints, work that nobody serves.

        Any number may run, and none leads. It needs no code of yours.
        """

    @declare(app, "fleet")
    def workers(as_json: AsJson = False) -> None:
        """List the workers that are alive: where they are, what they serve and what they hold."""
