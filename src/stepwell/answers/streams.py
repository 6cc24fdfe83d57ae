"""What streams of server-sent events send. `event` and `id` are the lines of an event of these names, `data` is its JSON."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from ..core.model import RunStatus
from .nodes import JournalRecord, LineRecord
from .pipelines import StateRecord
from .runs import RunChange


class JournalMessage(TypedDict):
    """An entry of the journal of the run was written."""

    event: Literal["journal"]
    """Its kind."""
    id: int
    """The `seq` of the entry: pass it as `after`, or as Last-Event-ID, to go on after it."""
    data: JournalRecord
    """The entry."""


class LogMessage(TypedDict):
    """A body logged or printed a line."""

    event: Literal["log"]
    """Its kind."""
    id: int
    """When it was stored: pass it as Last-Event-ID to go on after it."""
    data: LineRecord
    """The line."""


class RunMessage(TypedDict):
    """A run changed, or had not ended when the stream began."""

    event: Literal["run"]
    """Its kind."""
    id: int
    """Until when all changes were sent: pass it as Last-Event-ID to go on from there."""
    data: RunChange
    """The run as it is now."""


class EndRecord(TypedDict):
    """The end of a run."""

    run: str
    """The id of the run."""
    status: RunStatus | None
    """Its status; null if it was deleted."""


class EndMessage(TypedDict):
    """The run has ended, or is gone; the last event of its stream."""

    event: Literal["end"]
    """Its kind."""
    data: EndRecord
    """Which run, and how it ended."""


class ResetRecord(TypedDict):
    """Where a stream begins anew."""

    run: str | None
    """The id of the run; null in the stream of all runs."""
    seq: int | None
    """How many entries its journal has; null if the run is gone, and in the stream of all runs."""


class ResetMessage(TypedDict):
    """The place in the stream is gone: read everything anew."""

    event: Literal["reset"]
    """Its kind."""
    id: NotRequired[int]
    """In the stream of all runs: where it goes on."""
    data: ResetRecord
    """What is to be read anew."""


class StateMessage(TypedDict):
    """A state has another status, or the stream has just begun."""

    event: Literal["state"]
    """Its kind."""
    data: StateRecord
    """The state as it is now."""


class GoneRecord(TypedDict):
    """States that are gone."""

    stage: str
    """The stage that made them."""
    entity: str
    """The entity they were made for."""


class GoneMessage(TypedDict):
    """States are gone."""

    event: Literal["gone"]
    """Its kind."""
    data: GoneRecord
    """Which they were."""
