"""`Standing`: the status of a state and its causes, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...answers.staleness import CauseCode, Status
from ...base.clock import utc_text

if TYPE_CHECKING:
    from ...answers.pipelines import StalenessCause


class Cause(NamedTuple):
    """Why a state is stale or waits. `text` is for people, `subject` is the path or function."""

    code: CauseCode
    text: str
    subject: str = ""

    def to_dict(self) -> StalenessCause:
        return {"cause": self.code, "text": self.text, "subject": self.subject}


class Standing(NamedTuple):
    status: Status
    causes: tuple[Cause, ...] = ()
    due_at: float | None = None
    """When it will change by itself, in seconds since 1970."""

    @property
    def due(self) -> str | None:
        """The same as text."""
        return None if self.due_at is None else utc_text(self.due_at)


FRESH = Standing("fresh")
