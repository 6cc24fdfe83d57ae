"""`stepwell trigger ...`: the commands and their options. What they do is imported when they do it."""

from __future__ import annotations

from typing import Annotated

from .command import declare, make_group
from .options import AsJson, Inputs, argument, flag, option

triggers = make_group("What starts runs by itself: schedules, webhooks, the end of other runs.")

Name = Annotated[str, argument("NAME", "A trigger.")]
TIME_HELP = "2026-03-01, or 2026-03-01T06:00:00+01:00; without an offset it is UTC"
WORKFLOW_HELP = "A stored document (report, report@3), or package.module:Class."
STATUS_HELP = "Of --after: ended so; by default COMPLETED. May be repeated."
SCHEME_HELP = "hmac, bearer, github, gitlab, stripe, slack or standard."
INPUT_HELP = "One input, a template if you like; may be repeated."


@declare(triggers, "triggers")
def ls(as_json: AsJson = False) -> None:
    """List the triggers, when they fire next, and what went wrong."""


@declare(triggers, "triggers")
def show(
    name: Name,
    count: Annotated[int, option("N", "So many next times.", "--next", min=1, max=100)] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a trigger: its definition, its next times, its latest runs."""


@declare(triggers, "triggers", changes=True)
def add(
    what: Annotated[str, argument("NAME|FILE", "A name, or a JSON or YAML file that describes triggers.")],
    workflow: Annotated[str | None, argument("[WORKFLOW]", WORKFLOW_HELP)] = None,
    cron: Annotated[str | None, option("TEXT", 'Minute, hour, day, month, weekday: "30 2 * * 1-5".')] = None,
    timezone: Annotated[str | None, option("ZONE", "Of --cron: Europe/Berlin. By default UTC.")] = None,
    every: Annotated[str | None, option("DURATION", "Every so long: 90s, 15m, 1h30m, 7d.")] = None,
    start: Annotated[str | None, option("TIME", "From when --every counts; by default from now.")] = None,
    after: Annotated[str | None, option("WORKFLOW", "When a run of this workflow has ended.")] = None,
    status: Annotated[list[str] | None, option("STATUS", STATUS_HELP)] = None,
    webhook: Annotated[str | None, option("SCHEME", SCHEME_HELP)] = None,
    secret: Annotated[str | None, option("secret:NAME", "Of --webhook: where its secret is.")] = None,
    catch_up: Annotated[str | None, option("skip|last|all", "What to do about missed times.")] = None,
    overlap: Annotated[str | None, option("allow|skip|queue", "What to do while the run before is active.")] = None,
    inputs: Annotated[list[str] | None, option("NAME=VALUE", INPUT_HELP, "--input", "-i")] = None,
    paused: Annotated[bool, flag("--paused", "Do not fire before it is resumed.")] = False,
) -> None:
    """Store a trigger, or a new version of one."""


@declare(triggers, "triggers", changes=True)
def pause(name: Name) -> None:
    """Fire no more until it is resumed."""


@declare(triggers, "triggers", changes=True)
def resume(name: Name) -> None:
    """Go on from now."""


@declare(triggers, "triggers", jobs=True, changes=True)
def fire(
    name: Name,
    inputs: Inputs = None,
    key: Annotated[str | None, option("KEY", "The same key is the same run.")] = None,
) -> None:
    """Start a run now, and print its id. Whoever serves its workflow works on it."""


@declare(triggers, "triggers", changes=True)
def backfill(
    name: Name,
    start: Annotated[str, argument("FROM", TIME_HELP)],
    end: Annotated[str, argument("TO", "Not included; the same form.")],
    dry_run: Annotated[bool, flag("--dry-run", "Only list the times.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start the runs of past times that have none. They are started by whoever serves."""


@declare(triggers, "triggers", changes=True)
def rm(name: Name) -> None:
    """Remove a trigger. Its runs stay."""
