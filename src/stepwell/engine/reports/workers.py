"""The workers of a store: where they are, what they serve, what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from ...base.clock import SECOND
from ...base.ids import RunId, WorkerId
from ...core.model import AttemptStatus, ListAttempts, NodeStatus, RunStatus, WorkerRow
from ...core.store import Store, reader
from ...core.store.living import may_live

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


def describe_workers(store: Store) -> list[WorkerView]:
    """Every worker that is known, with what it holds of the newest running runs."""
    holds = _holds(store)
    return [_view(row, holds.get(row.id, ())) for row in reader.list_workers(store)]


def is_idle(row: WorkerRow) -> bool:
    """Whether a worker says that it gets no hints although there is work that it could do."""
    return row.said.get("idle") is True


def _view(row: WorkerRow, holds: Iterable[Hold]) -> WorkerView:
    said = row.said
    queues = said.get("queues")
    return WorkerView(
        row.id,
        said.get("host"),
        said.get("pid"),
        said.get("celery"),
        None if queues is None else tuple(queues),
        tuple((name, digest) for name, digest in said.get("serves", ())),
        tuple((name, digest, what) for name, digest, what in said.get("lacks", ())),
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


def worker_record(view: WorkerView, now: int) -> dict[str, Any]:
    """As JSON; its keys are a promise."""
    return {
        **{name: getattr(view, name) for name in ("id", "host", "pid", "celery", "idle")},
        "alive": view.may_live and view.lease_until > now,
        "lease_seconds_left": round((view.lease_until - now) / SECOND, 3),
        "renewed_seconds_ago": round((now - view.renewed_at) / SECOND, 3),
        "queues": None if view.queues is None else list(view.queues),
        "serves": [{"workflow": name, "digest": digest} for name, digest in view.serves],
        "lacks": [{"workflow": name, "digest": digest, "what": what} for name, digest, what in view.lacks],
        "holds": [
            {
                "run": hold.run_id,
                "node": hold.node,
                "attempt": hold.attempt,
                "seconds": round((now - hold.since) / SECOND, 3),
            }
            for hold in view.holds
        ],
    }
