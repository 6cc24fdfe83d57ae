"""How a command is declared: its arguments, options and help, apart from what it does, so that `--help` answers at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, NamedTuple

import typer
from typer.models import ArgumentInfo

from ..errors import InputError
from .options import DryRun, Jobs, Reason, Server, Store

Place = Literal["either", "store", "none"]
"""Where a command works: on a store or a server, on the store itself, or on neither."""
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
Declared = Callable[..., None]


class Where(NamedTuple):
    """The store or server that was named on the command line."""

    store: str | None = None
    server: str | None = None


def make_group(help: str) -> typer.Typer:
    """Commands that share a first word, as in `stepwell token ls`."""
    return typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help=help, context_settings={"help_option_names": ["--help", "-h"]}
    )


def declare(
    app: typer.Typer,
    home: str,
    name: str | None = None,
    *,
    jobs: bool = False,
    place: Place = "either",
    changes: bool = False,
) -> Callable[[Declared], None]:
    """Declares a command. The function of the same name in `commands.<home>` does it: it gets a Connection, the arguments in
    order and the options by name.

    A command has `--store` and `--server`; one that needs the store itself only the first, one that needs none neither.
    With `jobs` it also has `--jobs`, and with `changes` a `--reason`, for the audit log. One with a `DryRun` option can also
    list what it would change.
    """

    def register(declared: Declared) -> None:
        options = inspect.signature(declared, eval_str=True).parameters
        kinds = {name: type(each.annotation.__metadata__[0]) for name, each in options.items()}
        arguments = [name for name, kind in kinds.items() if kind is ArgumentInfo]
        previews = any(each.annotation is DryRun for each in options.values())

        def perform(context: typer.Context, store: str | None = None, server: str | None = None, **given: Any) -> None:
            if previews and given["as_json"] and not given["dry_run"]:
                raise typer.BadParameter("--json goes with --dry-run: it lists the nodes that would change")
            where = Where(store, server) if store or server else context.obj or Where()
            _check_place(place, where, context.command_path.partition(" ")[2])
            connection = _connection(where, given.pop("jobs", None))
            if place == "store":
                connection.need_store(context.command_path.partition(" ")[2])
            typed = [given.pop(argument) for argument in arguments]
            does, verb = home, declared.__name__
            if previews and given["dry_run"]:
                does, verb, typed = "steer", "dry_run", [verb, *typed]
            elif previews:
                del given["dry_run"], given["as_json"]
            from ..history.audit_log import acting_as, local_actor

            reason = given.pop("reason", None)
            with acting_as(local_actor("cli"), reason):
                getattr(import_module(f".commands.{does}", __package__), verb)(connection, *typed, **given)

        parameters = [
            inspect.Parameter("context", _KEYWORD, annotation=typer.Context),
            *(each.replace(kind=_KEYWORD) for each in options.values()),
            *([inspect.Parameter("reason", _KEYWORD, annotation=Reason, default=None)] if changes else []),
            *([inspect.Parameter("jobs", _KEYWORD, annotation=Jobs, default=None)] if jobs else []),
            *([] if place == "none" else [inspect.Parameter("store", _KEYWORD, annotation=Store, default=None)]),
            *([inspect.Parameter("server", _KEYWORD, annotation=Server, default=None)] if place == "either" else []),
        ]
        perform.__doc__ = declared.__doc__
        perform.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        perform.__annotations__ = {each.name: each.annotation for each in parameters}
        app.command(name or declared.__name__)(perform)

    return register


def _check_place(place: Place, where: Where, command: str) -> None:
    """Refuse a store or server that was named before the command and that it would not use."""
    if place == "none" and (where.store or where.server):
        option = "--store" if where.store else "--server"
        raise InputError(f"{command} needs no store and no server: leave out {option}")


def _connection(where: Where, jobs: list[str] | None) -> Any:
    from .connect import Connection
    from .streams import reserve_stdout

    reserve_stdout()
    return Connection(where.store, jobs or (), where.server)
