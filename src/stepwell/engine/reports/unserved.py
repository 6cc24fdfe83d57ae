"""Work that no live worker would take: versions of workflows, and queues with READY nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...base.ids import Digest, RunId
from ...core.graph import Graph
from ...core.model import INTERNAL_WORKFLOW, Lane, ListReady, ListRuns, RunRow, RunStatus
from ...core.store import Store, reader
from ...core.store.living import living
from ...history.why import Facts, WhyCause, Worker
from ...history.why.run_state import unserved_queue, unserved_run
from ...history.why.words import StoreTimes, sentence

if TYPE_CHECKING:
    from ...answers.fleet import UnservedRecord, UnservedReport

MOST = 200
"""Versions of workflows that are looked at."""
_MOVING = tuple(status for status in RunStatus if status.moving)


class Unserved(NamedTuple):
    """What no live worker takes of one version of a workflow: all of it, or the READY nodes of a queue."""

    workflow: str
    digest: Digest
    queue: str | None
    run_id: RunId
    """One of the runs that wait for a worker."""
    cause: WhyCause


def find_unserved(store: Store, load_graph: Callable[[Digest, RunId], Graph]) -> tuple[list[Unserved], bool]:
    """What waits for a worker that is not there, and whether that is all: at most `MOST` versions are looked at."""
    workers, now = tuple(map(Worker.of, living(store))), store.now()
    unfinished = (item for item in reader.list_unfinished(store) if item.workflow != INTERNAL_WORKFLOW)
    versions = [*dict.fromkeys((item.workflow, item.digest) for item in unfinished)]
    newest = [ListRuns(1, workflow=name, digest=digest, statuses=_MOVING) for name, digest in versions[:MOST]]
    runs: list[RunRow] = [row for page in store.read(newest) for row in page.runs]
    items: list[Unserved] = []
    served: list[tuple[Facts, Callable[[], Graph]]] = []
    for row in runs:
        load = partial(load_graph, row.digest, row.id)
        facts = Facts(row, load, now, workers)
        cause = unserved_run(facts)
        if cause is None:
            served.append((facts, load))
        else:
            items.append(Unserved(row.workflow, row.digest, None, row.id, cause))
    return items + _unserved_queues(store, served), len(versions) <= MOST


def _unserved_queues(store: Store, served: list[tuple[Facts, Callable[[], Graph]]]) -> list[Unserved]:
    """The queues with READY nodes of these versions that no live worker takes nodes from."""
    candidates: list[tuple[RunRow, str, WhyCause]] = []
    questions: list[ListReady] = []
    for facts, load in served:
        by_queue: defaultdict[str, list[Lane]] = defaultdict(list)
        for lane in load().lanes if _has_limits(facts) else ():
            by_queue[lane.queue] += [lane, lane._replace(suspect=True)]
        for queue, lanes in sorted(by_queue.items()):
            cause = unserved_queue(facts, queue)
            if cause is not None:
                candidates.append((facts.run, queue, cause))
                questions.append(ListReady(tuple(lanes), serves=((facts.run.workflow, facts.run.digest),), limit=1))
    answers = store.read(questions)
    return [
        Unserved(row.workflow, row.digest, queue, waiting[0], cause)
        for (row, queue, cause), waiting in zip(candidates, answers, strict=True)
        if waiting
    ]


def _has_limits(facts: Facts) -> bool:
    """Whether no live worker takes nodes from all queues; otherwise the graph need not be read."""
    return all(worker.queues is not None for worker in facts.workers)


def unserved_report(store: Store, load_graph: Callable[[Digest, RunId], Graph]) -> UnservedReport:
    items, is_complete = find_unserved(store, load_graph)
    return {"items": [_record(item, store.now()) for item in items], "complete": is_complete}


def _record(item: Unserved, now: int) -> UnservedRecord:
    return {
        "workflow": item.workflow,
        "digest": item.digest,
        "queue": item.queue,
        "run": item.run_id,
        "kind": item.cause.kind,
        "because": sentence(item.cause, StoreTimes(now)),
        "module": item.cause.detail.get("module"),
    }
