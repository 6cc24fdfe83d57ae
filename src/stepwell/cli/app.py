"""The commands and their options. What they do is imported when they do it, so that `--help` answers at once."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from ..base.version import __version__
from .command import Where, declare
from .completion import nodes, runs, shell_completion, targets_and_runs
from .document_commands import add_document_commands
from .exits import ExitCode, prepare_streams, report
from .options import (
    AsJson,
    ChildrenOf,
    ForkOf,
    Inputs,
    Modules,
    OfWorkflow,
    RunArgument,
    Server,
    Since,
    Store,
    Target,
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
from .pipeline import pipelines
from .server import add_fleet_commands, add_server_commands
from .steering_commands import add_commands_that_go_on, add_steering_commands
from .triggers import triggers

app = typer.Typer(
    name="stepwell",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading Rich would double the time that help takes
    # The backspace tells the formatter to leave these lines as they are.
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code.value:>3}  {code.meaning}" for code in ExitCode),
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


@declare(app, "init", place="none")
def init(folder: Annotated[str, argument("FOLDER", "Where to write it; it is made if need be.")] = ".") -> None:
    """Write a small project: a workflow, tests that take no time, a recorded run, and pyproject.toml."""


@declare(app, "run", jobs=True, changes=True)
def run(
    target: Target,
    inputs: Inputs = None,
    input_file: Annotated[str | None, option("FILE", "A JSON object of inputs; - reads stdin. --input wins.")] = None,
    run_id: Annotated[str | None, option("ID", "An id of your choice; the same id is the same run.")] = None,
    key: Annotated[str | None, option("KEY", "An idempotency key; the same key is the same run.")] = None,
    deadline: Annotated[float | None, option("SECONDS", "The run fails if it takes longer.")] = None,
    priority: Annotated[int, option("N", "Larger is claimed first.")] = 0,
    tag: Annotated[list[str] | None, option("NAME=VALUE", "What the run is found by later; may be repeated.")] = None,
) -> None:
    """Run a workflow to its end and print its result as JSON.

    Progress goes to stderr and only the result to stdout. Interrupt it with Ctrl-C: the run is kept, and
    `stepwell resume` goes on with it.
    """


@declare(app, "ls")
def ls(
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
    order: Annotated[str, option("ORDER", "created; or, of runs that have ended: ended, duration.")] = "created",
    count: Annotated[str | None, option("BY", "Count them by status, workflow, hour or day instead.")] = None,
    limit: Annotated[int, option("N", "At most so many.", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first or in another order; or count them."""


SHOWN_HELP = "The id of a run, or its beginning; a document, or the name of a stored one."
SHOWN_NODE = "A node by id or name: its attempts, its config as written and as rendered, what it returned."


@declare(app, "show")
def show(
    run: Annotated[str, argument("RUN|FILE|NAME", SHOWN_HELP, autocompletion=runs)],
    node: Annotated[str | None, argument("[NODE]", SHOWN_NODE, autocompletion=nodes)] = None,
    traceback: Annotated[bool, flag("--traceback", "With the tracebacks of failed nodes.")] = False,
    whole: Annotated[bool, flag("--all", "Every node one by one, however many there are.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run: its nodes as a tree, and when they were at work; one node of it; or a document."""


WHY_NODE = "A node by id or name; without it the run is explained."


@declare(app, "show")
def why(
    run: RunArgument,
    node: Annotated[str | None, argument("[NODE]", WHY_NODE, autocompletion=nodes)] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a run or a node waits, failed, was skipped, cancelled or run again."""


@declare(app, "failures")
def failures(run: RunArgument, as_json: AsJson = False) -> None:
    """List the errors with which nodes of a run failed, the most frequent one first."""


@declare(app, "attempts")
def attempts(run: RunArgument, as_json: AsJson = False) -> None:
    """List every attempt of a run: how long it waited and ran, which worker ran it, and what it raised."""


@declare(app, "logs")
def logs(
    run: RunArgument,
    node: Annotated[str | None, argument("[NODE]", "Only of this node, by name or id.")] = None,
    attempt: Annotated[int | None, option("N", "Only of attempts number N.")] = None,
    level: Annotated[str | None, option("LEVEL", "Only lines of this level or a higher one.")] = None,
    search: Annotated[
        str | None, option("TEXT", "Only lines with this in them, or in the name of their logger.")
    ] = None,
    tail: Annotated[int | None, option("N", "Only the last N lines.")] = None,
    follow: Annotated[
        bool, flag("--follow", "Go on until the run has ended; with --json an object a line.", "-f")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the nodes of a run logged and printed."""


@declare(app, "show")
def audit(run: RunArgument, as_json: AsJson = False) -> None:
    """Recompute every invariant of a run from its rows; exit code 1 if one of them does not hold."""


@declare(app, "audit_log", "audit-log")
def audit_log(
    run: Annotated[str | None, argument("[RUN]", "Only of this run; it may be deleted.", autocompletion=runs)] = None,
    who: Annotated[str | None, option("NAME", "Only by this token or trigger, or USER@MACHINE.")] = None,
    action: Annotated[str | None, option("ACTION", "Only this, as in cancel.")] = None,
    since: Annotated[str | None, option("AGO", "Only what was asked for since then: 90m, 12h, 7d.")] = None,
    limit: Annotated[int, option("N", "At most so many.", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """List who asked for which change, when, from where and why, the newest first."""


@declare(app, "handlers", place="none")
def handlers(name: Annotated[str | None, argument("[NAME]", "A handler.")] = None, as_json: AsJson = False) -> None:
    """List what nodes of documents can do, or show the config of a handler, its output and an example."""


add_document_commands(app)
add_fleet_commands(app)
add_server_commands(app)


@declare(app, "checkpoints", jobs=True)
def checkpoints(
    run: RunArgument,
    at: Annotated[str | None, argument("[AT]", "A label, a seq of the journal, or an idempotency key.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the checkpoints that bodies gave names to, or show how the run stood at one: state, frontier, effects."""


@declare(app, "replay", jobs=True)
def replay(
    what: Annotated[str, argument("RUN|FILE", "A run, or a cassette that `export` wrote.", autocompletion=runs)],
    as_json: AsJson = False,
) -> None:
    """Run the bodies of a run again, answered from its record; exit code 1 if anything differs."""


MISSING_CODE_OK = (
    "Also when the code of the run cannot be imported; secrets that only this code names are then not masked."
)


@declare(app, "replay", jobs=True)
def export(
    run: RunArgument,
    file: Annotated[str, argument("FILE", "As in orders.cassette.json; it is replaced.")],
    missing_code_ok: Annotated[bool, flag("--missing-code-ok", MISSING_CODE_OK)] = False,
) -> None:
    """Write what is recorded of a run into a file that can be replayed anywhere, without the secrets that its code names."""


DRAWN_HELP = "A workflow, or a run: drawn with the status of its nodes."


@declare(app, "graph")
def graph(
    what: Annotated[str, argument("TARGET|RUN", DRAWN_HELP, autocompletion=targets_and_runs)],
    mermaid: Annotated[bool, flag("--mermaid", "As a Mermaid flowchart (the default).")] = False,
    dot: Annotated[bool, flag("--dot", "For Graphviz.")] = False,
    frozen: Annotated[bool, flag("--frozen", "Of a run: the JSON that import_graph() takes.")] = False,
    svg: Annotated[str | None, option("FILE", "As a picture, into this file; - for stdout.")] = None,
    as_json: AsJson = False,
    open_group: Annotated[
        list[str] | None, option("GROUP", "With --json: show what is in this group; may be repeated.", "--open")
    ] = None,
    at: Annotated[int | None, option("SEQ", "With --json: as it was after this entry of the journal.", min=0)] = None,
    inputs: Inputs = None,
) -> None:
    """Draw the graph of a workflow or of a run. With --json, nodes are in groups where there are many."""


add_commands_that_go_on(app)
add_steering_commands(app)


@declare(app, "diff")
def diff(
    first: Annotated[str, argument("RUN1", "A run.", autocompletion=runs)],
    second: Annotated[str, argument("RUN2", "Another.", autocompletion=runs)],
    whole: Annotated[bool, flag("--all", "Every node, also those that do not differ.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: inputs, nodes, outputs, attempts and times; exit code 1 if outputs or deltas differ."""


@declare(app, "run", jobs=True, place="store")
def work(
    modules: Modules = None,
    queues: Annotated[str | None, option("A,B", "Take only nodes of these queues; by default all.")] = None,
    once: Annotated[bool, flag("--once", "End when nothing is left that can be worked on here.")] = False,
) -> None:
    """Work on every unfinished run there is code for, until Ctrl-C."""


@declare(app, "clean", place="store", changes=True)
def gc(
    older_than: Annotated[str, option("AGE", "How long ago they ended: 90s, 12h, 30d, 8w.")] = "30d",
    keep: Annotated[int, option("N", "Keep the newest N ended runs, however old.", min=0)] = 0,
    audit_log: Annotated[str, option("AGE", "How old entries of the audit log become.")] = "365d",
    dry_run: Annotated[bool, flag("--dry-run", "Only say what would be deleted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete runs that ended long ago."""


UNFINISHED_HELP = "Pause runs that have not ended, move them, and have them go on there."
TRUST_HELP = "From a server into a file: run what its rows name as your own code."


@declare(app, "stores", place="none")
def copy(
    source: Annotated[str, argument("FROM", "The URL of the store that has the runs.")],
    target: Annotated[str, argument("TO", "The URL of the store that gets them; made if need be.")],
    runs: Annotated[list[str] | None, option("RUN", "Only this run; may be repeated.", "--run")] = None,
    unfinished: Annotated[bool, flag("--unfinished", UNFINISHED_HELP)] = False,
    trust: Annotated[bool, flag("--trust", TRUST_HELP)] = False,
    wait: Annotated[float, option("SECONDS", "How long bodies of a paused run may take to end.", min=0)] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Copy runs to another store, counted and audited; with --unfinished those that have not ended are moved."""


@declare(app, "stores", place="store")
def migrate(
    show: Annotated[bool, flag("--print", "Only show the statements, for somebody who may run them.")] = False,
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
        json.dumps(versions, indent=2)
        if as_json
        else "  ".join(f"{name} {number}" for name, number in versions.items())
    )


def main() -> None:
    """What `stepwell` and `python -m stepwell` call."""
    prepare_streams()
    if logging.lastResort is not None:  # warnings of the engine, unless the user's code has set up logging
        logging.lastResort.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    try:
        with shell_completion():
            app(prog_name="stepwell")
    except Exception as error:
        sys.exit(report(error))
    finally:
        # Python remembers a Ctrl-C that came while it ran text as code, as imports do, and would end by that signal whatever
        # the exit code. Running some makes it forget.
        exec("")
