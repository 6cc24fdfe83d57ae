"""The questions a store answers, on plain records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, assert_never

from ....base.ids import RunId
from ...model import Lane, Query, queries, records
from ...model.outputs import Completion
from ...model.rows import AttemptRow, GateState, JournalRow, LineRow, RunRow
from ...model.status import AttemptStatus, NodeStatus
from ..rules.filtering import counted, place_of, run_matches
from ..rules.paging import line_matches, page_of
from ..rules.payloads import error_type
from .records import answer_record
from .running import stops
from .state import MemoryState, RunState


def answer(state: MemoryState, query: Query) -> Any:
    if isinstance(query, queries.RunQuery):
        run = state.runs.get(query.run_id)
        return _of_nothing(query) if run is None else _of_run(run, query)
    match query:
        case queries.GetRun(run_id):
            run = state.runs.get(run_id)
            return None if run is None else run.row()
        case queries.ListRuns():
            return _runs(state, query)
        case queries.CountRuns():
            return counted((run.row() for run in reversed(state.runs.values())), query)
        case queries.ListEnded():
            return _ended(state, query)
        case queries.GetGraph(digest):
            graph = state.graphs.get(digest)
            return None if graph is None or not graph.complete else graph.document
        case queries.GetGraphAges(digests):
            return {digest: state.graphs[digest].age for digest in digests if digest in state.graphs}
        case queries.ListUnusedGraphs(after, limit, before):
            old = [graph for graph in state.graphs.values() if before is None or graph.stored_at < before]
            unused = ((g.digest, g.workflow) for g in old if g.digest > (after or "") and not state.uses(g.digest))
            return page_of(sorted(unused), limit, itemgetter(0))
        case queries.ListWorkers(after, limit):
            ordered = sorted(state.workers.values(), key=lambda worker: worker.id)
            later = (worker.row() for worker in ordered if after is None or worker.id > after)
            return page_of(later, limit, attrgetter("id"))
        case queries.ListStops(worker, limit):
            return queries.Page(stops(state, worker)[:limit])
        case queries.ListReady():
            return _ready(state, query)
        case queries.ListUnfinished(last, limit):
            found = {
                queries.Unfinished(run.created.workflow, run.created.target, run.graph.digest)
                for run in state.runs.values()
                if not run.status.terminal
            }
            left = [item for item in found if last is None or _order(item) > _order(last)]
            return page_of(sorted(left, key=_order), limit, tuple)
        case records.GetRecord() | records.ListRecords():
            return answer_record(state.records, query)
        case _:
            assert_never(query)


def _of_nothing(query: queries.RunQuery) -> Any:
    match query:
        case queries.CountNodes():
            return {}
        case queries.GetNodeColumns():
            return queries.NodeColumns()
        case queries.GetAttemptColumns():
            return queries.AttemptColumns()
        case _:
            return queries.Page()


def _of_run(run: RunState, query: queries.RunQuery) -> Any:
    match query:
        case queries.ListNodes(_, after, limit, statuses, indexes):
            nodes = (
                node
                for node in run.nodes
                if node.index > after
                and (not statuses or node.status in statuses)
                and (indexes is None or node.index in indexes)
            )
            return page_of((node.row() for node in nodes), limit, attrgetter("index"))
        case queries.ListAttempts():
            return _attempts(run, query)
        case queries.GetNodeColumns(_, after, limit):
            rows = [node.row() for node in run.nodes if node.index > after][: max(0, limit)]
            cursor = rows[-1].index if 0 < len(rows) == limit else None
            columns = (tuple(map(attrgetter(name), rows)) for name in ("index", "id", "status", "reason"))
            return queries.NodeColumns._make((run.seq, *columns, cursor))
        case queries.GetAttemptColumns():
            return _attempt_columns(run, query)
        case queries.GetOutputs(_, indexes, after, limit):
            completed = (
                (attempt.index, Completion(attempt.number, attempt.output or b""))
                for attempt in sorted(run.attempts, key=lambda attempt: attempt.index)
                if attempt.status is AttemptStatus.COMPLETED and (indexes is None or attempt.index in indexes)
            )
            return page_of((each for each in completed if each[0] > after), limit, itemgetter(0))
        case queries.ListJournal():
            return _journal(run, query)
        case queries.ListLines() | queries.ListMarks():
            wanted = _in_order((line for line in run.lines.values() if line_matches(line, query)), run)
            backwards = isinstance(query, queries.ListLines) and query.newest_first
            left = _earlier(wanted, query.after, run) if backwards else _later(wanted, query.after, run)
            return page_of(left, query.limit, lambda line: (line.attempt, line.index))
        case queries.CountNodes():
            return dict(Counter(node.status for node in run.nodes))
        case _:
            assert_never(query)


def _order(item: tuple[str, str | None, str]) -> tuple[str, str, str]:
    workflow, target, digest = item
    return workflow, target or "", digest


def _attempts(run: RunState, query: queries.ListAttempts) -> queries.Page[AttemptRow]:
    rows = sorted(run.attempts, key=lambda attempt: (attempt.index, attempt.number))
    wanted = (
        attempt.row()
        for attempt in rows
        if (attempt.index, attempt.number) > query.after and (query.index is None or attempt.index == query.index)
    )
    return page_of(wanted, query.limit, attrgetter("index", "number"))


def _attempt_columns(run: RunState, query: queries.GetAttemptColumns) -> queries.AttemptColumns:
    rows = sorted(run.attempts, key=lambda attempt: (attempt.index, attempt.number))
    wanted = (
        attempt
        for attempt in rows
        if (attempt.index, attempt.number) > query.after and (query.indexes is None or attempt.index in query.indexes)
    )
    page = page_of(wanted, query.limit, attrgetter("index", "number"))
    names = ("index", "number", "status", "started_at", "ended_at")
    columns = (tuple(map(attrgetter(name), page)) for name in names)
    workers = tuple(attempt.worker for attempt in page) if query.details else ()
    errors = tuple(error_type(attempt.error) for attempt in page) if query.details else ()
    return queries.AttemptColumns._make((run.seq, *columns, workers, errors, page.cursor))


def _journal(run: RunState, query: queries.ListJournal) -> queries.Page[JournalRow]:
    indexes = None if query.indexes is None else set(query.indexes)
    wanted = (
        entry
        for entry in islice(run.journal, query.after, None)
        if (not query.kinds or entry.kind in query.kinds) and (indexes is None or entry.index in indexes)
    )
    return page_of(wanted, query.limit, attrgetter("seq"))


def _in_order(lines: Iterable[LineRow], run: RunState) -> list[LineRow]:
    """In the order of claims, which is that of the attempts, not of their ids: a worker's clock may be wrong."""
    order = _claimed(run)
    return sorted(lines, key=lambda line: (order[line.attempt], line.index))


def _later(lines: Iterable[LineRow], after: tuple[str, int] | None, run: RunState) -> Iterable[LineRow]:
    if after is None:
        return lines
    order = _claimed(run)
    place = (order.get(after[0], -1), after[1])
    return (line for line in lines if (order[line.attempt], line.index) > place)


def _earlier(lines: Sequence[LineRow], before: tuple[str, int] | None, run: RunState) -> Iterable[LineRow]:
    """The newest of them first."""
    if before is None:
        return reversed(lines)
    order = _claimed(run)
    place = (order.get(before[0], len(order)), before[1])
    return (line for line in reversed(lines) if (order[line.attempt], line.index) < place)


def _claimed(run: RunState) -> dict[str, int]:
    return {attempt.id: place for place, attempt in enumerate(run.attempts)}


def _runs(state: MemoryState, query: queries.ListRuns) -> queries.RunPage:
    rows = [(run.row(), run.admission) for run in state.runs.values()]
    found = [((place_of(row, query.order) or 0, number), row) for row, number in rows if run_matches(row, query)]
    found = sorted((each for each in found if query.before is None or each[0] < query.before), reverse=True)
    page = found[: query.limit]
    return queries.RunPage(tuple(row for _, row in page), page[-1][0] if len(found) > len(page) else None)


def _ended(state: MemoryState, query: queries.ListEnded) -> queries.Page[RunRow]:
    found = sorted(
        (run.ended_at, run.admission, run)
        for run in state.runs.values()
        if run.ended_at is not None
        and run.ended_at >= query.since
        and (query.workflow is None or run.created.workflow == query.workflow)
        and (not query.statuses or run.status in query.statuses)
    )
    page = page_of(
        (each for each in found if query.after is None or each[:2] > query.after), query.limit, itemgetter(0, 1)
    )
    return queries.Page((run.row() for _, _, run in page), page.cursor)


def _ready(state: MemoryState, query: queries.ListReady) -> tuple[RunId, ...]:
    wanted = [
        run
        for run in state.runs.values()
        if (run.id in query.runs or (run.created.workflow, run.graph.digest) in query.serves)
        and _has_ready(run, query.lanes)
    ]
    return tuple(
        run.id for run in sorted(wanted, key=lambda run: (-run.created.priority, run.admission))[: query.limit]
    )


def _has_ready(run: RunState, lanes: Container[Lane]) -> bool:
    return run.gate is GateState.OPEN and any(
        node.status is NodeStatus.READY and node.lane in lanes for node in run.nodes
    )
