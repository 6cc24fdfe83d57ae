"""The commands and their options. What they do is imported when they do it, so that `--help` answers at once."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from ..version import __version__
from . import completion
from .exits import MEANINGS, forgiving_streams, report

app = typer.Typer(
    name="stepwell",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading Rich would double the time that help takes
    # The backspace tells the formatter to leave these lines as they are.
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items()),
    context_settings={"help_option_names": ["--help", "-h"]},
)

STORE_HELP = "Where runs are kept, as in sqlite:///orders.db. Also STEPWELL_STORE, or `store` in stepwell.toml."

Store = Annotated[str | None, typer.Option("--store", metavar="URL", help=STORE_HELP, show_default=False)]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="module:Workflow, or module:function that returns a Builder.",
        autocompletion=completion.targets,
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The id of a run, or its beginning (at least 4 characters).",
        autocompletion=completion.runs,
    ),
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="One input; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Accept = Annotated[
    bool, typer.Option("--accept", help="Nodes that the class has lost and gained since are no renamed ones.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Record it and leave the work to others.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stepwell {__version__}")
        raise typer.Exit


@app.callback()
def stepwell(
    context: typer.Context,
    store: Store = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run workflows that survive crashes, and look after their runs."""
    context.obj = store


def _place(context: typer.Context, store: str | None) -> Any:
    from .opening import Place

    return Place(store or context.obj)


@app.command()
def run(
    context: typer.Context,
    target: Target,
    inputs: Inputs = None,
    input_file: Annotated[
        str | None,
        typer.Option("--input-file", metavar="FILE", help="A JSON object of inputs; - reads stdin. --input wins."),
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", metavar="ID", help="An id of your choice; the same id is the same run.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="An idempotency key; the same key is the same run.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="The run fails if it takes longer.")
    ] = None,
    priority: Annotated[int, typer.Option("--priority", metavar="N", help="Larger is claimed first.")] = 0,
    store: Store = None,
) -> None:
    """Run a workflow to its end and print its result as JSON.

    Progress goes to stderr and only the result to stdout. Interrupt it with Ctrl-C: the run is kept, and
    `stepwell resume` goes on with it.
    """
    from . import working

    place = _place(context, store)
    working.run(place, target, inputs or [], input_file, run_id=run_id, key=key, timeout=timeout, priority=priority)


@app.command()
def ls(
    context: typer.Context,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow", metavar="NAME", help="Only runs of this workflow.", autocompletion=completion.workflows
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="Only runs with this status.", autocompletion=completion.statuses
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many.")] = 20,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """List runs, the newest first."""
    from . import looking

    looking.ls(_place(context, store), workflow=workflow, status=status, limit=limit, as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    run: RunArgument,
    traceback: Annotated[bool, typer.Option("--traceback", help="With the tracebacks of failed nodes.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Every node one by one, however many there are.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Show a run: its nodes as a tree, and when they were at work."""
    from . import looking

    looking.show(_place(context, store), run, tracebacks=traceback, whole=whole, as_json=as_json)


@app.command()
def why(
    context: typer.Context,
    run: RunArgument,
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="A node by id or name; without it the run is explained.")
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Say why a run or a node waits, failed, was skipped, cancelled or run again."""
    from .why import why as explain

    explain(_place(context, store), run, node, as_json=as_json)


@app.command()
def audit(context: typer.Context, run: RunArgument, as_json: AsJson = False, store: Store = None) -> None:
    """Recompute every invariant of a run from its rows; exit code 1 if one of them does not hold."""
    from . import looking

    looking.audit(_place(context, store), run, as_json=as_json)


@app.command()
def graph(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="TARGET|RUN",
            help="A workflow, or a run: drawn with the status of its nodes.",
            autocompletion=completion.targets_and_runs,
        ),
    ],
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart (the default).")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="For Graphviz.")] = False,
    frozen: Annotated[bool, typer.Option("--frozen", help="Of a run: the JSON that import_graph() takes.")] = False,
    svg: Annotated[
        str | None, typer.Option("--svg", metavar="FILE", help="As a picture, into this file; - for stdout.")
    ] = None,
    as_json: AsJson = False,
    inputs: Inputs = None,
    store: Store = None,
) -> None:
    """Draw the graph of a workflow or of a run."""
    from . import looking

    if mermaid + dot + frozen + as_json + (svg is not None) > 1:
        raise typer.BadParameter("only one of --mermaid, --dot, --svg, --frozen and --json can be chosen")
    if frozen:
        return looking.frozen(_place(context, store), what)
    if svg is not None:
        return looking.picture(_place(context, store), what, inputs or [], svg)
    looking.graph(_place(context, store), what, inputs or [], "json" if as_json else "dot" if dot else "mermaid")


@app.command()
def retry(
    context: typer.Context, run: RunArgument, no_wait: NoWait = False, accept: Accept = False, store: Store = None
) -> None:
    """Run again what did not complete of a failed or cancelled run."""
    from . import working

    working.retry(_place(context, store), run, wait=not no_wait, accept=accept)


@app.command()
def resume(
    context: typer.Context,
    run: RunArgument,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not work on it; only say how it goes on.")] = False,
    accept: Accept = False,
    store: Store = None,
) -> None:
    """Go on with an unfinished run that another process left, or that is paused."""
    from . import working

    working.resume(_place(context, store), run, wait=not no_wait, accept=accept)


@app.command()
def work(
    context: typer.Context,
    modules: Annotated[list[str], typer.Argument(metavar="MODULE...", help="Modules that hold workflows and jobs.")],
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left that can be worked on here.")] = False,
    store: Store = None,
) -> None:
    """Work on every unfinished run there is code for, until Ctrl-C."""
    from . import working

    working.work(_place(context, store), modules, once=once)


@app.command()
def cancel(
    context: typer.Context,
    run: RunArgument,
    grace: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", min=0, help="How long what runs may take to stop.")
    ] = 5.0,
    store: Store = None,
) -> None:
    """Cancel a run: start nothing more, ask what runs to stop."""
    from . import tidying

    tidying.cancel(_place(context, store), run, grace=grace)


@app.command()
def gc(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long ago they ended: 90s, 12h, 30d, 8w.")
    ] = "30d",
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=0, help="Keep the newest N ended runs, however old.")
    ] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Delete runs that ended long ago."""
    from . import tidying

    tidying.gc(_place(context, store), older_than=older_than, keep=keep, dry_run=dry_run, as_json=as_json)


@app.command()
def version(as_json: AsJson = False) -> None:
    """Show the versions of Stepwell, Python and SQLite."""
    import json
    import platform

    import apsw

    versions = {"stepwell": __version__, "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    typer.echo(
        json.dumps(versions, indent=2) if as_json else "  ".join(f"{name} {found}" for name, found in versions.items())
    )


def main() -> None:
    """What `stepwell` and `python -m stepwell` call."""
    forgiving_streams()
    if logging.lastResort is not None:  # warnings of the engine, unless the user's code has set up logging
        logging.lastResort.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    try:
        with completion.asked_by_a_shell():
            app(prog_name="stepwell")
    except Exception as error:
        sys.exit(report(error))
