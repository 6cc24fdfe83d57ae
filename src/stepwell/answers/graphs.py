"""Graphs as columns, whose nodes are in groups where there are many."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from ..core.model import NodeStatus


class GraphNodes(TypedDict):
    """The nodes that are shown one by one, as columns of the same length."""

    ids: list[str]
    """Their ids."""
    names: list[str]
    """Their names."""
    jobs: list[str | None]
    """The code they run; null of a method of the class."""
    levels: list[int]
    """Of each, the length of the longest path to it from a node without parents."""
    orders: list[int]
    """Of each, its place among all nodes as they were declared."""
    statuses: list[NodeStatus | None]
    """Their statuses in the run; null of the graph of a workflow."""
    reasons: list[str | None]
    """Why they have these statuses, where that does not go without saying, such as `condition` of a SKIPPED node; null of the
    graph of a workflow, and of a run as it was at an entry of its journal."""
    conditions: list[str | None]
    """Their conditions, `when`, as the graph has them: `<lambda>`, the name of a function of its class, a function with the
    nodes that it reads, or an expression; null of nodes without one."""
    groups: list[int | None]
    """Of each, the place in `groups` of the open group that it is in."""


class GraphGroups(TypedDict):
    """The groups that are shown, closed and open ones, as columns of the same length."""

    ids: list[str]
    """Their ids: pass them as `open`. They stay the same as long as the graph does."""
    kinds: list[Literal["fan", "alike", "level", "levels", "part"]]
    """What their nodes have in common: siblings of one job and kind of name; one level and kind of name; one level;
    neighbouring levels. A `part` is a part of a group with very many."""
    names: list[str]
    """What to call them."""
    levels: list[int]
    """Of each, the level of its first node."""
    sizes: list[int]
    """How many nodes are in them."""
    counts: list[dict[NodeStatus, int]]
    """How many of these have which status; empty of the graph of a workflow."""
    groups: list[int | None]
    """Of each, the place of the open group that it is in."""
    is_open: list[bool]
    """Whether what is in it is shown."""


class GraphEdges(TypedDict):
    """What depends on what. Items are the nodes that are shown, and then the groups, numbered from 0."""

    offsets: list[int]
    """The parents of item N are those from offset N to offset N + 1. An open group has none."""
    parents: list[int]
    """The numbers of items."""


class GraphRecord(TypedDict):
    """The graph of a workflow or of a run, with at most about a thousand items: the rest is in groups, which can be opened."""

    workflow: str
    """The name of the workflow."""
    run: str | None
    """The id of the run; null of the graph of a workflow."""
    seq: int | None
    """How many entries the journal of the run had when the statuses were these."""
    digest: str
    """The SHA-256 of all that the graph defines."""
    size: int
    """How many nodes it has."""
    nodes: GraphNodes
    """Nodes that are shown."""
    groups: GraphGroups
    """Groups that are shown."""
    edges: GraphEdges
    """What depends on what."""
