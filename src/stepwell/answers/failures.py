"""Why nodes of a run failed, with what failed alike as one."""

from __future__ import annotations

from typing_extensions import TypedDict


class FailureGroup(TypedDict):
    """Nodes that failed with the same error."""

    type: str | None
    """The class of the exception; null of nodes without one, such as those whose worker was lost."""
    message: str
    """Its message, or the reason of the node."""
    count: int
    """How many nodes failed with it."""
    nodes: list[str]
    """The ids of the first of them."""


class FailuresRecord(TypedDict):
    """The nodes of a run that failed, by error."""

    run: str
    """The id of the run."""
    seq: int
    """How many entries the journal of the run had when they were read."""
    count: int
    """How many nodes are in the groups."""
    exact: bool
    """Whether these are all; otherwise there are at least so many."""
    groups: list[FailureGroup]
    """The errors, the most frequent one first."""
