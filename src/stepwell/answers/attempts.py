"""All attempts of a run at once, as columns: what a timeline is drawn from."""

from __future__ import annotations

from typing_extensions import TypedDict

from ..core.model import AttemptStatus


class TimelineNodes(TypedDict):
    """Nodes as columns of the same length."""

    ids: list[str]
    """Their ids."""
    names: list[str]
    """Their names."""
    levels: list[int]
    """Of each, the length of the longest path to it from a node without parents."""
    groups: list[str | None]
    """The id of the group in which the graph of the run shows it while no group is open; null if it is shown by itself."""


class AttemptTable(TypedDict):
    """Attempts of a run as columns of the same length, by node and number."""

    run: str
    """The id of the run."""
    seq: int
    """How many entries the journal of the run had when they were read; of later ones some may be in it. Follow the run with
    `after` this one, and nothing is missed."""
    since: str
    """When the run was created. Times are microseconds after it."""
    nodes: TimelineNodes
    """The nodes that these are attempts of, each once."""
    workers: list[str]
    """The ids of the workers that claimed them, each once."""
    node: list[int]
    """The place of the node in `nodes`."""
    number: list[int]
    """The number of the attempt, from 1."""
    status: list[AttemptStatus]
    """How it ended, or RUNNING."""
    worker: list[int]
    """The place of the worker in `workers`."""
    waiting_us: list[int]
    """From when the node waited for it: when its last parent completed, or the attempt before ended. The delay of a retry is a
    part of this wait."""
    started_us: list[int]
    """When it was claimed."""
    ended_us: list[int | None]
    """When it was settled; null while it runs."""
    error: list[str | None]
    """The class of the exception that ended it."""
    next: str | None
    """Pass it as `cursor` to get the attempts after these; null at the end."""
