"""The commands of the server and its tokens, and those of fleets of Celery workers, as `app.py` declares the others."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare, make_group
from .completion import runs
from .options import RUN_HELP, AsJson, Modules, argument, flag, option

tokens = make_group("Make, list and revoke the tokens that the server asks for.")

HOST_HELP = "Where to listen. Anything but loopback needs a token first."
Port = Annotated[int, option("N", "0 chooses a free one.", min=0, max=65_535)]
ALLOW_HOST_HELP = "A name the server is called by; may be repeated."
ROOT_PATH_HELP = "The path that a proxy serves it below, as in /stepwell."
DEMO_PORT_HELP = "Where to serve; 0 chooses a free one."
NoBrowser = Annotated[bool, flag("--no-browser", "Only print the address.")]
PIPELINE_HELP = "module:name, or a file; also `pipelines`."
WATCHED_HELP = "Modules with workflows; documents, which are saved."
SCOPE_HELP = "read, run, author or admin; each includes those before it."


def add_server_commands(app: typer.Typer) -> None:
    app.add_typer(tokens, name="token")

    @declare(app, "serve", jobs=True, place="store")
    def serve(
        modules: Modules = None,
        host: Annotated[str, option("ADDRESS", HOST_HELP)] = "127.0.0.1",
        port: Port = 8765,
        no_runner: Annotated[bool, flag("--no-runner", "Run no bodies in this process: workers elsewhere do.")] = False,
        allow_host: Annotated[list[str] | None, option("NAME", ALLOW_HOST_HELP)] = None,
        root_path: Annotated[str, option("PATH", ROOT_PATH_HELP)] = "",
        pipeline: Annotated[list[str] | None, option("PIPELINE", PIPELINE_HELP, "--pipeline", "-p")] = None,
    ) -> None:
        """Serve the web UI and the HTTP API, and work on runs in the same process."""

    @declare(app, "dev", jobs=True, place="store")
    def dev(
        what: Annotated[list[str] | None, argument("[MODULE|FILE...]", WATCHED_HELP)] = None,
        port: Port = 8765,
    ) -> None:
        """Serve the web UI and the API while you write: when your code changes, the worker is started anew and runs heal."""

    @declare(app, "ui")
    def ui(
        run: Annotated[str | None, argument("[RUN]", RUN_HELP, autocompletion=runs)] = None,
        no_browser: NoBrowser = False,
    ) -> None:
        """Open the web UI, or the page of a run, in the browser: that of a server, or of one that is started over the store."""

    @declare(app, "demo", place="none")
    def demo(
        port: Annotated[int, option("N", DEMO_PORT_HELP, min=0, max=65_535)] = 0, no_browser: NoBrowser = False
    ) -> None:
        """Run a sample in a temporary folder and open the web UI: a fan, a retry, a failure to mend, a slow run, a schedule."""


@declare(tokens, "tokens", place="store", changes=True)
def create(
    scope: Annotated[list[str] | None, option("SCOPE", SCOPE_HELP)] = None,
    name: Annotated[str, option("TEXT", "Whom or what it is for.")] = "",
    days: Annotated[float, option("N", "How long it is valid.")] = 90.0,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once: only a hash of it is stored."""


@declare(tokens, "tokens", place="store")
def ls(as_json: AsJson = False) -> None:
    """List the tokens that were made, valid or not."""


@declare(tokens, "tokens", place="store", changes=True)
def revoke(token: Annotated[str, argument("ID", "As `token ls` shows it.")]) -> None:
    """Revoke a token: it, and the sessions that were opened with it, are refused within a second."""


BROKER_HELP = (
    "The broker of Celery, as in redis://localhost:6379/1 or amqp://localhost. Also STEPWELL_BROKER, or `broker`."
)
Broker = Annotated[str | None, option("URL", BROKER_HELP, show_default=False)]
LogLevel = Annotated[str, option("LEVEL", "DEBUG, INFO, WARNING or ERROR.")]
MODULES_HELP = "Modules that hold workflows and jobs; documents need none."
PROCESSES_HELP = "Processes or threads; as many as there are cores."
WHEN_IDLE_HELP = "What to do when no hint comes although there is work: say so, or end with exit code 75."


def add_fleet_commands(app: typer.Typer) -> None:
    @declare(app, "fleet", jobs=True, place="store")
    def worker(
        modules: Annotated[list[str] | None, argument("[MODULE...]", MODULES_HELP)] = None,
        queues: Annotated[str, option("A,B", "Take only nodes of these queues.")] = "default",
        concurrency: Annotated[int | None, option("N", PROCESSES_HELP, "--concurrency", "-c", min=1)] = None,
        pool: Annotated[str, option("POOL", "prefork (processes), threads or solo.")] = "prefork",
        broker: Broker = None,
        name: Annotated[
            str | None, option("NAME", "As in worker1@%h; names must differ. By default stepwell-PID@%h.")
        ] = None,
        when_idle: Annotated[str, option("log|exit", WHEN_IDLE_HELP)] = "log",
        idle_seconds: Annotated[float, option("N", "How long no hint comes until then.")] = 30.0,
        log_level: LogLevel = "INFO",
    ) -> None:
        """Run nodes in a Celery worker, until SIGTERM. What runs then may end; what did not begin is given back."""

    @declare(app, "fleet", place="store")
    def orchestrator(broker: Broker = None, log_level: LogLevel = "INFO") -> None:
        """Look after a fleet: lost workers, due retries and timers, deadlines, lost hints, work that nobody serves.

        Any number may run, and none leads. It needs no code of yours.
        """

    @declare(app, "fleet")
    def workers(as_json: AsJson = False) -> None:
        """List the workers that are alive: where they are, what they serve and what they hold."""
