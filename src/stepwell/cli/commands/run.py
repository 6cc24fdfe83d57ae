"""The commands that run bodies: run, retry, reattempt, fork, resume, work."""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from ...core.model import ACTIVE_NODES, UNPAUSED_RUNS, GetRun, ListJournal, RunRow
from ...core.model.origin import origin_of
from ...core.store import reader
from ...define import Builder, Workflow
from ...define.document import Document
from ...engine import Engine, Run
from ...engine.events import RunEvent
from ...engine.runs.stored import StoredRun
from ...errors import (
    DefinitionError,
    InputError,
    RunCancelled,
    RunConflict,
    RunFailed,
    RunPaused,
    StoreError,
)
from ..connect import Connection
from ..documents import Pairs, is_file, load_file, names_document, typed_input
from ..exits import ExitCode, complain, report
from ..find import find_fork_point, find_node, find_run, tag_of
from ..inputs import changed_input, import_module, make_startable, workflows_in
from ..show.advice import advise, advised, next_steps
from ..show.words import count, duration, one_line, plain
from ..streams import say

if TYPE_CHECKING:
    from ...client import Client

LINES_AT_ONCE = 20
"""Ended runs that get a line each; the others are counted."""
STOPPING = "stopping: what runs may end within 10 s; Ctrl-C again leaves it to others"


def run(
    connection: Connection,
    target: str,
    *,
    inputs: Pairs,
    input_file: str | None,
    key: str | None,
    tag: Sequence[str] | None,
    **options: Any,
) -> None:
    options["tags"] = dict(map(tag_of, tag or ()))
    workflow: Workflow | Builder | Document | str | None = None
    if is_file(target):
        workflow = load_file(connection, target)
    elif not names_document(target):
        workflow = make_startable(target, inputs, input_file)
    with _kept(connection) as begun, connection.worker() as engine:
        if workflow is None and (schema := _class_of_server(connection, target)) is not None:
            workflow, options["input"] = target, typed_input(schema, inputs, input_file)
        elif workflow is None:
            workflow = engine.parts.documents.find(target)
        if isinstance(workflow, Document):
            options["input"] = typed_input(workflow.input, inputs, input_file)
        started = engine.start(workflow, idempotency_key=key, **options)
        begun.append(started.id)
        _work_to_the_end(connection, engine, started.row)


def _class_of_server(connection: Connection, name: str) -> Mapping[str, Any] | None:
    """The input schema of a class that the server's workers have; None if they have no class of this name."""
    if connection.transport is None:
        return None
    from ...client.transport import path_of

    try:
        record = connection.transport.get(path_of("workflows", name))
    except InputError:
        return None
    return record["input"] or {} if record["kind"] == "class" else None


@advised
def retry(connection: Connection, text: str, *, inputs: Pairs, accept: bool, no_wait: bool) -> None:
    with connection.store() as store:
        row = find_run(store, text)
        given = _changes(connection, connection.engine(store), row, inputs) if inputs else {}
    _go_on(
        connection, lambda engine: engine.get(row.id).retry(accept=accept, input=given), run_id=row.id, wait=not no_wait
    )


@advised
def reattempt(connection: Connection, text: str, node: str, *, cascade: bool, no_wait: bool) -> None:
    with connection.store() as store:
        row = find_run(store, text)
        find_node(connection.engine(store).get(row.id)._stored, node)
    _go_on(
        connection, lambda engine: engine.get(row.id).reattempt(node, cascade=cascade), run_id=row.id, wait=not no_wait
    )


@advised
def fork(
    connection: Connection, text: str, *, at: str | None, inputs: Pairs, run_id: str | None, no_wait: bool
) -> None:
    """A new run that begins with what another has done."""
    with connection.store() as store:
        row = find_run(store, text)
        engine = connection.engine(store)
        run = engine.get(row.id)
        where = find_fork_point(run, at)
        changes = _changes(connection, engine, row, inputs) if inputs else {}

    def begin(engine: Engine | Client) -> Run:
        made = engine.get(row.id).fork(where, input=changes, run_id=run_id)
        shared = sum(1 for _ in reader.rows(engine.store, ListJournal(made.id, kinds=("shared",))))
        nodes = count(len(made.graph), "node")
        typer.echo(f"forked from {origin_of(made.row)}: {shared:,} of {nodes} shared", err=True)
        return made

    _go_on(connection, begin, run_id=None, wait=not no_wait, status="{}")


def _changes(connection: Connection, engine: Engine | Client, row: RunRow, inputs: Pairs) -> dict[str, Any]:
    """The input values that `--input` changes."""
    source = engine.parts.code.graphs.of(row).source
    if source is not None:
        return typed_input(source.input, inputs, None)
    schema = _class_of_server(connection, row.workflow)
    if schema is not None:
        return typed_input(schema, inputs, None)
    return changed_input(row.id, engine.parts.code.target_of(row), inputs)


@advised
def resume(connection: Connection, text: str, *, inputs: Pairs, accept: bool, no_wait: bool) -> None:
    """Un-pause a paused run, and work on any that has not ended."""
    with connection.store() as store:
        row = find_run(store, text)
        given = _changes(connection, connection.engine(store), row, inputs) if inputs else {}
    if row.status.terminal:
        raise RunConflict(f"run {row.id} is {row.status}: there is nothing to resume", run_id=row.id)
    if no_wait and not row.status.paused and not given:
        say(f"run {row.id} is {row.status}: nothing needs to be recorded for it to go on, it only needs a worker")
        say(f"  {connection.command(f'resume {row.id}')}    or, for all runs, {connection.command('work MODULE')}")
        return
    _go_on(connection, lambda engine: _resumed(engine, row, given, accept=accept), run_id=row.id, wait=not no_wait)


def _resumed(engine: Engine | Client, row: RunRow, given: Mapping[str, Any], *, accept: bool) -> Run:
    run = engine.get(row.id)
    if not row.status.paused and not given:
        try:
            return engine.adopt(row.id)
        except RunConflict:  # its class has changed, and the run is paused because a node may have been renamed
            if not accept or not run.status.paused:
                raise
    return run.resume(accept=accept, input=given)


def _go_on(
    connection: Connection,
    ask: Callable[[Engine | Client], Run],
    *,
    run_id: str | None,
    wait: bool,
    status: str = "{} again",
) -> None:
    """Continue a run: work on it here to its end, or only record the request. `run_id` is None if `ask` makes the run."""
    if wait:
        with _kept(connection, run_id) as begun, connection.worker(pipelines=NamedPipelines(connection)) as engine:
            run = ask(engine)
            begun[:] = [run.id]
            _work_to_the_end(connection, engine, run.row)
        return
    with connection.store() as store:
        now = ask(connection.engine(store)).row
    say(f"run {now.id} is {status.format(now.status)}: {count(now.open, 'node')} to run, when somebody works on it")
    say(f"  {connection.command(f'resume {now.id}')}")


def work(connection: Connection, modules: Sequence[str] | None, *, queues: str | None, once: bool) -> None:
    taken = None if queues is None else [name.strip() for name in queues.split(",")]
    modules = modules or ()
    workflows = import_all(modules)
    ended: queue.SimpleQueue[RunEvent] = queue.SimpleQueue()
    with _terminated_as_interrupted(), connection.own_worker(modules, taken, NamedPipelines(connection)) as engine:
        engine.on("run", lambda event: ended.put(event) if event.status.terminal else None)
        try:
            engine.work(workflows, wait=0)
            _say_what_is_served(engine, once=once)
            while True:
                # Asked first, so that runs that end meanwhile are still reported.
                left = not once or _anything_left(engine, taken)
                _say_what_ended(engine, ended)
                if not left:
                    break
                engine.parts.work.check_works()
                time.sleep(0.1)
        except KeyboardInterrupt:
            _say_what_ended(engine, ended)
            typer.echo(STOPPING, err=True)


def _work_to_the_end(connection: Connection, engine: Engine | Client, row: RunRow) -> None:
    """Show progress, then how the run ended; every status but COMPLETED has an exit code. On Ctrl-C, running bodies may end."""
    nodes = count(len(engine.parts.code.graphs.of(row)), "node")
    try:
        typer.echo(f"{typer.style(plain(row.workflow), bold=True)}  {nodes}  run {row.id}", err=True)
        from ..show.progress import Lines, follow
        from ..show.summary import print_end, print_result

        if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            from ..show.bar import Bar

            follow(engine, row, Bar())
        else:
            follow(engine, row, Lines())
    except KeyboardInterrupt:
        typer.echo(STOPPING, err=True)
        engine.close()
        raise
    ended = StoredRun(engine.store, reader.require_run(engine.store, row.id))
    print_end(ended)
    try:
        engine.get(row.id).check()
    except RunPaused as paused:
        complain(f"run {row.id} is paused: {paused.told}")
        advice, code = {**next_steps(ended.row), f"why {row.id}": "says more"}, ExitCode.CONFLICT
    except RunFailed as error:
        # The advice about a missing job is on lines of its own.
        complain(error.told if error.error_type.endswith("MissingJob") else one_line(error.told))
        advice = {f"show {row.id} --traceback": "shows where", f"retry {row.id}": "runs only what did not complete"}
        code = ExitCode.RUN_FAILED
    except RunCancelled:
        complain(f"run {row.id} was cancelled")
        advice, code = {f"retry {row.id}": "runs what did not complete"}, ExitCode.CANCELLED
    else:
        return print_result(ended)
    advise(connection, advice)
    raise typer.Exit(code)


@contextmanager
def _kept(connection: Connection, run_id: str | None = None) -> Iterator[list[str]]:
    """When work ends early, say that the run is kept and how to continue it. A run that was there before is named at once: its
    bodies may run before `ask` has returned."""
    begun = [] if run_id is None else [run_id]
    try:
        with _terminated_as_interrupted():
            yield begun
    except StoreError as error:
        code = report(error)
        if begun:
            advise(connection, {f"resume {begun[0]}": "goes on when the store can be used again"})
        raise typer.Exit(code) from None
    except KeyboardInterrupt:
        if not begun:
            typer.echo("\ninterrupted before the run began", err=True)
        elif _completed_after_all(connection, begun[0]):
            return
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _completed_after_all(connection: Connection, run_id: str) -> bool:
    """Whether an interrupted run has completed: then its result is shown as usual. Else say how to continue it."""
    from ..show.summary import print_end, print_result

    with connection.store() as store:
        row = reader.get_run(store, run_id)
        if row is not None and row.status.completed:
            ended = StoredRun(store, row)
            print_end(ended)
            print_result(ended)
            return True
    typer.echo(f"\ninterrupted: run {run_id} is kept, with all that is completed", err=True)
    # It may have FAILED, by a node that must not run twice.
    has_ended = row is not None and row.status.terminal
    advise(connection, next_steps(row) if row and has_ended else {f"resume {run_id}": "goes on from there"})
    return False


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Make SIGTERM, as service managers send it, end work like Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def import_all(modules: Sequence[str]) -> list[type[Workflow]]:
    """Imports the modules and gives their workflows. Of several broken modules the last is raised, the others are reported."""
    broken: list[DefinitionError] = []
    workflows: dict[type[Workflow], None] = {}
    for module in modules:
        try:
            if ":" in module:
                alone = f"`stepwell work {module.partition(':')[0]}`"
                raise DefinitionError(f"{module}: give the module only, as in {alone}; all in it is served")
            workflows |= dict.fromkeys(workflows_in(import_module(module)))
        except DefinitionError as error:
            broken.append(error)
    for trouble in broken[:-1]:
        report(trouble)
    if broken:
        raise broken[-1]
    return list(workflows)


class NamedPipelines:
    """The pipelines of the settings. They are loaded when the engine first works on a run of a pipeline."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[Any]:
        if self._connection.settings.pipelines:
            from .pipeline import find_pipelines

            yield from find_pipelines(self._connection, None)


def _say_what_is_served(engine: Engine, *, once: bool) -> None:
    end = "until nothing is left" if once else "until Ctrl-C"
    typer.echo(f"serving {engine.store.url} {end}", err=True)
    with suppress(StoreError):  # the engine warns of a store that is away, and goes on
        for needed in reader.list_unfinished(engine.store):
            if engine.parts.serving.can_serve(needed) is False:
                reason, *_ = (engine.parts.serving.why_not(needed) or "some of its nodes have no code here").split("\n")
                typer.echo(f"not served: {plain(f'{needed.workflow}: {reason}')}", err=True)


def _anything_left(engine: Engine, queues: Sequence[str] | None) -> bool:
    """Whether there are runs to work on here, or the store cannot say. With `queues`, nodes of other queues do not count."""
    try:
        for needed in reader.list_unfinished(engine.store):
            if engine.parts.serving.can_serve(needed) is not False:
                for run in reader.all_runs(
                    engine.store, *UNPAUSED_RUNS, workflow=needed.workflow, digest=needed.digest
                ):
                    active = reader.all_nodes(engine.store, run.id, *ACTIVE_NODES)
                    if queues is None or any(node.lane.queue in queues for node in active):
                        return True
    except StoreError:
        return True
    return False


def _say_what_ended(engine: Engine, ended: queue.SimpleQueue[RunEvent]) -> None:
    events: list[RunEvent] = []
    engine.parts.listeners.wait_until_heard()
    while not ended.empty():
        events.append(ended.get())
    shown = events[:LINES_AT_ONCE]
    rows: list[RunRow | None] = [None] * len(shown)
    with suppress(StoreError):  # it is away: then a line has only what the event says
        rows = engine.store.read([GetRun(event.run_id) for event in shown])
    for event, row in zip(shown, rows, strict=True):
        more = "" if row is None else f"  {plain(row.workflow)}  {duration(StoredRun(engine.store, row).seconds)}"
        say(f"{event.status:<9}  {event.run_id}{more}")
    if len(events) > LINES_AT_ONCE:
        counted: Counter[Any] = Counter(event.status for event in events[LINES_AT_ONCE:])
        say(f"and {', '.join(f'{number:,} {status}' for status, number in counted.items())}")
