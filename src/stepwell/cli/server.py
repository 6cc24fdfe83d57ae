"""The commands of the server: serve, and its tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare, make_group
from .options import AsJson, Modules, argument, flag, option

tokens = make_group("Make, list and revoke the tokens that the server asks for.")

HOST_HELP = "Where to listen. Anything but loopback needs a token first."
Port = Annotated[int, option("N", "0 chooses a free one.", min=0, max=65_535)]
ALLOW_HOST_HELP = "A name the server is called by; may be repeated."
PIPELINE_HELP = "module:name, or a file; also `pipelines`."
WATCHED_HELP = "Modules with workflows; documents, which are saved."
SCOPE_HELP = "read, run, author or admin; each includes those before it."


def add_server_commands(app: typer.Typer) -> None:
    app.add_typer(tokens, name="token")

    @declare(app, "serve", jobs=True)
    def serve(
        modules: Modules = None,
        host: Annotated[str, option("ADDRESS", HOST_HELP)] = "127.0.0.1",
        port: Port = 8765,
        no_runner: Annotated[bool, flag("--no-runner", "Run no bodies in this process: workers elsewhere do.")] = False,
        allow_host: Annotated[list[str] | None, option("NAME", ALLOW_HOST_HELP)] = None,
        pipeline: Annotated[list[str] | None, option("PIPELINE", PIPELINE_HELP, "--pipeline", "-p")] = None,
    ) -> None:
        """Serve the HTTP API, and work on runs in the same process."""

    @declare(app, "dev", jobs=True)
    def dev(
        what: Annotated[list[str] | None, argument("[MODULE|FILE...]", WATCHED_HELP)] = None,
        port: Port = 8765,
    ) -> None:
        """Serve the API and work on runs while you write: when your code changes, the worker is started anew and runs heal."""


@declare(tokens, "tokens")
def create(
    scope: Annotated[list[str] | None, option("SCOPE", SCOPE_HELP)] = None,
    name: Annotated[str, option("TEXT", "Whom or what it is for.")] = "",
    days: Annotated[float, option("N", "How long it is valid.")] = 90.0,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once: only a hash of it is stored."""


@declare(tokens, "tokens")
def ls(as_json: AsJson = False) -> None:
    """List the tokens that were made, valid or not."""


@declare(tokens, "tokens")
def revoke(token: Annotated[str, argument("ID", "As `token ls` shows it.")]) -> None:
    """Revoke a token: it, and the sessions that were opened with it, are refused within a second."""
