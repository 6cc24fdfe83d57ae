"""Commands to suggest after an outcome or a refusal."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec

import typer

from ...core.kernel.healing import POSSIBLE_RENAME, UNFIT
from ...core.store import reader
from ...engine.show.next_steps import next_steps
from ...errors import RunConflict
from ..connect import Connection
from ..exits import report

__all__ = ["advise", "advised", "next_steps"]

Arguments = ParamSpec("Arguments")


def advise(connection: Connection, advice: Mapping[str, str]) -> None:
    """Print commands that may be useful next, each with its purpose."""
    commands = {connection.command(words): purpose for words, purpose in advice.items()}
    width = max(map(len, commands), default=0)
    for command, purpose in commands.items():
        typer.echo(f"  {command:<{width}}  {typer.style(purpose, dim=True)}", err=True)


def advised(
    command: Callable[Concatenate[Connection, Arguments], None],
) -> Callable[Concatenate[Connection, Arguments], None]:
    """Makes a command suggest what to do when it is refused."""

    @functools.wraps(command)
    def advising(connection: Connection, /, *args: Arguments.args, **options: Arguments.kwargs) -> None:
        try:
            command(connection, *args, **options)
        except RunConflict as conflict:
            code = report(conflict)
            with connection.store() as store:
                row = reader.get_run(store, conflict.run_id)
            if row is not None:
                if UNFIT in str(conflict):  # noticed just now: the run may be paused for another reason
                    row = row._replace(reason=UNFIT)
                advise(connection, next_steps(row, possible_rename=POSSIBLE_RENAME in str(conflict)))
            raise typer.Exit(code) from None

    return advising
