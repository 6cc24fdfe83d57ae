"""Which workers are alive, as far as it can be seen from here."""

from __future__ import annotations

import os

from ...base.ids import WorkerId, machine
from ..model import WorkerRow
from .port import Store
from .reader import list_workers


def living(store: Store) -> tuple[WorkerRow, ...]:
    """The workers that have a lease. The lease of a process that died runs on a while, so here it is looked for."""
    return among(list_workers(store), store.now())


def among(workers: tuple[WorkerRow, ...], now: int) -> tuple[WorkerRow, ...]:
    """Those of these workers that are alive at this time of the store."""
    return tuple(worker for worker in workers if worker.lease_until > now and may_live(worker))


def served(store: Store, but: WorkerId | None = None) -> set[tuple[str, str]]:
    """The versions of workflows that live workers, `but` this one, have: (workflow, digest)."""
    alive = (worker for worker in living(store) if worker.id != but)
    return {(workflow, digest) for worker in alive for workflow, digest in worker.said.get("serves", ())}


def may_live(worker: WorkerRow) -> bool:
    """False only for a process of this machine that is certainly gone."""
    said = worker.said
    return not isinstance(said.get("pid"), int) or process_may_live(said.get("machine"), said["pid"])


def holder_may_live(token: str) -> bool:
    """False only if the gate token is of a process of this machine that is certainly gone."""
    where, _, pid = token.partition("@")[2].rpartition(":")
    return not pid.isdecimal() or process_may_live(where, int(pid))


def process_may_live(where: object, pid: int) -> bool:
    if where != machine():
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is there, but somebody else's
        return True
    return True
