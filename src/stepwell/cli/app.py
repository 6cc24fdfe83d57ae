"""The commands and their options. What they do is imported when they do it, so that `--help` answers at once."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from ..version import __version__
from .completion import asked_by_a_shell
from .completion import nodes as complete_nodes
from .completion import runs as complete_runs
from .completion import statuses as complete_statuses
from .completion import targets_and_runs as complete_targets_and_runs
from .completion import workflows as complete_workflows
from .exits import MEANINGS, forgiving_streams, report
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
    Store,
    Target,
)

app = typer.Typer(
    name="stepwell",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading Rich would double the time that help takes
    # The backspace tells the formatter to leave these lines as they are.
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items()),
    context_settings={"help_option_names": ["--help", "-h"]},
)


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


def _place(context: typer.Context, store: str | None, jobs: list[str] | None = None) -> Any:
    from .connect import Connection
    from .streams import keep_stdout

    keep_stdout()
    return Connection(store or context.obj, jobs or ())


def _only_said(
    context: typer.Context,
    store: str | None,
    run: str,
    verb: str,
    *,
    dry_run: bool,
    as_json: bool,
    node: str | None = None,
    cascade: bool = False,
    grace: float = 0.0,
) -> bool:
    """Whether what a command would do was only asked for, and was told."""
    if dry_run:
        from .commands import steer as steering

        place = _place(context, store)
        steering.dry_run(place, run, verb, node=node, cascade=cascade, grace=grace, as_json=as_json)
    elif as_json:
        raise typer.BadParameter("--json goes with --dry-run: it lists the nodes that would change")
    return dry_run


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
    from .commands import run as working

    place = _place(context, store)
    working.run(place, target, inputs or [], input_file, run_id=run_id, key=key, timeout=timeout, priority=priority)


@app.command()
def ls(
    context: typer.Context,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow", metavar="NAME", help="Only runs of this workflow.", autocompletion=complete_workflows
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="Only runs with this status.", autocompletion=complete_statuses
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many.")] = 20,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """List runs, the newest first."""
    from .commands import look as looking

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
    from .commands import look as looking

    looking.show(_place(context, store), run, tracebacks=traceback, whole=whole, as_json=as_json)


@app.command()
def why(
    context: typer.Context,
    run: RunArgument,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]",
            help="A node by id or name; without it the run is explained.",
            autocompletion=complete_nodes,
        ),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Say why a run or a node waits, failed, was skipped, cancelled or run again."""
    from .commands.why import why as explain

    explain(_place(context, store), run, node, as_json=as_json)


@app.command()
def logs(
    context: typer.Context,
    run: RunArgument,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Only of this node, by name or id.")] = None,
    attempt: Annotated[int | None, typer.Option("--attempt", metavar="N", help="Only of attempts number N.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended; with --json an object a line.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Show what the nodes of a run logged and printed."""
    from .commands import logs as command

    command.logs(_place(context, store), run, node, attempt=attempt, follow=follow, as_json=as_json)


@app.command()
def audit(context: typer.Context, run: RunArgument, as_json: AsJson = False, store: Store = None) -> None:
    """Recompute every invariant of a run from its rows; exit code 1 if one of them does not hold."""
    from .commands import look as looking

    looking.audit(_place(context, store), run, as_json=as_json)


@app.command()
def checkpoints(
    context: typer.Context,
    run: RunArgument,
    at: Annotated[
        str | None, typer.Argument(metavar="[AT]", help="A label, a seq of the journal, or an idempotency key.")
    ] = None,
    as_json: AsJson = False,
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """List the checkpoints that bodies gave names to, or show how the run stood at one: state, frontier, effects."""
    from .commands.checkpoints import checkpoints as command

    command(_place(context, store, jobs), run, at, as_json=as_json)


@app.command()
def replay(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE", help="A run, or a cassette that `export` wrote.", autocompletion=complete_runs
        ),
    ],
    as_json: AsJson = False,
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """Run the bodies of a run again, answered from its record; exit code 1 if anything differs."""
    from .commands import replay as replaying

    replaying.replay(_place(context, store, jobs), what, as_json=as_json)


@app.command()
def export(
    context: typer.Context,
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
    store: Store = None,
) -> None:
    """Write what is recorded of a run into a file that can be replayed anywhere, without the secrets that its code names."""
    from .commands import replay as replaying

    replaying.export(_place(context, store, jobs), run, file, missing_code_ok=missing_code_ok)


@app.command()
def graph(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="TARGET|RUN",
            help="A workflow, or a run: drawn with the status of its nodes.",
            autocompletion=complete_targets_and_runs,
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
    from .commands import look as looking

    if mermaid + dot + frozen + as_json + (svg is not None) > 1:
        raise typer.BadParameter("only one of --mermaid, --dot, --svg, --frozen and --json can be chosen")
    if frozen:
        return looking.frozen(_place(context, store), what)
    if svg is not None:
        return looking.picture(_place(context, store), what, inputs or [], svg)
    looking.graph(_place(context, store), what, inputs or [], "json" if as_json else "dot" if dot else "mermaid")


@app.command()
def retry(
    context: typer.Context,
    run: RunArgument,
    accept: Accept = False,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    no_wait: NoWait = False,
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """Run again what did not complete of a failed, cancelled or paused run."""
    if _only_said(context, store, run, "retry", dry_run=dry_run, as_json=as_json):
        return
    from .commands import run as working

    working.retry(_place(context, store, jobs), run, accept=accept, wait=not no_wait)


@app.command()
def reattempt(
    context: typer.Context,
    run: RunArgument,
    node: NodeArgument,
    cascade: Annotated[bool, typer.Option("--cascade", help="Run again what completed below it, too.")] = False,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    no_wait: NoWait = False,
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """Run one node again that has ended, even one that completed, with what failed or was cancelled below it."""
    if _only_said(context, store, run, "reattempt", dry_run=dry_run, as_json=as_json, node=node, cascade=cascade):
        return
    from .commands import run as working

    working.reattempt(_place(context, store, jobs), run, node, cascade=cascade, wait=not no_wait)


@app.command()
def fork(
    context: typer.Context,
    run: RunArgument,
    at: At = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="Change one input; may be repeated."),
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run-id", metavar="ID", help="An id of your choice.")] = None,
    no_wait: NoWait = False,
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """Start a new run that begins with what another has done, and goes on with other input or code."""
    from .commands import run as working

    working.fork(_place(context, store, jobs), run, at, inputs or [], run_id=run_id, wait=not no_wait)


@app.command()
def diff(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="RUN1", help="A run.", autocompletion=complete_runs)],
    second: Annotated[str, typer.Argument(metavar="RUN2", help="Another.", autocompletion=complete_runs)],
    whole: Annotated[bool, typer.Option("--all", help="Every node, also those that do not differ.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Compare two runs: inputs, nodes, outputs, attempts and times; exit code 1 if outputs or deltas differ."""
    from .commands.diff import diff as command

    command(_place(context, store), first, second, whole=whole, as_json=as_json)


@app.command()
def pause(
    context: typer.Context,
    run: RunArgument,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    store: Store = None,
) -> None:
    """Start nothing more of a run until it is resumed; what runs may end."""
    if _only_said(context, store, run, "pause", dry_run=dry_run, as_json=as_json):
        return
    from .commands import steer as steering

    steering.pause(_place(context, store), run)


@app.command()
def resume(
    context: typer.Context,
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
    store: Store = None,
) -> None:
    """Go on with an unfinished run: one that is paused, or that another process left."""
    if _only_said(context, store, run, "resume", dry_run=dry_run, as_json=as_json):
        return
    from .commands import run as working

    working.resume(_place(context, store, jobs), run, inputs or [], accept=accept, wait=not no_wait)


@app.command()
def freeze(context: typer.Context, run: RunArgument, store: Store = None) -> None:
    """Have a run keep the graph it has: it no longer follows its class."""
    from .commands import steer as steering

    steering.freeze(_place(context, store), run)


@app.command("import")
def import_graph(
    context: typer.Context,
    run: RunArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `graph RUN --frozen` printed, edited; - reads stdin.")
    ],
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """Have a run go on with an edited graph; what has completed must stay as it was."""
    from .commands import steer as steering

    steering.import_graph(_place(context, store, jobs), run, file)


@app.command()
def work(
    context: typer.Context,
    modules: Annotated[list[str], typer.Argument(metavar="MODULE...", help="Modules that hold workflows and jobs.")],
    queues: Annotated[
        str | None, typer.Option("--queues", metavar="A,B", help="Take only nodes of these queues; by default all.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left that can be worked on here.")] = False,
    jobs: Jobs = None,
    store: Store = None,
) -> None:
    """Work on every unfinished run there is code for, until Ctrl-C."""
    from .commands import run as working

    working.work(_place(context, store, jobs), modules, queues=queues, once=once)


@app.command()
def cancel(
    context: typer.Context,
    run: RunArgument,
    grace: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", min=0, help="How long what runs may take to stop.")
    ] = 5.0,
    dry_run: DryRun = False,
    as_json: DryRunAsJson = False,
    store: Store = None,
) -> None:
    """Cancel a run: start nothing more, ask what runs to stop."""
    if _only_said(context, store, run, "cancel", dry_run=dry_run, as_json=as_json, grace=grace):
        return
    from .commands import clean as tidying

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
    from .commands import clean as tidying

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
        with asked_by_a_shell():
            app(prog_name="stepwell")
    except Exception as error:
        sys.exit(report(error))
    finally:
        # Python remembers a Ctrl-C that came while it ran text as code, as imports do, and would end by that signal whatever
        # the exit code. Running some makes it forget.
        exec("")
