"""Workers, and the leases they hold."""

from __future__ import annotations

from ...answers.fleet import UnservedReport, WorkerRecord
from ...answers.page import PageOf
from ...core.model import ListWorkers
from ...engine.reports.unserved import unserved_report
from ...engine.reports.workers import describe_workers, worker_record
from .. import paging
from ..routes import Routes
from ..service import Given

routes = Routes("workers")


@routes.get("/workers", "read")
def list_workers(service: Given, cursor: paging.Cursor = None, limit: paging.Limit = 100) -> PageOf[WorkerRecord]:
    """The workers, by id: until when the lease of each is, what it serves and what it is running."""
    (rows,) = service.store.read([ListWorkers(paging.read(cursor, paging.Text), limit)])
    now = service.store.now()
    return paging.page([worker_record(view, now) for view in describe_workers(service.store, rows)], rows.cursor)


@routes.get("/workers/unserved", "read")
def list_unserved(service: Given) -> UnservedReport:
    """Work that waits for a worker that is not there: of versions of workflows, and in queues, that no live worker serves."""
    return unserved_report(service.store, service.graph)
