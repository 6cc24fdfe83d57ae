"""The commands that change what becomes of runs, as `app.py` declares the others."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import declare
from .options import (
    Accept,
    AsJson,
    ChildrenOf,
    DryRun,
    DryRunAsJson,
    ForkOf,
    NodeArgument,
    NoWait,
    OfWorkflow,
    RunArgument,
    Since,
    Until,
    WithChildren,
    WithError,
    WithPrefix,
    WithStatus,
    WithTag,
    WithText,
    argument,
    flag,
    option,
)

NewInputs = Annotated[
    list[str] | None,
    option("NAME=VALUE", "An input that its class has got since; may be repeated.", "--input", "-i"),
]
AT_HELP = "A point of its history, a label, or the node to begin with, by id or name; without it all it has done."
CHANGED_INPUT = "Change one input; may be repeated."
BULK_NODE = "Of reattempt: the node of each run, by id or name."
BULK_KEY = "Of fork: the forks are called RUN-KEY, so that the same command again makes no more of them."


def add_commands_that_go_on(app: typer.Typer) -> None:
    @declare(app, "run", jobs=True, changes=True)
    def retry(
        run: RunArgument,
        accept: Accept = False,
        inputs: NewInputs = None,
        dry_run: DryRun = False,
        as_json: DryRunAsJson = False,
        no_wait: NoWait = False,
    ) -> None:
        """Run again what did not complete of a failed, cancelled or paused run."""

    @declare(app, "run", jobs=True, changes=True)
    def reattempt(
        run: RunArgument,
        node: NodeArgument,
        cascade: Annotated[bool, flag("--cascade", "Run again what completed below it, too.")] = False,
        dry_run: DryRun = False,
        as_json: DryRunAsJson = False,
        no_wait: NoWait = False,
    ) -> None:
        """Run one node again that has ended, even one that completed, with what failed or was cancelled below it."""

    @declare(app, "run", jobs=True, changes=True)
    def fork(
        run: RunArgument,
        at: Annotated[str | None, option("SEQ|LABEL|NODE", AT_HELP)] = None,
        inputs: Annotated[list[str] | None, option("NAME=VALUE", CHANGED_INPUT, "--input", "-i")] = None,
        run_id: Annotated[str | None, option("ID", "An id of your choice.")] = None,
        no_wait: NoWait = False,
        dry_run: DryRun = False,
        as_json: DryRunAsJson = False,
    ) -> None:
        """Start a new run that begins with what another has done, and goes on with other input or code."""

    @declare(app, "run", jobs=True, changes=True)
    def resume(
        run: RunArgument,
        accept: Accept = False,
        inputs: NewInputs = None,
        dry_run: DryRun = False,
        as_json: DryRunAsJson = False,
        no_wait: Annotated[bool, flag("--no-wait", "Un-pause it, but leave the work to others.")] = False,
    ) -> None:
        """Go on with an unfinished run: one that is paused, or that another process left."""


def add_steering_commands(app: typer.Typer) -> None:
    @declare(app, "bulk", changes=True)
    def bulk(
        verb: Annotated[str, argument("VERB", "retry, reattempt, cancel, pause, resume or fork.")],
        workflow: OfWorkflow = None,
        status: WithStatus = None,
        tag: WithTag = None,
        since: Since = None,
        until: Until = None,
        prefix: WithPrefix = None,
        fork_of: ForkOf = None,
        search: WithText = None,
        error: WithError = None,
        parent: ChildrenOf = None,
        children: WithChildren = False,
        limit: Annotated[int, option("N", "At most so many runs, the newest.", min=1, max=1_000)] = 100,
        accept: Accept = False,
        grace_seconds: Annotated[
            float | None, option("SECONDS", "Of cancel: how long running bodies may take to stop.", "--grace", min=0)
        ] = None,
        node: Annotated[str | None, option("NODE", BULK_NODE)] = None,
        cascade: Annotated[bool, flag("--cascade", "Of reattempt: run again what completed below it, too.")] = False,
        at: Annotated[str | None, option("SEQ|LABEL|NODE", "Of fork: where it begins.")] = None,
        key: Annotated[str | None, option("KEY", BULK_KEY)] = None,
        yes: Annotated[bool, flag("--yes", "Do it without asking.", "-y")] = False,
        dry_run: Annotated[bool, flag("--dry-run", "Only say what it would do to which runs.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Request the same of many runs: shows what it would do to each, asks, and does it to those runs only.

        Exit code 6 if one of them refused it, or had changed since. The work is left to workers.
        """

    @declare(app, "steer", changes=True)
    def pause(run: RunArgument, dry_run: DryRun = False, as_json: DryRunAsJson = False) -> None:
        """Start nothing more of a run until it is resumed; what runs may end."""

    @declare(app, "steer", changes=True)
    def freeze(run: RunArgument) -> None:
        """Have a run keep the graph it has: it no longer follows its class."""

    @declare(app, "steer", "import", jobs=True, changes=True)
    def import_graph(
        run: RunArgument,
        file: Annotated[str, argument("FILE", "What `stepwell graph RUN --frozen` printed, edited; - reads stdin.")],
    ) -> None:
        """Have a run go on with an edited graph; what has completed must stay as it was."""

    @declare(app, "clean", changes=True)
    def cancel(
        run: RunArgument,
        grace_seconds: Annotated[
            float, option("SECONDS", "How long running bodies may take to stop.", "--grace", min=0)
        ] = 5.0,
        dry_run: DryRun = False,
        as_json: DryRunAsJson = False,
    ) -> None:
        """Cancel a run: start nothing more, ask what runs to stop."""
