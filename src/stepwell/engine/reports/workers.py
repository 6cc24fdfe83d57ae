"""The workers of a store: where they are, what they serve, what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ...base.clock import SECOND
from ...base.ids import RunId, WorkerId
from ...base.words import iso
from ...core.model import AttemptStatus, ListAttempts, NodeStatus, RunStatus, WorkerRow
from ...core.store import Store, reader
from ...core.store.living import may_live
from ...history.why import Worker

if TYPE_CHECKING:
    from ...answers.fleet import WorkerRecord

MOST_RUNS = 200
"""Running runs that are searched for what workers hold."""
MOST_NODES = 500
"""Running nodes that are searched in one run."""


class Hold(NamedTuple):
    run_id: RunId
    node: str
    attempt: int
    since: int


class WorkerView(NamedTuple):
    id: WorkerId
    host: str | None
    pid: int | None
    celery: str | None
    """The name of the Celery worker that it is a process of."""
    queues: tuple[str, ...] | None
    serves: tuple[tuple[str, str], ...]
    lacks: tuple[tuple[str, str, str], ...]
    lease_until: int
    renewed_at: int
    idle: bool
    """It gets no hints although there is work that it could do."""
    may_live: bool
    """False: its process has certainly died."""
    holds: tuple[Hold, ...]


def describe_workers(store: Store, rows: Iterable[WorkerRow] | None = None) -> list[WorkerView]:
    """Every worker that is known, or those of `rows`, with what each holds of the newest running runs."""
    holds = _holds(store)
    return [_view(row, holds.get(row.id, ())) for row in (reader.list_workers(store) if rows is None else rows)]


def is_idle(row: WorkerRow) -> bool:
    """Whether a worker says that it gets no hints although there is work that it could do."""
    return row.said.get("idle") is True


def _view(row: WorkerRow, holds: Iterable[Hold]) -> WorkerView:
    known = Worker.of(row)
    celery = row.said.get("celery")
    return WorkerView(
        row.id,
        known.host,
        known.pid,
        celery if isinstance(celery, str) else None,
        None if known.queues is None else tuple(sorted(known.queues)),
        tuple(sorted(known.serves or ())),
        tuple((*version, reason) for version, reason in known.lacks.items()),
        row.lease_until,
        row.renewed_at,
        is_idle(row),
        may_live(row),
        tuple(holds),
    )


def _holds(store: Store) -> dict[WorkerId, list[Hold]]:
    found: defaultdict[WorkerId, list[Hold]] = defaultdict(list)
    for run in islice(reader.all_runs(store, RunStatus.RUNNING), MOST_RUNS):
        running = reader.all_nodes(store, run.id, NodeStatus.RUNNING)[:MOST_NODES]
        answers = store.read([ListAttempts(run.id, node.index) for node in running]) if running else []
        for node, attempts in zip(running, answers, strict=True):
            for attempt in attempts:
                if attempt.status is AttemptStatus.RUNNING:
                    found[attempt.worker].append(Hold(run.id, node.id, attempt.number, attempt.started_at))
    return found


def worker_record(view: WorkerView, now: int) -> WorkerRecord:
    return {
        "id": view.id,
        "host": view.host,
        "pid": view.pid,
        "celery": view.celery,
        "idle": view.idle,
        "alive": view.may_live and view.lease_until > now,
        "lease_until": iso(view.lease_until),
        "renewed_at": iso(view.renewed_at),
        "lease_seconds_left": _seconds(view.lease_until - now),
        "renewed_seconds_ago": _seconds(now - view.renewed_at),
        "queues": None if view.queues is None else [*view.queues],
        "serves": [{"workflow": name, "digest": digest} for name, digest in view.serves],
        "lacks": [{"workflow": name, "digest": digest, "what": what} for name, digest, what in view.lacks],
        "holds": [
            {"run": hold.run_id, "node": hold.node, "attempt": hold.attempt, "seconds": _seconds(now - hold.since)}
            for hold in view.holds
        ],
    }


def _seconds(time: int) -> float:
    return round(time / SECOND, 3)
