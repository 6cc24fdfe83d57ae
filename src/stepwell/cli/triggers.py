"""`stepwell trigger ...`: the commands and their options. What they do is imported when they do it."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import AsJson, Inputs, Jobs

triggers = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What starts runs by itself: schedules, webhooks, the end of other runs.",
    context_settings={"help_option_names": ["--help", "-h"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A trigger.")]
Time = "2026-03-01, or 2026-03-01T06:00:00+01:00; without an offset it is UTC"


@declare(triggers, "triggers")
def ls(as_json: AsJson = False) -> None:
    """List the triggers, when they fire next, and what went wrong."""


@declare(triggers, "triggers")
def show(
    name: Name,
    count: Annotated[int, typer.Option("--next", metavar="N", min=1, max=100, help="So many next times.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a trigger: its definition, its next times, its latest runs."""


@declare(triggers, "triggers")
def add(
    what: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A name, or a JSON or YAML file that describes triggers.")
    ],
    workflow: Annotated[
        str | None,
        typer.Argument(metavar="[WORKFLOW]", help="A stored document (report, report@3), or package.module:Class."),
    ] = None,
    cron: Annotated[
        str | None, typer.Option("--cron", metavar="TEXT", help='Minute, hour, day, month, weekday: "30 2 * * 1-5".')
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="Of --cron: Europe/Berlin. By default UTC.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", metavar="DURATION", help="Every so long: 90s, 15m, 1h30m, 7d.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="From when --every counts; by default from now.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="WORKFLOW", help="When a run of this workflow has ended.")
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATUS", help="Of --after: ended so; by default COMPLETED. May be repeated."),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="SCHEME", help="hmac, bearer, github, gitlab, stripe, slack or standard."),
    ] = None,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="secret:NAME", help="Of --webhook: where its secret is.")
    ] = None,
    catch_up: Annotated[
        str | None, typer.Option("--catch-up", metavar="skip|last|all", help="What to do about missed times.")
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option("--overlap", metavar="allow|skip|queue", help="What to do while the run before is active."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="One input, a template if you like; may be repeated."),
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Do not fire before it is resumed.")] = False,
) -> None:
    """Store a trigger, or a new version of one."""


@declare(triggers, "triggers")
def pause(name: Name) -> None:
    """Fire no more until it is resumed."""


@declare(triggers, "triggers")
def resume(name: Name) -> None:
    """Go on from now."""


@declare(triggers, "triggers")
def fire(
    name: Name,
    inputs: Inputs = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="The same key is the same run.")] = None,
    jobs: Jobs = None,
) -> None:
    """Start a run now, and print its id. Whoever serves its workflow works on it."""


@declare(triggers, "triggers")
def backfill(
    name: Name,
    start: Annotated[str, typer.Argument(metavar="FROM", help=Time)],
    end: Annotated[str, typer.Argument(metavar="TO", help="Not included; the same form.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the times.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start the runs of past times that have none. They are started by whoever serves."""


@declare(triggers, "triggers")
def rm(name: Name) -> None:
    """Remove a trigger. Its runs stay."""
