"""Typed questions to any store, written once on top of its one door."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, cast

from ...base.ids import Digest, RunId
from ...base.words import shown
from ...errors import InputError, RunNotFound
from ..model import (
    INTERNAL_WORKFLOW,
    AttemptColumns,
    AttemptRow,
    CountedRuns,
    CountNodes,
    CountRuns,
    GetAttemptColumns,
    GetGraph,
    GetGraphAges,
    GetNodeColumns,
    GetOutputs,
    GetRecord,
    GetRun,
    JournalRow,
    LineRow,
    ListAttempts,
    ListJournal,
    ListLines,
    ListMarks,
    ListNodes,
    ListRecords,
    ListRuns,
    ListUnfinished,
    ListUnusedGraphs,
    ListWorkers,
    NodeColumns,
    NodeRow,
    NodeStatus,
    Query,
    RecordRow,
    RunPage,
    RunRow,
    RunStatus,
    Unfinished,
    WorkerRow,
)
from ..model.origin import is_origin
from ..model.outputs import Completion, output_of
from .port import Store
from .rules.filtering import key_of, run_matches

SETTLED_AFTER = 5
"""How often a run that moves meanwhile is read again, by those who need all of it at one moment."""
_INTERNAL_RUNS = 10_000
"""Internal runs that are left out of counts at most: they are deleted after a day."""


def rows(store: Store, query: Any) -> Iterator[Any]:
    """All that a list query finds, page by page."""
    while True:
        (page,) = store.read([query])
        yield from page
        if page.cursor is None:
            return
        query = query._replace(after=page.cursor)


def get_run(store: Store, run_id: str) -> RunRow | None:
    if not run_id.isprintable():  # half of a character, which no store could be asked for
        return None
    return cast("RunRow | None", store.read([GetRun(RunId(run_id))])[0])


def require_run(store: Store, run_id: str) -> RunRow:
    check_run_id(run_id)
    row = get_run(store, run_id)
    if row is None:
        raise RunNotFound(run_id, store=store.url)
    return row


def at_one_moment(store: Store, run_id: RunId, *queries: Query) -> list[Any]:
    """The run, and the answers to other queries about it; RunNotFound if there is no such run."""
    found = store.read([GetRun(run_id), *queries])
    if found[0] is None:
        raise RunNotFound(run_id, store=store.url)
    return found


def whole_at_one_moment(store: Store, run_id: RunId, *queries: Query) -> list[Any]:
    """The same with all pages. They are read after the first, and all of it again if the run has moved meanwhile."""
    for _ in range(SETTLED_AFTER):
        row, *pages = at_one_moment(store, run_id, *queries)
        if all(getattr(page, "cursor", None) is None for page in pages):
            return [row, *pages]
        whole: list[Any] = []
        for page, query in zip(pages, cast("tuple[Any, ...]", queries), strict=True):
            more = getattr(page, "cursor", None)
            whole.append(page if more is None else (*page, *rows(store, query._replace(after=more))))
        again = get_run(store, run_id)
        if again is None or again.seq == row.seq:
            break
    return [row, *whole]


def check_run_id(run_id: object) -> None:
    """Refuse what cannot be the id of a run before a store is asked for it."""
    if not isinstance(run_id, str):
        raise InputError(f"{shown(run_id)} is no id of a run, which is a text")


def list_runs(store: Store, query: ListRuns) -> RunPage:
    """A page of runs. Internal ones are only on it if their workflow is asked for; others take their places."""
    if not _may_find(query):
        return RunPage((), None)
    page = cast(RunPage, store.read([query])[0])
    runs = without_internal(page.runs, query.workflow)
    missing = len(page.runs) - len(runs)
    while missing and page.cursor is not None:
        page = cast(RunPage, store.read([query._replace(before=page.cursor, limit=missing)])[0])
        more = without_internal(page.runs, query.workflow)
        missing = len(page.runs) - len(more)
        runs += more
    return RunPage(runs, page.cursor)


def without_internal(rows: Iterable[RunRow], workflow: str | None = None) -> tuple[RunRow, ...]:
    """Runs without internal ones, unless these were asked for by the name of their workflow."""
    return tuple(row for row in rows if workflow is not None or row.workflow != INTERNAL_WORKFLOW)


def _may_find(query: ListRuns) -> bool:
    """Whether the names are some that a workflow or run can have; some stores cannot be asked for others."""
    names = (query.workflow, query.prefix, query.origin, query.text, query.error)
    return "".join(name or "" for name in names).isprintable()


def count_runs(store: Store, *queries: CountRuns) -> list[CountedRuns]:
    """How many runs there are, without internal ones, unless their workflow is asked for."""
    if not all(_may_find(query.runs) for query in queries):
        return [CountedRuns()] * len(queries)
    # These are few: they are read, so that no store has to leave them out of what it counts.
    *counts, internal = store.read([*queries, ListRuns(_INTERNAL_RUNS, workflow=INTERNAL_WORKFLOW)])
    return [_without(counted, query, internal.runs) for counted, query in zip(counts, queries, strict=True)]


def _without(counts: CountedRuns, query: CountRuns, internal: Iterable[RunRow]) -> CountedRuns:
    if query.runs.workflow is not None:
        return counts
    left = Counter(dict(counts.counts))
    left.subtract(key_of(row, query.by) for row in internal if run_matches(row, query.runs))
    return counts._replace(counts=tuple((key, count) for key, count in sorted(left.items()) if count > 0))


def all_runs(
    store: Store,
    *statuses: RunStatus,
    workflow: str | None = None,
    digest: Digest | None = None,
    origin: RunId | None = None,
    prefix: str | None = None,
    ended_before: int | None = None,
    limit: int = 100,
) -> Iterator[RunRow]:
    """Every run, or every one like that, newest first, page by page."""
    before: tuple[int, int] | None = None
    while True:
        query = ListRuns(limit, before, workflow, statuses, ended_before, digest, origin, prefix)
        page = list_runs(store, query)
        yield from page.runs
        if page.cursor is None:
            return
        before = page.cursor


def forks(store: Store, row: RunRow) -> Iterator[RunRow]:
    """The runs that were forked from this one, newest first; not those of a run that had its id before."""
    return (fork for fork in all_runs(store, origin=row.id) if is_origin(row, fork))


def all_nodes(store: Store, run_id: str, *statuses: NodeStatus) -> list[NodeRow]:
    return list(rows(store, ListNodes(RunId(run_id), statuses=statuses)))


def get_node(store: Store, run_id: str, index: int) -> NodeRow:
    """One node of a run that exists."""
    page = cast("tuple[NodeRow, ...]", store.read([ListNodes(RunId(run_id), index - 1, 1)])[0])
    if not page:
        raise RunNotFound(run_id, store=store.url)
    return page[0]


def list_attempts(store: Store, run_id: str, index: int | None = None) -> list[AttemptRow]:
    return list(each_attempt(store, run_id, index))


def each_attempt(
    store: Store, run_id: str, index: int | None = None, limit: int = ListAttempts(RunId("")).limit
) -> Iterator[AttemptRow]:
    """So many at a time: their outputs need not all be held at once."""
    return rows(store, ListAttempts(RunId(run_id), index, limit=limit))


def get_columns(store: Store, run_id: str, limit: int = 10_000) -> tuple[RunRow, NodeColumns, AttemptColumns]:
    """A run, its nodes and its attempts at one moment, unless it never rests; raises RunNotFound."""
    asked = RunId(run_id)
    for _ in range(SETTLED_AFTER):
        row = require_run(store, run_id)
        moments: set[int] = set()
        nodes = joined(_columns(store, GetNodeColumns(asked, limit=limit), moments))
        attempts = joined(_columns(store, GetAttemptColumns(asked, limit=limit), moments))
        if moments == {row.seq}:
            break
    return row, nodes, attempts


def _columns(store: Store, query: GetNodeColumns | GetAttemptColumns, moments: set[int]) -> Iterator[Any]:
    """The pages; adds the moments at which they were read."""
    while True:
        (page,) = store.read([query])
        moments.add(page.seq)
        yield page
        if page.cursor is None:
            return
        query = query._replace(after=page.cursor)


_NUMBERS = frozenset({"indexes", "numbers", "started"})


def joined(pages: Iterable[Any]) -> Any:
    """All pages of columns in one; columns of numbers as arrays, which take a fifth of the memory. No page is kept."""
    columns: dict[str, Any] = {}
    page = None
    for page in pages:
        for name in page._fields[1:-1]:
            values = columns.setdefault(name, array("q") if name in _NUMBERS else [])
            values.extend(getattr(page, name))
    assert page is not None
    whole = {name: values if name in _NUMBERS else tuple(values) for name, values in columns.items()}
    return page._replace(**whole)


def get_outputs(store: Store, run_id: str, indexes: tuple[int, ...] | None = None) -> dict[int, bytes]:
    """What completed nodes returned for others to use."""
    stored = get_stored_outputs(store, run_id, indexes)
    return {index: output_of(output) for index, output in stored.items()}


def get_stored_outputs(store: Store, run_id: str, indexes: tuple[int, ...] | None = None) -> dict[int, bytes]:
    """The same with their deltas to the state: see `model.outputs`."""
    return {index: found.output for index, found in get_completions(store, run_id, indexes).items()}


def get_completions(store: Store, run_id: str, indexes: tuple[int, ...] | None = None) -> dict[int, Completion]:
    """The same with the numbers of the attempts."""
    return dict(rows(store, GetOutputs(RunId(run_id), indexes)))


def get_graph(store: Store, digest: str) -> bytes | None:
    """The document of a stored graph."""
    return cast("bytes | None", store.read([GetGraph(Digest(digest))])[0])


def get_graph_ages(store: Store, *digests: str) -> dict[str, int]:
    """When graphs were first stored, as numbers that only compare."""
    return cast("dict[str, int]", store.read([GetGraphAges(tuple(map(Digest, digests)))])[0])


def unused_graphs(store: Store, stored_before: int | None = None) -> Iterator[tuple[Digest, str]]:
    """(digest, workflow) of graphs that no run has or had, page by page."""
    return rows(store, ListUnusedGraphs(stored_before=stored_before))


def list_journal(store: Store, run_id: str, after: int = 0) -> list[JournalRow]:
    return list(rows(store, ListJournal(RunId(run_id), after)))


class History(NamedTuple):
    """A run and its whole journal, as they stood at one moment."""

    row: RunRow
    counts: dict[NodeStatus, int]
    journal: list[JournalRow]
    now: int


def get_history(store: Store, run_id: str) -> History:
    """Raises RunNotFound. However long reading takes: what happens meanwhile is not in it."""
    asked = RunId(run_id)
    row, counts, page = store.read([GetRun(asked), CountNodes(asked), ListJournal(asked)])
    if row is None:
        raise RunNotFound(run_id, store=store.url)
    now, journal = store.now(), [*page]
    if len(journal) < row.seq:
        journal += list_journal(store, run_id, len(journal))
    return History(row, counts, journal[: row.seq], now)


def list_lines(
    store: Store,
    run_id: str,
    index: int | None = None,
    *,
    number: int | None = None,
    kind: str | None = None,
    since: int | None = None,
) -> tuple[LineRow, ...]:
    return tuple(rows(store, ListLines(RunId(run_id), index, number=number, kind=kind, since=since)))


def list_marks(store: Store, run_id: str, indexes: tuple[int, ...] | None = None) -> tuple[LineRow, ...]:
    return tuple(rows(store, ListMarks(RunId(run_id), indexes)))


def list_workers(store: Store) -> tuple[WorkerRow, ...]:
    return tuple(rows(store, ListWorkers()))


def count_nodes(store: Store, run_id: str, removed: AbstractSet[int] = frozenset()) -> dict[NodeStatus, int]:
    """How many nodes of a run stand in each status, without those that were `removed` from its graph."""
    if not removed:
        return cast("dict[NodeStatus, int]", store.read([CountNodes(RunId(run_id))])[0])
    return dict(Counter(row.status for row in all_nodes(store, run_id) if row.index not in removed))


def list_unfinished(store: Store) -> tuple[Unfinished, ...]:
    return tuple(rows(store, ListUnfinished()))


def get_record(store: Store, kind: str, key: str) -> RecordRow | None:
    return cast("RecordRow | None", store.read([GetRecord(kind, key)])[0])


def all_records(store: Store, kind: str, page: int = 1_000) -> Iterator[RecordRow]:
    return rows(store, ListRecords(kind, limit=page))
