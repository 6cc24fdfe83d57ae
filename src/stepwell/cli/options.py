"""The arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from .completion import nodes, runs, targets

STORE_HELP = "Where runs are kept, as in sqlite:///orders.db. Also STEPWELL_STORE, or `store` in stepwell.toml."

Store = Annotated[str | None, typer.Option("--store", metavar="URL", help=STORE_HELP, show_default=False)]
SERVER_HELP = (
    "Ask this server instead of a store. Also STEPWELL_SERVER, or `server` in stepwell.toml; token: STEPWELL_TOKEN."
)
Server = Annotated[str | None, typer.Option("--server", metavar="URL", help=SERVER_HELP, show_default=False)]
Jobs = Annotated[
    list[str] | None,
    typer.Option(
        "--jobs",
        metavar="MODULE",
        help="A module whose functions may run for what came from elsewhere (an imported graph, a cassette); may be repeated. "
        "Also STEPWELL_JOBS, or `jobs` in stepwell.toml.",
        show_default=False,
    ),
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="module:Workflow, module:function that returns a Builder, a document (JSON, YAML), or the name of a stored one.",
        autocompletion=targets,
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The id of a run, or its beginning (at least 4 characters).",
        autocompletion=runs,
    ),
]
Shown = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE|NAME",
        help="The id of a run, or its beginning; a document, or the name of a stored one.",
        autocompletion=runs,
    ),
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="One input; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Record it and leave the work to others.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="SEQ|LABEL|NODE",
        help="A point of its history, a label, or the node to begin with, by id or name; without it all it has done.",
    ),
]
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="A node by id or name.", autocompletion=nodes)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say which nodes would change, and into what.")]
DryRunAsJson = Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")]
Accept = Annotated[
    bool,
    typer.Option("--accept", help="What the class has lost and gained since is no node under a new name."),
]
