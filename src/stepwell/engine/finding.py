"""Which runs a call is about, in the words of people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypedDict

from ..base.ids import RunId
from ..base.words import shown
from ..core.model import ListRuns, RunStatus
from ..errors import InputError
from .checking import check_name, checked_status, checked_tags, checked_time
from .trees import with_children


class WhichRuns(TypedDict, total=False):
    """Which runs. All that is given must hold."""

    tag: Mapping[str, str] | None
    """Only runs with all of these tags."""
    workflow: str | None
    """Only of the workflow with this name."""
    status: RunStatus | str | None
    """Only with this status."""
    since: datetime | timedelta | None
    """Created at this time or later."""
    until: datetime | timedelta | None
    """Created before this time."""
    prefix: str | None
    """Only with an id that starts with this."""
    fork_of: str | None
    """Only forks of the run with this id."""
    search: str | None
    """Only with this in the id, the workflow, the error or a tag as NAME=VALUE, whatever the case of ASCII letters."""
    error: str | None
    """Only runs whose first failed node had an error of this class."""
    parent: str | None
    """Only child runs of the run with this id: those that perform its nodes."""
    children: bool
    """Child runs, too. Without it only runs that people and triggers have started are listed."""


def which_runs(
    *,
    tag: Mapping[str, str] | None = None,
    workflow: str | None = None,
    status: RunStatus | str | None = None,
    since: datetime | timedelta | None = None,
    until: datetime | timedelta | None = None,
    prefix: str | None = None,
    fork_of: str | None = None,
    search: str | None = None,
    error: str | None = None,
    parent: str | None = None,
    children: bool = False,
) -> ListRuns:
    check_name("workflow", workflow, "the name of a workflow")
    check_name("prefix", prefix, "the beginning of a run's id")
    check_name("fork_of", fork_of, "the id of a run")
    check_name("search", search, "a text")
    check_name("error", error, "the class of an error, as in ValueError")
    check_name("parent", parent, "the id of a run")
    if not isinstance(children, bool):
        raise InputError(f"children={shown(children)}: expected True or False")
    query = ListRuns(
        workflow=workflow,
        statuses=() if status is None else (checked_status(status),),
        prefix=prefix or None,
        tags=checked_tags(tag),
        since=checked_time("since", since),
        until=checked_time("until", until),
        origin=None if fork_of is None else RunId(fork_of),
        text=search or None,
        error=error or None,
    )
    return with_children(query, parent, children=children)
