"""Workers, and the leases they hold."""

from __future__ import annotations

from typing import Any

from ...base.codec import decode
from ...base.words import iso
from ...core.model import ListWorkers, WorkerRow
from .. import paging
from ..models import Page, WorkerModel
from ..routes import Routes
from ..service import Given

routes = Routes("workers")


@routes.get("/workers", "read")
def list_workers(service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100) -> Page[WorkerModel]:
    """The workers that have enlisted, by id: until when their lease is, what they serve and where they run."""
    (rows,) = service.store.read([ListWorkers(paging.read(cursor, paging.Text), limit)])
    now = service.store.now()
    items = [_worker(row, now) for row in rows]
    return paging.page(items, rows.cursor)


def _worker(row: WorkerRow, now: int) -> dict[str, Any]:
    try:
        info = decode(row.info)
    except ValueError:
        info = {}
    return {
        "id": row.id,
        "lease_until": iso(row.lease_until),
        "renewed_at": iso(row.renewed_at),
        "alive": row.lease_until > now,
        "info": info if isinstance(info, dict) else {},
    }
