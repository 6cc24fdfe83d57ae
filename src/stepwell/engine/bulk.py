"""`engine.preview_bulk(...)`: what one request would do to many runs, and then the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..base.clock import Duration
from ..core.model import ListRuns
from ..history.audit_log import asking
from .checking import checked_changes, checked_seconds
from .finding import WhichRuns, which_runs
from .runs.bulk import BulkVerb, bulk_verb

if TYPE_CHECKING:
    from ..answers.runs import BulkRecord, PreviewedRun


class BulkAsked(WhichRuns, total=False):
    """Which runs, and the options of the verb."""

    accept: bool
    """Of retry and resume: no node was renamed when a class lost some and gained others."""
    input: Mapping[str, Any] | None
    """Of retry and resume: values for inputs that a class has gained since; of fork: what changes of the input."""
    grace_seconds: Duration
    """Of cancel: how long running bodies may take to stop."""
    node: str
    """Of reattempt: which node of each run."""
    cascade: bool
    """Of reattempt: run again what completed below the node, too."""
    at: int | str | None
    """Of fork: a `seq`, a label or a node; None: all that a run has done."""
    key: str
    """Of fork: the forks are called RUN-KEY, so that a repeated request makes no more of them."""


class Bulk(Protocol):
    """Where runs are previewed and requested: an engine, or a server."""

    def _preview_bulk(self, asked: BulkVerb, query: ListRuns, cursor: Any) -> tuple[BulkRecord, Any]: ...

    def _apply_bulk(self, asked: BulkVerb, previewed: list[PreviewedRun]) -> BulkRecord: ...


class BulkPreview:
    """What a request would do to each of the runs that match. Nothing has been done yet."""

    def __init__(self, bulk: Bulk, asked: BulkVerb, query: ListRuns, cursor: Any = None) -> None:
        self._bulk, self._asked, self._query = bulk, asked, query
        self.record, self._more = bulk._preview_bulk(asked, query, cursor)
        """What the dry run of `POST /bulk/{verb}` answers: the runs, how many would accept it, how many nodes would change."""

    def __repr__(self) -> str:
        return f"<BulkPreview of {self._asked.verb}>"

    def next(self) -> BulkPreview | None:
        """The preview of the runs after these; None at the end."""
        return None if self._more is None else BulkPreview(self._bulk, self._asked, self._query, self._more)

    def apply(self, *, reason: str | None = None) -> BulkRecord:
        """Request it of the runs that would accept it, and of no others. What was changed since is left alone, as `changed`."""
        with asking(reason):
            return self._bulk._apply_bulk(self._asked, self.record["preview"])


def previewed(bulk: Bulk, verb: str, limit: int, asked: Mapping[str, Any]) -> BulkPreview:
    which = {name: value for name, value in asked.items() if name in WhichRuns.__annotations__}
    options = {name: value for name, value in asked.items() if name not in which}
    if "input" in options:
        options["input"] = checked_changes(options["input"])
    if "grace_seconds" in options:
        options["grace_seconds"] = checked_seconds("grace_seconds", options["grace_seconds"])
    return BulkPreview(bulk, bulk_verb(verb, options), which_runs(**which)._replace(limit=limit))
