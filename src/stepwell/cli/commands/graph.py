"""`stepwell graph`: the graph of a workflow or of a run, drawn or as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from ...base.clock import SECOND
from ...core.graph import Graph, to_dot, to_frozen, to_mermaid
from ...core.model import NodeStatus
from ...core.store import reader
from ...engine.runs.records import graph_record
from ...engine.runs.stored import StoredRun
from ...errors import DefinitionError, InputError
from ..connect import Connection
from ..documents import Pairs, is_file, load_file, stored_document
from ..find import find_run
from ..show.words import count
from ..streams import json_text, results, say


def graph(
    connection: Connection,
    what: str,
    *,
    mermaid: bool,
    dot: bool,
    frozen: bool,
    svg: str | None,
    as_json: bool,
    inputs: Pairs,
) -> None:
    if mermaid + dot + frozen + as_json + (svg is not None) > 1:
        raise typer.BadParameter("only one of --mermaid, --dot, --svg, --frozen and --json can be chosen")
    if frozen:
        with connection.store() as store:
            run = StoredRun(store, find_run(store, what))
            return say(json_text(to_frozen(run.graph, run.row.created_at / SECOND)))
    workflow, found, statuses = _graph(connection, what, inputs)
    if svg is not None:
        _draw(what, found, statuses, svg)
    elif as_json:
        say(json_text(graph_record(workflow, found, statuses)))
    else:
        say((to_dot if dot else to_mermaid)(found, statuses), end="")


def _draw(what: str, found: Graph, statuses: Mapping[str, str] | None, file: str) -> None:
    """An SVG into a file; `-` is stdout."""
    from ...core.graph.svg import MAX_SVG_NODES, to_svg

    if len(found) > MAX_SVG_NODES:
        raise InputError(
            f"{what} has {len(found):,} nodes, and a picture of more than {MAX_SVG_NODES:,} cannot be read; `stepwell show` "
            f"folds what is alike, `--dot` and `--json` are for programs that draw large graphs"
        )
    drawn = to_svg(found, statuses).encode()
    if file == "-":
        results().buffer.write(drawn)  # whatever encoding stdout has: SVG is UTF-8
        results().flush()
        return
    try:
        Path(file).write_bytes(drawn)
    except OSError as error:
        raise InputError(f"--svg {file}: it cannot be written: {error.strerror or error}") from None
    typer.echo(f"drew {count(len(found), 'node')} into {file}", err=True)


def _graph(connection: Connection, what: str, pairs: Pairs) -> tuple[str, Graph, Mapping[str, NodeStatus] | None]:
    """A run id may contain a colon, like a target, so what cannot be imported may still be a run."""
    no_target: DefinitionError | None = None
    if is_file(what):
        document = load_file(connection, what)
        return document.name, document.graph, None
    if ":" in what:
        from ..inputs import graph_of_target

        try:
            return *graph_of_target(what, pairs), None
        except DefinitionError as error:
            no_target = error
    with connection.store() as store:
        if no_target is not None and reader.get_run(store, what) is None:
            raise no_target
        stored = stored_document(connection, store, what)
        if stored is not None:
            return stored.name, stored.graph, None
        run = StoredRun(store, find_run(store, what))
        return run.row.workflow, *run.present_graph()
