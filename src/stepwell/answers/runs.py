"""Runs: how they stand, and what a request did to them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

from ..core.model import NodeStatus, RunStatus
from .nodes import NodeSummary
from .reports import MetricsRecord


class OriginRecord(TypedDict):
    """What a fork was made from."""

    run: str
    """The id of the run that was forked."""
    seq: int
    """How many entries its journal had then."""
    node: str | None
    """The node before which the fork begins, if one was named."""


class AncestorRecord(TypedDict):
    """A run above a child run, and its node that the next run below performs."""

    run: str
    """The id of the run."""
    workflow: str
    """The name of its workflow."""
    node: str
    """The id of the node."""
    name: str
    """The name of the node."""


class RunChange(TypedDict):
    """A run as the stream of all runs sends it whenever it changes."""

    id: str
    """Its id."""
    workflow: str
    """The name of its workflow."""
    status: RunStatus
    """Its status."""
    reason: str | None
    """Why it has this status, where that does not go without saying: `node_failed` of a run that a failure paused."""
    error: str | None
    """The class of the error with which its first node failed; null if none has, or all that had were asked for again."""
    seq: int
    """How many entries its journal has."""
    nodes_total: int
    """How many nodes it has."""
    nodes_open: int
    """How many of them have not ended."""
    nodes_failed: int
    """How many of them failed."""
    tags: dict[str, str]
    """Its tags."""
    parent: str | None
    """Of a child run: the id of the run of which it performs a node."""
    root: str
    """The id of the run at the top of its tree: its own if it is no child run."""
    depth: int
    """How many runs are above it."""
    created_at: str
    """When it was created."""
    started_at: str | None
    """When the first of its nodes was claimed."""
    ended_at: str | None
    """When it ended."""


class RunRecord(RunChange):
    """A run, as lists have it."""

    target: str | None
    """The class it was started from, as `package.module:Class`; null for documents and graphs."""
    priority: int
    """Nodes of runs with a larger one are claimed first."""
    idempotency_key: str | None
    """The key it was started with; the same key is the same run."""
    deadline_at: str | None
    """When it fails if it has not ended by then."""
    seconds: float | None
    """How long it took; null before its end."""
    origin: OriginRecord | None
    """What it was forked from; null if it is no fork."""
    parent_node: str | None
    """Of a child run: the id of the node that it performs; null if its parent is gone."""
    path: str
    """The id of its root and the names of the nodes down to the one that it performs, as in `order-7/imported/load`."""


CountBy: TypeAlias = Literal["status", "workflow", "hour", "day"]


class RunCount(TypedDict):
    """How many runs have one status, one workflow, or were created in one hour or on one day."""

    value: str
    """The status, the name of the workflow, or when the hour or day begins."""
    count: int
    """How many runs that are."""
    exact: bool
    """Whether these are all; otherwise there are at least so many."""


class RunCountsRecord(TypedDict):
    """How many runs there are."""

    by: CountBy
    """What they are counted by."""
    counts: list[RunCount]
    """The counts, in order of their values; what no run has is left out."""
    total: int
    """How many runs were counted."""
    exact: bool
    """Whether these are all; otherwise there are at least so many."""


class DocumentReference(TypedDict):
    """The document that a run is a run of."""

    digest: str
    """The SHA-256 of its canonical form."""
    version: int | None
    """Its version, if it was saved."""


class RunDetail(RunRecord):
    """A run with its input, and how many of its nodes have which status."""

    input: Any
    """Its input."""
    digest: str
    """The digest of its graph."""
    document: DocumentReference | None
    """The document it is a run of; null if it was started from a class or a graph."""
    heals: int
    """How often it switched to changed code."""
    counts: dict[NodeStatus, int]
    """How many nodes have each status."""
    forks: list[str]
    """The ids of its forks, the newest first."""
    ancestors: list[AncestorRecord]
    """Of a child run: the runs above it, the root first."""


class RunReport(RunDetail):
    """All of a run, as `stepwell show --json` prints it."""

    result: Any
    """The output of its last node, or those of its last nodes by name."""
    metrics: MetricsRecord
    """The run in numbers."""
    nodes: list[NodeSummary]
    """Its nodes, by level and then as they were declared."""
    removed_nodes: list[NodeSummary]
    """Nodes that only earlier versions of its graph had."""


class ResultsRecord(TypedDict):
    """What a run is for."""

    run: str
    """The id of the run."""
    status: RunStatus
    """Its status."""
    result: Any
    """The output of its last node, or those of its last nodes by name."""


class TouchedNode(TypedDict):
    """A node that a request would change."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    status: NodeStatus
    """Its status now."""
    becomes: NodeStatus
    """The status it would have."""


class SteeredRun(TypedDict):
    """What a request did to a run, or would do."""

    run: str
    """The id of the run."""
    status: RunStatus
    """Its status now."""
    becomes: RunStatus | None
    """The status that the request leads to; null if it keeps the one it has."""
    dry_run: bool
    """Whether nothing was changed."""
    nodes: list[TouchedNode]
    """With `dry_run`: the nodes that would change."""


class PreviewedRun(TypedDict):
    """A run as a preview found it."""

    run: str
    """The id of the run."""
    created_at: str
    """When it was created."""
    status: RunStatus
    """Its status."""
    seq: int
    """How many entries its journal had."""


class BulkOutcome(TypedDict):
    """What a bulk request did to one run."""

    run: str
    """The id of the run."""
    status: RunStatus | None
    """Its status now; null if it is gone."""
    outcome: Literal["done", "refused", "changed"]
    """`done`: it was accepted, or with `dry_run` would be. `changed`: nothing was requested, because the run is not what it was
    when it was previewed."""
    detail: str | None
    """Why it was refused, or what has changed."""
    nodes: int | None
    """With `dry_run`: how many of its nodes would change; null if it would be refused."""
    fork: str | None
    """Of fork: the id of the new run."""


class BulkRecord(TypedDict):
    """What a request did to many runs, or would do."""

    verb: Literal["retry", "reattempt", "cancel", "pause", "resume", "fork"]
    """What was requested."""
    dry_run: bool
    """Whether nothing was changed."""
    at: str
    """When it was requested."""
    matched: int
    """How many runs there are below."""
    done: int
    """How many of them accepted it, or with `dry_run` would."""
    refused: int
    """How many of them refused it."""
    changed: int
    """How many of them are not what they were when they were previewed."""
    nodes: int
    """With `dry_run`: how many nodes of all these runs would change."""
    runs: list[BulkOutcome]
    """Each of these runs; with `dry_run`, the newest first."""
    preview: list[PreviewedRun]
    """With `dry_run`: the runs that would accept it. Send it back as `preview` to have it done to them."""
    more: bool
    """Whether more runs match than one request takes."""
    next: str | None
    """Pass it as `cursor` to preview the runs after these."""


class DeletedRuns(TypedDict):
    """What `stepwell gc` deleted, or would delete."""

    dry_run: bool
    """Whether nothing was deleted."""
    deleted: int
    """How many runs were deleted."""
    runs: list[RunRecord]
    """Those runs."""
    graphs: int
    """How many graphs no run has any more."""
    audit_log: int
    """How many entries of the audit log were too old."""


class CopiedRunRecord(TypedDict):
    """A run that `stepwell copy` met."""

    run_id: str
    """Its id."""
    workflow: str
    """The name of its workflow."""
    outcome: Literal["copied", "moved", "there", "left", "refused"]
    """`there`: the other store had it already; `left`: it has not ended; `refused`: see `detail`."""
    detail: str
    """What to know about it; mostly empty."""
    nodes: int
    """How many nodes were copied."""
    attempts: int
    """How many attempts were copied."""


CopyRecord = TypedDict("CopyRecord", {"from": str, "to": str, "runs": list[CopiedRunRecord]})
"""What `stepwell copy` did, from one store to the other."""
