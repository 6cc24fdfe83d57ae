"""The commands of the server: serve, and its tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import AsJson, Jobs

tokens = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make, list and revoke the tokens that the server asks for.",
    context_settings={"help_option_names": ["--help", "-h"]},
)

Host = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Where to listen. Anything but loopback needs a token first.")
]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="0 chooses a free one.")]


def add_server_commands(app: typer.Typer) -> None:
    app.add_typer(tokens, name="token")

    @declare(app, "serve")
    def serve(
        modules: Annotated[
            list[str] | None, typer.Argument(metavar="[MODULE...]", help="Modules that hold workflows and jobs.")
        ] = None,
        host: Host = "127.0.0.1",
        port: Port = 8765,
        no_runner: Annotated[
            bool, typer.Option("--no-runner", help="Run no bodies in this process: workers elsewhere do.")
        ] = False,
        allow_host: Annotated[
            list[str] | None,
            typer.Option("--allow-host", metavar="NAME", help="A name the server is called by; may be repeated."),
        ] = None,
        pipeline: Annotated[
            list[str] | None,
            typer.Option("--pipeline", "-p", metavar="PIPELINE", help="module:name, or a file; also `pipelines`."),
        ] = None,
        jobs: Jobs = None,
    ) -> None:
        """Serve the HTTP API, and work on runs in the same process."""

    @declare(app, "dev")
    def dev(
        what: Annotated[
            list[str] | None,
            typer.Argument(metavar="[MODULE|FILE...]", help="Modules with workflows; documents, which are saved."),
        ] = None,
        port: Port = 8765,
        jobs: Jobs = None,
    ) -> None:
        """Serve the API and work on runs while you write: when your code changes, the worker is started anew and runs heal."""


@declare(tokens, "tokens")
def create(
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="SCOPE", help="read, run, author or admin; each includes those before it."),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="Whom or what it is for.")] = "",
    days: Annotated[float, typer.Option("--days", metavar="N", help="How long it is valid.")] = 90.0,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once: only a hash of it is stored."""


@declare(tokens, "tokens")
def ls(as_json: AsJson = False) -> None:
    """List the tokens that were made, valid or not."""


@declare(tokens, "tokens")
def revoke(token: Annotated[str, typer.Argument(metavar="ID", help="As `token ls` shows it.")]) -> None:
    """Revoke a token: it, and the sessions that were opened with it, are refused within a second."""
