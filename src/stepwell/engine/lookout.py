"""Finds what no hint told of: queues with READY nodes, and workers of this machine that have died."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import NamedTuple

from ..base.ids import Digest, RunId
from ..core.graph import Graph
from ..core.model import Dismiss, Lane, ListReady, Query, Unfinished
from ..core.store import Store, reader
from ..core.store.living import may_live
from .recent import Recent

log = logging.getLogger("stepwell")


class Ready(NamedTuple):
    """A queue has READY nodes of this version of a workflow; `run` is one of the runs."""

    queue: str
    unfinished: Unfinished
    run: RunId


class Lookout:
    """Finds queues with READY nodes. It needs a store, but no code of the user."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lanes: Recent[Digest, frozenset[Lane]] = Recent(10_000)

    def ready(self) -> list[Ready]:
        """One run for each queue and graph with READY nodes."""
        asked: list[tuple[str, Unfinished]] = []
        questions: list[Query] = []
        for item in reader.list_unfinished(self._store):
            by_queue: defaultdict[str, list[Lane]] = defaultdict(list)
            for lane in sorted(self._lanes_of(item.digest)):
                by_queue[lane.queue] += [lane, lane._replace(suspect=True)]
            for queue, lanes in by_queue.items():
                asked.append((queue, item))
                questions.append(ListReady(tuple(lanes), serves=((item.workflow, item.digest),), limit=1))
        found: list[Ready] = []
        for at in range(0, len(questions), 200):
            answers = self._store.read(questions[at : at + 200])
            found += [
                Ready(queue, item, runs[0])
                for (queue, item), runs in zip(asked[at : at + 200], answers, strict=True)
                if runs
            ]
        return found

    def _lanes_of(self, digest: Digest) -> frozenset[Lane]:
        lanes = self._lanes.get(digest)
        if lanes is None:
            document = reader.get_graph(self._store, digest)
            lanes = frozenset() if document is None else Graph.load(document).lanes
            self._lanes[digest] = lanes
        return lanes


def dismiss_dead(store: Store) -> int:
    """Sign off workers whose process has died on this machine, so that nobody waits for their leases to expire. Returns how
    many attempts they held. A process that is only paused keeps its lease until it expires."""
    lost = 0
    for worker in reader.list_workers(store):
        if not may_live(worker):
            (receipt,) = store.commit([Dismiss(worker.id)])
            held: int = getattr(receipt, "lost", 0)
            lost += held
            pid = worker.said.get("pid")
            log.warning("worker %s (process %s) has died; it held %d attempts", worker.id, pid, held)
    return lost
