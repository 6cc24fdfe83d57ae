"""What can be read from a store: a closed set, too.

Lists are paged by key, never by offset: `after` is the cursor of the page before. None is without a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from ...base.ids import AttemptId, Digest, NodeId, RunId, WorkerId
from .lanes import Lane
from .records import GetRecord, ListRecords
from .rows import RunRow
from .status import AttemptStatus, NodeStatus, RunStatus

Row = TypeVar("Row")


class Page(tuple[Row, ...]):
    """The rows that a list query found, in order. It may be short: only its cursor says whether there is more."""

    cursor: Any

    def __new__(cls, rows: Iterable[Row] = (), cursor: Any = None) -> Page[Row]:
        page = super().__new__(cls, rows)
        page.cursor = cursor
        return page


class GetRun(NamedTuple):
    run_id: RunId


RunOrder: TypeAlias = Literal["created", "ended", "duration"]
"""The last one created first; or, of the runs that have ended, the last one to end, or the one that took longest."""


class ListRuns(NamedTuple):
    """One page of runs; `before` is the `cursor` of the page that came before."""

    limit: int = 100
    before: tuple[int, int] | None = None
    workflow: str | None = None
    statuses: tuple[RunStatus, ...] = ()
    ended_before: int | None = None
    digest: Digest | None = None
    origin: RunId | None = None
    """Only forks of this run."""
    prefix: str | None = None
    """Only runs whose id begins so."""
    tags: tuple[tuple[str, str], ...] = ()
    """Only runs that have all of these."""
    since: int | None = None
    """Only runs that were created then or later."""
    until: int | None = None
    """Only runs that were created before."""
    ended_since: int | None = None
    """Only runs that ended then or later."""
    text: str | None = None
    """Only runs that have this in their id, workflow, error or a tag as NAME=VALUE, whatever the case of ASCII letters. Such a
    page may be short: a store searches a limited number of runs for each."""
    error: str | None = None
    """Only runs with this `error`."""
    parent: RunId | None = None
    """Only child runs of this run."""
    roots: bool = False
    """Only runs that are no child runs."""
    order: RunOrder = "created"
    """Any but `created` leaves out runs that have not ended. A page of it may be short, too."""


class CountRuns(NamedTuple):
    """How many runs there are by what `by` says; times are those of creation. Where more than `limit` runs match, or were to be
    searched, some of the older ones are not counted."""

    runs: ListRuns
    """Which; where their page begins and ends does not matter."""
    by: Literal["status", "workflow", "hour", "day"]
    limit: int = 100_000


class CountedRuns(NamedTuple):
    counts: tuple[tuple[str, int], ...] = ()
    """In order of what they are by; times in microseconds since 1970, as text."""
    exact: bool = True
    """Whether all runs were counted; otherwise there are at least these."""


class ListEnded(NamedTuple):
    """Runs that ended then or later, in the order in which they ended; `after` is the cursor of the page before."""

    since: int
    workflow: str | None = None
    statuses: tuple[RunStatus, ...] = ()
    """Only runs that ended so."""
    after: tuple[int, int] | None = None
    limit: int = 1_000


class ListNodes(NamedTuple):
    """In order; `after` is the index of the last node of the page before."""

    run_id: RunId
    after: int = -1
    limit: int = 10_000
    statuses: tuple[NodeStatus, ...] = ()
    indexes: tuple[int, ...] | None = None
    """Only these."""


class ListAttempts(NamedTuple):
    """All attempts of one node, oldest first; of the whole run when `index` is None."""

    run_id: RunId
    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which no record needs
    after: tuple[int, int] = (-1, 0)
    limit: int = 10_000


class GetNodeColumns(NamedTuple):
    """What is shown of nodes when there are very many: `NodeColumns`, in order."""

    run_id: RunId
    after: int = -1
    limit: int = 10_000


class NodeColumns(NamedTuple):
    """Neighbouring nodes of a run: columns instead of rows, all equally long."""

    seq: int = 0
    """The last journal entry of the run when they were read. Pages with the same `seq` were read at one moment."""
    indexes: Sequence[int] = ()
    ids: tuple[NodeId, ...] = ()
    statuses: tuple[NodeStatus, ...] = ()
    reasons: tuple[str | None, ...] = ()
    cursor: int | None = None


class GetAttemptColumns(NamedTuple):
    """When all attempts of a run began and ended: `AttemptColumns`, by node and number."""

    run_id: RunId
    after: tuple[int, int] = (-1, 0)
    limit: int = 10_000
    indexes: tuple[int, ...] | None = None
    """Only of these nodes."""
    details: bool = False
    """Fill the columns `workers` and `errors`, too."""


class AttemptColumns(NamedTuple):
    """Attempts of a run as columns, like `NodeColumns`; `indexes` are the numbers of their nodes."""

    seq: int = 0
    indexes: Sequence[int] = ()
    numbers: Sequence[int] = ()
    statuses: tuple[AttemptStatus, ...] = ()
    started: Sequence[int] = ()
    ended: tuple[int | None, ...] = ()
    workers: tuple[WorkerId, ...] = ()
    errors: tuple[str | None, ...] = ()
    """The classes of what the bodies raised."""
    cursor: tuple[int, int] | None = None


class GetOutputs(NamedTuple):
    """The completions of nodes, (index, completion), by index; of all that have completed when `indexes` is None."""

    run_id: RunId
    indexes: tuple[int, ...] | None = None
    after: int = -1
    limit: int = 10_000


class GetGraph(NamedTuple):
    digest: Digest


class GetGraphAges(NamedTuple):
    """When each of these graphs was first stored, as numbers that only compare; those that are not there are left out."""

    digests: tuple[Digest, ...]


class ListUnusedGraphs(NamedTuple):
    """(digest, workflow) of graphs that no run has or had, in order; `after` is the last digest of the page before."""

    after: Digest | None = None
    limit: int = 1_000
    stored_before: int | None = None
    """Only graphs that were not stored, or stored again, since then."""


class ListJournal(NamedTuple):
    """In order; `kinds` and `indexes` (of nodes) choose entries: a long history is not read for a few of them."""

    run_id: RunId
    after: int = 0
    limit: int = 10_000
    kinds: tuple[str, ...] = ()
    indexes: tuple[int, ...] | None = None


class ListLines(NamedTuple):
    """What the attempts of a run appended, in the order of claims; `after` is (attempt, index) of the line before.

    Marks are not among them. A run's attempts append side by side, so to follow a run ask for what was stored `since` the
    latest line seen, which is given again.
    """

    run_id: RunId
    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which no record needs
    limit: int = 10_000
    after: tuple[AttemptId, int] | None = None
    number: int | None = None
    """Only of attempts with this number."""
    kind: str | None = None
    since: int | None = None
    """Only what was stored at this time or later."""
    newest_first: bool = False
    """In the opposite order, so that a page begins at the end of the run; `after` is still the line of the page before."""


class ListMarks(NamedTuple):
    """The latest mark of every attempt that made one, in the order of claims; only of these nodes, if they are named."""

    run_id: RunId
    indexes: tuple[int, ...] | None = None
    after: tuple[AttemptId, int] | None = None
    limit: int = 10_000


class ListStops(NamedTuple):
    """The running attempts of a worker that should stop, the first ones that were claimed."""

    worker: WorkerId
    limit: int = 10_000


class ListWorkers(NamedTuple):
    """In order of their ids."""

    after: WorkerId | None = None
    limit: int = 1_000


class CountNodes(NamedTuple):
    """The number of nodes of a run in each status."""

    run_id: RunId


class ListReady(NamedTuple):
    """Runs behind an open gate that have READY nodes in these lanes: of those that are named, and of the (workflow, digest)
    pairs; the most urgent first."""

    lanes: tuple[Lane, ...]
    runs: tuple[RunId, ...] = ()
    serves: tuple[tuple[str, str], ...] = ()
    limit: int = 100


class ListUnfinished(NamedTuple):
    """The (workflow, target, digest) of unfinished runs, each once, in order."""

    after: tuple[str, str | None, str] | None = None
    limit: int = 10_000


class Unfinished(NamedTuple):
    workflow: str
    target: str | None
    digest: Digest


class RunPage(NamedTuple):
    runs: tuple[RunRow, ...]
    cursor: tuple[int, int] | None
    """Pass it as `before` for the next page; None at the end. What the runs are ordered by (0: by their creation), and the
    number of the run in the order of creation, which decides between equal values."""


ColumnQuery: TypeAlias = GetNodeColumns | GetAttemptColumns
RunQuery: TypeAlias = (
    CountNodes | ListNodes | ListAttempts | ColumnQuery | GetOutputs | ListJournal | ListLines | ListMarks
)
"""What is asked of one run, by its `run_id`."""
Query: TypeAlias = (
    RunQuery
    | GetRun
    | ListRuns
    | CountRuns
    | ListEnded
    | GetGraph
    | GetGraphAges
    | ListUnusedGraphs
    | ListStops
    | ListWorkers
    | ListReady
    | ListUnfinished
    | GetRecord
    | ListRecords
)
