"""A run as it was after an entry of its journal."""

from __future__ import annotations

from collections import Counter, deque
from itertools import takewhile
from typing import NamedTuple

from ...base.ids import Digest
from ...core.graph import Graph
from ...core.kernel.audit import earlier_graphs, folding
from ...core.model import AttemptStatus, NodeStatus, queries
from ...core.store import reader
from ...errors import InputError
from ..runs.stored import StoredRun


class Moment(NamedTuple):
    seq: int
    graph: Graph
    """The graph that the run had then."""
    statuses: list[NodeStatus]
    """By the index of nodes."""
    attempts: Counter[int]
    """How many there were, by node."""
    failures: Counter[int]


def moment_of(run: StoredRun, at: int) -> Moment:
    """Folded from the journal as far as the entry `at`."""
    if not 0 <= at <= run.row.seq:
        raise InputError(f"expected a seq of run {run.row.id}, from 0 to {run.row.seq:,}, got {at}")
    heals = list(reader.rows(run.store, queries.ListJournal(run.row.id, kinds=("healed",))))
    digests = earlier_graphs(heals) or [run.row.digest]
    digests = digests[: 1 + sum(entry.seq <= at for entry in heals)]
    graphs = [run.load(Digest(digest)) for digest in digests]
    entries = takewhile(lambda entry: entry.seq <= at, reader.rows(run.store, queries.ListJournal(run.row.id)))
    folded = deque(folding(graphs, entries), maxlen=1)[0]
    failed = (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT)
    return Moment(
        at,
        graphs[-1],
        folded.nodes,
        Counter(index for index, _ in folded.attempts),
        Counter(index for (index, _), status in folded.attempts.items() if status in failed),
    )
