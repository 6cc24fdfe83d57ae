"""The arguments and options that several commands have, and how any is declared."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .completion import nodes, runs, statuses, targets, workflows


def argument(metavar: str, help: str, **more: Any) -> Any:
    return typer.Argument(metavar=metavar, help=help, **more)


def option(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """An option with a value, named after its parameter (`run_id` is `--run-id`) unless `names` are given."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def flag(name: str, help: str, *names: str) -> Any:
    return typer.Option(name, *names, help=help)


STORE_HELP = "Where runs are kept, as in sqlite:///orders.db. Also STEPWELL_STORE, or `store` in stepwell.toml."
Store = Annotated[str | None, option("URL", STORE_HELP, "--store", show_default=False)]
SERVER_HELP = (
    "Ask this server instead of a store. Also STEPWELL_SERVER, or `server` in stepwell.toml; token: STEPWELL_TOKEN."
)
Server = Annotated[str | None, option("URL", SERVER_HELP, "--server", show_default=False)]
JOBS_HELP = (
    "A module whose functions may run for what came from elsewhere (an imported graph, a cassette); may be repeated. "
    "Also STEPWELL_JOBS, or `jobs` in stepwell.toml."
)
Jobs = Annotated[list[str] | None, option("MODULE", JOBS_HELP, show_default=False)]
TARGET_HELP = (
    "module:Workflow, module:function that returns a Builder, a document (JSON, YAML), or the name of a stored one."
)
Target = Annotated[str, argument("TARGET", TARGET_HELP, autocompletion=targets)]
RUN_HELP = "The id of a run, or its beginning (at least 4 characters)."
RunArgument = Annotated[str, argument("RUN", RUN_HELP, autocompletion=runs)]
NodeArgument = Annotated[str, argument("NODE", "A node by id or name.", autocompletion=nodes)]
Modules = Annotated[list[str] | None, argument("[MODULE...]", "Modules that hold workflows and jobs.")]
Inputs = Annotated[list[str] | None, option("NAME=VALUE", "One input; may be repeated.", "--input", "-i")]
InputFile = Annotated[str | None, option("FILE", "A JSON object of inputs; - reads stdin.")]
AsJson = Annotated[bool, flag("--json", "Print JSON.")]
NoWait = Annotated[bool, flag("--no-wait", "Record it and leave the work to others.")]
DryRun = Annotated[bool, flag("--dry-run", "Only say which nodes would change, and into what.")]
DryRunAsJson = Annotated[bool, flag("--json", "With --dry-run: print JSON.")]
Reason = Annotated[str | None, option("TEXT", "Why; it is kept in the audit log.", "--reason", show_default=False)]
OfWorkflow = Annotated[str | None, option("NAME", "Only runs of this workflow.", autocompletion=workflows)]
WithStatus = Annotated[str | None, option("STATUS", "Only runs with this status.", autocompletion=statuses)]
WithTag = Annotated[list[str] | None, option("NAME=VALUE", "Only runs with this tag; may be repeated.")]
Since = Annotated[str | None, option("AGO", "Only runs created since then: 90m, 12h, 7d.")]
Until = Annotated[str | None, option("AGO", "Only runs created before then.")]
WithPrefix = Annotated[str | None, option("PREFIX", "Only runs whose id begins so.", "--id")]
ForkOf = Annotated[str | None, option("RUN", "Only forks of this run.", autocompletion=runs)]
WithText = Annotated[str | None, option("TEXT", "Only runs with this in their id, workflow, error or a tag.")]
WithError = Annotated[str | None, option("CLASS", "Only runs whose first failed node had an error of this class.")]
ChildrenOf = Annotated[str | None, option("RUN", "Only child runs of this run.", "--parent", autocompletion=runs)]
WithChildren = Annotated[bool, flag("--children", "Child runs, too, which perform nodes of others.")]
Accept = Annotated[bool, flag("--accept", "What the class has lost and gained since is no node under a new name.")]
