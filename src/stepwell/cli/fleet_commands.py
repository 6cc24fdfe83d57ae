"""The commands for fleets of Celery workers, as `app.py` declares the others."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import AsJson, Jobs

BROKER_HELP = (
    "The broker of Celery, as in redis://localhost:6379/1 or amqp://localhost. Also STEPWELL_BROKER, or `broker`."
)
Broker = Annotated[str | None, typer.Option("--broker", metavar="URL", help=BROKER_HELP, show_default=False)]
LogLevel = Annotated[str, typer.Option("--log-level", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR.")]


def add_fleet_commands(app: typer.Typer) -> None:
    @declare(app, "fleet")
    def worker(
        modules: Annotated[
            list[str] | None,
            typer.Argument(metavar="[MODULE...]", help="Modules that hold workflows and jobs; documents need none."),
        ] = None,
        queues: Annotated[
            str, typer.Option("--queues", metavar="A,B", help="Take only nodes of these queues.")
        ] = "default",
        concurrency: Annotated[
            int | None,
            typer.Option(
                "--concurrency", "-c", metavar="N", min=1, help="Processes or threads; as many as there are cores."
            ),
        ] = None,
        pool: Annotated[
            str, typer.Option("--pool", metavar="POOL", help="prefork (processes), threads or solo.")
        ] = "prefork",
        broker: Broker = None,
        name: Annotated[
            str | None, typer.Option("--name", metavar="NAME", help="As in worker1@%h; names must differ.")
        ] = None,
        when_idle: Annotated[
            str,
            typer.Option(
                "--when-idle",
                metavar="log|exit",
                help="What to do when no hint comes although there is work: say so, or end with exit code 75.",
            ),
        ] = "log",
        idle_seconds: Annotated[
            float, typer.Option("--idle-seconds", metavar="N", help="How long no hint comes until then.")
        ] = 30.0,
        log_level: LogLevel = "INFO",
        jobs: Jobs = None,
    ) -> None:
        """Run nodes in a Celery worker, until SIGTERM. What runs then may end; what did not begin is given back."""

    @declare(app, "fleet")
    def orchestrator(broker: Broker = None, log_level: LogLevel = "INFO") -> None:
        """Look after a fleet: lost workers, due retries and timers, deadlines, lost hints, work that nobody serves.

        Any number may run, and none leads. It needs no code of yours.
        """

    @declare(app, "workers")
    def workers(as_json: AsJson = False) -> None:
        """List the workers that are alive: where they are, what they serve and what they hold."""
