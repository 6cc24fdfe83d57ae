"""Who did it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field

from ...answers.audit_log import AuditEntryRecord
from ...answers.page import PageOf
from ...history.audit_log import AuditFilter, read_page
from .. import paging
from ..bodies import Body
from ..routes import Routes
from ..service import Given, ServerProcess
from .runs import moment

routes = Routes("audit log")


class AuditQuery(Body):
    """Which entries. All that is given must hold."""

    model_config = ConfigDict(extra="ignore")  # as all queries do

    who: str | None = Field(default=None, max_length=300)
    """Only of this name, or of the token with this id."""
    action: str | None = Field(default=None, max_length=40, examples=["cancel"])
    """Only this."""
    since: str | None = Field(default=None, max_length=40)
    """Only at this time (ISO 8601) or later."""
    cursor: paging.Cursor = None
    limit: paging.Limit = 100


class WholeAuditQuery(AuditQuery):
    run: str | None = Field(default=None, max_length=200)
    """Only of this run."""


def _page(service: ServerProcess, asked: AuditQuery, run: str | None) -> PageOf[AuditEntryRecord]:
    wanted = AuditFilter(run, asked.who, asked.action, moment("since", asked.since))
    page = read_page(service.store, wanted, paging.read(asked.cursor, paging.Text), asked.limit)
    return paging.page([entry.to_dict() for entry in page.entries], page.next)


@routes.get("/audit-log", "admin")
def get_audit_log(service: Given, asked: Annotated[WholeAuditQuery, Query()]) -> PageOf[AuditEntryRecord]:
    """Who asked for which change, when, from where and why, the newest first. With a filter a page may be short, and even
    empty: `next` says whether there may be more."""
    return _page(service, asked, asked.run)


@routes.get("/runs/{run_id}/audit-log", "read")
def get_audit_log_of_run(
    run_id: str, service: Given, asked: Annotated[AuditQuery, Query()]
) -> PageOf[AuditEntryRecord]:
    """Who asked for what of one run, the newest first. A run that was deleted has a log, too."""
    return _page(service, asked, run_id)
