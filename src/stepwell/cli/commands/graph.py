"""`stepwell graph`: the graph of a workflow or of a run, drawn or as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from ...base.clock import SECOND
from ...core.graph import Graph, to_dot, to_frozen, to_mermaid
from ...core.store import reader
from ...engine.code.graphs import load_outline
from ...engine.reports.graphs import grouping_of, run_graph, workflow_graph
from ...engine.reports.grouping import Grouping
from ...engine.runs.stored import StoredRun
from ...errors import DefinitionError, InputError
from ..connect import Connection
from ..documents import Pairs, is_file, load_file, stored_document
from ..find import find_run
from ..show.words import count
from ..streams import json_text, results, say

if TYPE_CHECKING:
    from ...answers.graphs import GraphRecord


def graph(
    connection: Connection,
    what: str,
    *,
    mermaid: bool,
    dot: bool,
    frozen: bool,
    svg: str | None,
    as_json: bool,
    open_group: Sequence[str] | None,
    at: int | None,
    inputs: Pairs,
) -> None:
    if mermaid + dot + frozen + as_json + (svg is not None) > 1:
        raise typer.BadParameter("only one of --mermaid, --dot, --svg, --frozen and --json can be chosen")
    if frozen:
        with connection.store() as store:
            run = StoredRun(store, find_run(store, what))
            return say(json_text(to_frozen(run.graph, run.row.created_at / SECOND)))
    if not as_json and (open_group or at is not None):
        raise typer.BadParameter("--open and --at go with --json: what is drawn has every node as it is now")
    workflow, no_target = _workflow(connection, what, inputs)
    if workflow is not None:
        if at is not None:
            raise InputError(f"--at {at} is for runs: {what} is a workflow")
        record = partial(_record, *workflow, open_group or ())
        return _show(what, workflow.graph, None, record if as_json else None, svg=svg, dot=dot)
    with connection.store() as store:
        if no_target is not None and reader.get_run(store, what) is None:
            raise no_target
        stored = stored_document(connection, store, what)
        if stored is not None:
            record = partial(_record, stored.name, stored.graph, open_group or ())
            return _show(what, stored.graph, None, record if as_json else None, svg=svg, dot=dot)
        run = StoredRun(store, find_run(store, what))
        if as_json:
            find = lambda digest, run_id: Grouping(load_outline(store, digest, run_id))  # noqa: E731
            return say(json_text(run_graph(run, find, open_group or (), at)))
        _show(what, *run.present_graph(), None, svg=svg, dot=dot)


def _record(name: str, graph: Graph, open_groups: Sequence[str]) -> GraphRecord:
    return workflow_graph(name, graph.digest, grouping_of(graph), open_groups)


def _show(
    what: str,
    graph: Graph,
    statuses: Mapping[str, str] | None,
    record: Callable[[], GraphRecord] | None,
    *,
    svg: str | None,
    dot: bool,
) -> None:
    if record is not None:
        say(json_text(record()))
    elif svg is not None:
        _draw(what, graph, statuses, svg)
    else:
        say((to_dot if dot else to_mermaid)(graph, statuses), end="")


class _NamedGraph(NamedTuple):
    name: str
    graph: Graph


def _draw(what: str, graph: Graph, statuses: Mapping[str, str] | None, file: str) -> None:
    """An SVG into a file; `-` is stdout."""
    from ...core.graph.svg import MAX_SVG_NODES, to_svg

    if len(graph) > MAX_SVG_NODES:
        raise InputError(
            f"{what} has {len(graph):,} nodes, and a picture of more than {MAX_SVG_NODES:,} cannot be read; `stepwell show` "
            f"folds what is alike, `--json` has it in groups, `--dot` one by one"
        )
    drawn = to_svg(graph, statuses).encode()
    if file == "-":
        results().buffer.write(drawn)  # whatever encoding stdout has: SVG is UTF-8
        results().flush()
        return
    try:
        Path(file).write_bytes(drawn)
    except OSError as error:
        raise InputError(f"--svg {file}: it cannot be written: {error.strerror or error}") from None
    typer.echo(f"drew {count(len(graph), 'node')} into {file}", err=True)


def _workflow(connection: Connection, what: str, pairs: Pairs) -> tuple[_NamedGraph | None, DefinitionError | None]:
    """A workflow that is named by its file or target. A run id may contain a colon, like a target, so what cannot be imported
    may still be a run."""
    if is_file(what):
        document = load_file(connection, what)
        return _NamedGraph(document.name, document.graph), None
    if ":" in what:
        from ..inputs import graph_of_target

        try:
            return _NamedGraph(*graph_of_target(what, pairs)), None
        except DefinitionError as error:
            return None, error
    return None, None
