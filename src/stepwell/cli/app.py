"""The commands and their options. What they do is imported when they do it, so that `--help` answers at once."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from ..version import __version__
from .command import Where, declare
from .completion import asked_by_a_shell, nodes, runs, statuses, targets_and_runs, workflows
from .document_commands import add_document_commands
from .exits import MEANINGS, forgiving_streams, report
from .fleet_commands import add_fleet_commands
from .options import (
    Accept,
    AsJson,
    At,
    DryRun,
    DryRunAsJson,
    Inputs,
    Jobs,
    NodeArgument,
    NoWait,
    RunArgument,
    Server,
    Shown,
    Store,
    Target,
)
from .pipeline import pipelines
from .server import add_server_commands
from .triggers import triggers

app = typer.Typer(
    name="stepwell",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading Rich would double the time that help takes
    # The backspace tells the formatter to leave these lines as they are.
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items()),
    context_settings={"help_option_names": ["--help", "-h"]},
)


app.add_typer(pipelines, name="pipeline")
app.add_typer(triggers, name="trigger")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stepwell {__version__}")
        raise typer.Exit


@app.callback()
def stepwell(
    context: typer.Context,
    store: Store = None,
    server_url: Server = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run workflows that survive crashes, and look after their runs."""
    context.obj = Where(store, server_url)


@declare(app, "init")
def init(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to write it; it is made if need be.")] = ".",
) -> None:
    """Write a small project: a workflow, tests that take no time, a recorded run, and pyproject.toml."""


@declare(app, "run")
def run(
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
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="NAME=VALUE", help="What the run is found by later; may be repeated."),
    ] = None,
) -> None:
    """Run a workflow to its end and print its result as JSON.

    Progress goes to stderr and only the result to stdout. Interrupt it with Ctrl-C: the run is kept, and
    `stepwell resume` goes on with it.
    """


@declare(app, "ls")
def ls(
    workflow: Annotated[
        str | None,
        typer.Option("--workflow", metavar="NAME", help="Only runs of this workflow.", autocompletion=workflows),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", help="Only runs with this status.", autocompletion=statuses),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="NAME=VALUE", help="Only runs with this tag; may be repeated."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="AGO", help="Only runs created since then: 90m, 12h, 7d.")
    ] = None,
    prefix: Annotated[str | None, typer.Option("--id", metavar="PREFIX", help="Only runs whose id begins so.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first."""


@declare(app, "show")
def show(
    run: Shown,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]",
            help="A node by id or name: its attempts, its config as written and as rendered, what it returned.",
            autocompletion=nodes,
        ),
    ] = None,
    traceback: Annotated[bool, typer.Option("--traceback", help="With the tracebacks of failed nodes.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Every node one by one, however many there are.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run: its nodes as a tree, and when they were at work; one node of it; or a document."""


@declare(app, "why")
def why(
    run: RunArgument,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]",
            help="A node by id or name; without it the run is explained.",
            autocompletion=nodes,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a run or a node waits, failed, was skipped, cancelled or run again."""


@declare(app, "logs")
def logs(
    run: RunArgument,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Only of this node, by name or id.")] = None,
    attempt: Annotated[int | None, typer.Option("--attempt", metavar="N", help="Only of attempts number N.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended; with --json an object a line.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the nodes of a run logged and printed."""


@declare(app, "show")
def audit(run: RunArgument, as_json: AsJson = False) -> None:
    """Recompute every invariant of a run from its rows; exit code 1 if one of them does not hold."""


@declare(app, "handlers")
def handlers(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A handler.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what nodes of documents can do, or show the config of a handler, its output and an example."""


add_document_commands(app)
add_fleet_commands(app)
add_server_commands(app)


@declare(app, "checkpoints")
def checkpoints(
    run: RunArgument,
    at: Annotated[
        str | None, typer.Argument(metavar="[AT]", help="A label, a seq of the journal, or an idempotency key.")
    ] = None,
    as_json: AsJson = False,
    jobs: Jobs = None,
) -> None:
    """List the checkpoints that bodies gave names to, or show how the run stood at one: state, frontier, effects."""


@declare(app, "replay")
def replay(
    what: Annotated[
        str,
        typer.Argument(metavar="RUN|FILE", help="A run, or a cassette that `export` wrote.", autocompletion=runs),
    ],
    as_json: AsJson = False,
    jobs: Jobs = None,
) -> None:
    """Run the bodies of a run again, answered from its record; exit code 1 if anything differs."""


@declare(app, "replay")
def export(
    run: RunArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="As in orders.cassette.json; it is replaced.")],
    missing_code_ok: Annotated[
        bool,
        typer.Option(
            "--missing-code-ok",
            help="Also when the code of the run cannot be imported; secrets that only this code names are then not masked.",
        ),
    ] = False,
    jobs: Jobs = None,
) -> None:
    """Write what is recorded of a run into a file that can be replayed anywhere, without the secrets that its code names."""


@declare(app, "graph")
def graph(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TARGET|RUN",
            help="A workflow, or a run: drawn with the status of its nodes.",
            autocompletion=targets_and_runs,
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
) -> None:
    """Draw the graph of a workflow or of a run."""


@declare(app, "run")
def retry(
    run: RunArgument,
    accept: Accept = False,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    no_wait: NoWait = False,
    jobs: Jobs = None,
) -> None:
    """Run again what did not complete of a failed, cancelled or paused run."""


@declare(app, "run")
def reattempt(
    run: RunArgument,
    node: NodeArgument,
    cascade: Annotated[bool, typer.Option("--cascade", help="Run again what completed below it, too.")] = False,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    no_wait: NoWait = False,
    jobs: Jobs = None,
) -> None:
    """Run one node again that has ended, even one that completed, with what failed or was cancelled below it."""


@declare(app, "run")
def fork(
    run: RunArgument,
    at: At = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="Change one input; may be repeated."),
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run-id", metavar="ID", help="An id of your choice.")] = None,
    no_wait: NoWait = False,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    jobs: Jobs = None,
) -> None:
    """Start a new run that begins with what another has done, and goes on with other input or code."""


@declare(app, "diff")
def diff(
    first: Annotated[str, typer.Argument(metavar="RUN1", help="A run.", autocompletion=runs)],
    second: Annotated[str, typer.Argument(metavar="RUN2", help="Another.", autocompletion=runs)],
    whole: Annotated[bool, typer.Option("--all", help="Every node, also those that do not differ.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: inputs, nodes, outputs, attempts and times; exit code 1 if outputs or deltas differ."""


@declare(app, "steer")
def pause(
    run: RunArgument,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
) -> None:
    """Start nothing more of a run until it is resumed; what runs may end."""


@declare(app, "run")
def resume(
    run: RunArgument,
    accept: Accept = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="NAME=VALUE", help="An input that its class has got since; may be repeated."
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Un-pause it, but leave the work to others.")] = False,
    jobs: Jobs = None,
) -> None:
    """Go on with an unfinished run: one that is paused, or that another process left."""


@declare(app, "steer")
def freeze(run: RunArgument) -> None:
    """Have a run keep the graph it has: it no longer follows its class."""


@declare(app, "steer", "import")
def import_graph(
    run: RunArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `graph RUN --frozen` printed, edited; - reads stdin.")
    ],
    jobs: Jobs = None,
) -> None:
    """Have a run go on with an edited graph; what has completed must stay as it was."""


@declare(app, "run")
def work(
    modules: Annotated[
        list[str] | None, typer.Argument(metavar="[MODULE...]", help="Modules that hold workflows and jobs.")
    ] = None,
    queues: Annotated[
        str | None, typer.Option("--queues", metavar="A,B", help="Take only nodes of these queues; by default all.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left that can be worked on here.")] = False,
    jobs: Jobs = None,
) -> None:
    """Work on every unfinished run there is code for, until Ctrl-C."""


@declare(app, "clean")
def cancel(
    run: RunArgument,
    grace: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", min=0, help="How long what runs may take to stop.")
    ] = 5.0,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
) -> None:
    """Cancel a run: start nothing more, ask what runs to stop."""


@declare(app, "clean")
def gc(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long ago they ended: 90s, 12h, 30d, 8w.")
    ] = "30d",
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=0, help="Keep the newest N ended runs, however old.")
    ] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete runs that ended long ago."""


@declare(app, "copy")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The URL of the store that has the runs.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The URL of the store that gets them; made if need be.")],
    runs: Annotated[
        list[str] | None, typer.Option("--run", metavar="RUN", help="Only this run; may be repeated.")
    ] = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Pause runs that have not ended, move them, and have them go on there.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="From a server into a file: run what its rows name as your own code.")
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long bodies of a paused run may take to end.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Copy runs to another store, counted and audited; with --unfinished those that have not ended are moved."""


@declare(app, "migrate")
def migrate(
    show: Annotated[
        bool, typer.Option("--print", help="Only show the statements, for somebody who may run them.")
    ] = False,
) -> None:
    """Bring the schema of a PostgreSQL store to the version of this installation."""


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
        with asked_by_a_shell():
            app(prog_name="stepwell")
    except Exception as error:
        sys.exit(report(error))
    finally:
        # Python remembers a Ctrl-C that came while it ran text as code, as imports do, and would end by that signal whatever
        # the exit code. Running some makes it forget.
        exec("")
