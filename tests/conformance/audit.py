"""What must hold of the rows of any store, whatever was asked of it, checked by reading them."""

from __future__ import annotations

from collections import Counter

from stepwell.core.model import AttemptStatus
from stepwell.core.store import Store, reader
from stepwell.engine.reports.audit import audit_alone


def audit(store: Store) -> None:
    """Every run of the store agrees with itself, and what runs stands under a lease."""
    workers = {worker.id for worker in reader.list_workers(store)}
    for run in list(reader.all_runs(store)):
        problems = audit_alone(store, run.id)
        assert not problems, f"{run.id}: {'; '.join(problems)}"
        if run.purpose in ("load", "delete"):
            continue
        nodes = reader.all_nodes(store, run.id)
        assert reader.count_nodes(store, run.id) == Counter(node.status for node in nodes)
        for attempt in reader.list_attempts(store, run.id):
            held = attempt.status is AttemptStatus.RUNNING
            assert not held or attempt.worker in workers, f"{run.id} {attempt} stands under no lease"
