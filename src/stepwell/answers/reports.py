"""Reports on a run: why it has its status, its metrics, checkpoints and effects, comparisons and audits."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from ..core.model import NodeStatus, RunStatus
from .causes import CauseKind


class CauseRecord(TypedDict):
    """One reason, and the reasons behind it."""

    kind: CauseKind
    """What kind of reason it is."""
    node: str | None
    """The id of the node it is about."""
    name: str | None
    """The name of that node, with its id if several nodes have the name."""
    attempt: int | None
    """The number of the attempt it is about."""
    at: str | None
    """When it happened or is due."""
    detail: dict[str, Any]
    """More; which keys there are depends on the kind."""
    because: list[CauseRecord]
    """The reasons behind it, down to the root."""


class ConfigRecord(TypedDict):
    """The config of a node of a document."""

    written: dict[str, Any]
    """As it is written."""
    rendered: Any
    """As its templates were rendered for the latest attempt; null before the first."""


class UsualTimes(TypedDict):
    """How long the latest runs of a workflow took that completed, or one node of each."""

    count: int
    """How many of these times there are."""
    median_seconds: float | None
    """Their median; null if there are none."""
    longest_seconds: float | None
    """The longest of them."""


class WhyRecord(TypedDict):
    """Why a run, or one of its nodes, has its status."""

    run: str
    """The id of the run."""
    workflow: str
    """The name of its workflow."""
    run_status: RunStatus
    """The status of the run."""
    node: str | None
    """The id of the node that was asked about; null if it was the run."""
    name: str | None
    """The name of that node."""
    status: RunStatus | NodeStatus
    """The status that is explained: of the node, or of the run."""
    reason: str | None
    """Of a run: why it has this status, in one word."""
    causes: list[CauseRecord]
    """The reasons."""
    advice: list[str]
    """What can be done about it."""
    text: str
    """All of it for people, line by line."""


class WhyDetail(WhyRecord):
    """Why a run, or one of its nodes, has its status, with the config of a node of a document."""

    config: ConfigRecord | None
    """The config of the node that was asked about, if it is of a document."""


class AuditRecord(TypedDict):
    """The invariants of a run, recomputed from its rows."""

    run: str
    """The id of the run."""
    status: RunStatus
    """Its status."""
    journal_entries: int
    """How many entries of its journal were checked."""
    problems: list[str]
    """The invariants that do not hold."""


class LatencyRecord(TypedDict):
    """How long things of one kind took, in seconds. Percentiles are values that occurred."""

    samples: int
    """How many there were."""
    total: float
    """Their sum."""
    average: float
    """Their average."""
    p50: float
    """The median."""
    p95: float
    """95 % took at most this long."""
    most: float
    """The longest."""


class MetricsRecord(TypedDict):
    """A run in numbers, all of one moment."""

    run_id: str
    """The id of the run."""
    status: RunStatus
    """Its status."""
    steps: int
    """Entries of its journal."""
    nodes: int
    """How many nodes it has."""
    active: int
    """Nodes RUNNING now."""
    most_active: int
    """The most attempts that were claimed and not settled at once."""
    queued: int
    """Nodes READY now."""
    most_queued: int
    """The most that were READY at once."""
    executed: int
    """Nodes with an attempt whose body ran to an end, good or bad."""
    attempts: int
    """How many attempts there were."""
    retries: int
    """Attempts made because the one before had failed or timed out."""
    lost: int
    """Attempts whose worker was lost."""
    released: int
    """Attempts given back before their body began."""
    heals: int
    """How often the run switched to changed code."""
    wall_seconds: float
    """From its first claim to its end, or until now."""
    average_active: float
    """How many attempts were claimed and not settled, on average."""
    step_latency: LatencyRecord
    """Of attempts whose body ran to an end: from the claim to the settlement."""
    queue_latency: LatencyRecord
    """Of all attempts: from the moment their node became READY to the claim."""


class EffectErrorRecord(TypedDict):
    """What an effect raised, as it was recorded."""

    type: str
    """The class of the exception."""
    message: str
    """Its message."""
    bases: list[str]
    """The classes it is derived from."""
    args: NotRequired[Any]
    """Its arguments, if they are JSON."""
    attributes: NotRequired[dict[str, Any]]
    """Its attributes, if it has any that are JSON."""
    exceptions: NotRequired[list[EffectErrorRecord]]
    """Of a group: its members."""


class EffectRecord(TypedDict):
    """What a body requested of the outside world, and what came back, as it was recorded."""

    node: str
    """The id of the node."""
    attempt: int
    """The number of the attempt."""
    index: int
    """Its number in the attempt."""
    name: str
    """The name of the effect."""
    request: Any
    """What was requested."""
    response: Any
    """What came back."""
    error: EffectErrorRecord | None
    """What it raised, if it did."""
    request_hash: str
    """The SHA-256 of the request."""
    response_hash: str
    """The SHA-256 of the response."""
    occurrence: int
    """How often the attempt had made the same request before."""
    time: float
    """When it began, in seconds since 1970."""
    seconds: float
    """How long it took."""
    durable: bool
    """Whether it is not repeated when the node runs again."""
    awaited: bool
    """Whether it was made by a coroutine."""
    from_attempt: int | None
    """The attempt that got the response first, if it was not this one."""
    masked: bool
    """Whether `***` stands for a secret in its response."""
    open: bool
    """Whether its body ended without waiting for the response."""


class LabelRecord(TypedDict):
    """A name that a body gave to a checkpoint."""

    label: str
    """The name."""
    step: int
    """The `seq` of the journal entry that it stands for."""
    time: float
    """When that was, in seconds since 1970."""
    node: str
    """The id of the node."""
    attempt: int
    """The number of the attempt."""


class WorkItemRecord(TypedDict):
    """A node that was READY, RUNNING or WAITING."""

    node: str
    """Its id."""
    status: NodeStatus
    """Its status then."""
    attempt: int
    """The running attempt, or the next one."""
    level: int
    """The length of the longest path to it from a node without parents."""
    order_key: str
    """Its place in the order of the graph: a whole number, as text."""
    parents: list[str]
    """The ids of its parents."""
    edge: int
    """Its place among the children of its first parent, or among the nodes without parents."""


class CheckpointRecord(TypedDict):
    """A run as it was at one `seq` of its journal."""

    version: int
    """The version of this form."""
    run_id: str
    """The id of the run."""
    step: int
    """The `seq`."""
    state: dict[str, Any] | None
    """The state of the workflow; null if it declares none."""
    frontier: list[WorkItemRecord]
    """The nodes that were READY, RUNNING or WAITING."""
    seed: str
    """The seed of the run: a whole number, as text."""
    effects: list[EffectRecord]
    """The effects of attempts that had ended."""
    idempotency_key: str
    """A hash that identifies this checkpoint."""
    timestamp: str
    """When it was."""
    label: str | None
    """The last name that a body gave it."""


class ChangeRecord(TypedDict):
    """One place in JSON that differs. Values are JSON, shortened; null where there is nothing."""

    path: str
    """The place, such as `$.total`."""
    first: str | None
    """The value there in the first."""
    second: str | None
    """The value there in the second."""


class SideRecord(TypedDict):
    """One of two runs."""

    run: str
    """The id of the run."""
    workflow: str
    """The name of its workflow."""
    status: RunStatus
    """Its status."""
    seconds: float | None
    """How long it took; null before its end."""
    input: Any
    """Its input."""
    digest: str
    """The digest of its graph."""


class NodeFactsRecord(TypedDict):
    """A node as it is in one of two runs."""

    status: NodeStatus
    """Its status."""
    attempts: int
    """How many attempts it had."""
    seconds: float | None
    """The total time of its ended attempts."""
    output_sha256: str | None
    """The SHA-256 of its output; null until it has completed."""
    delta_sha256: str | None
    """The SHA-256 of its change to the state of the workflow, if there was one."""


class PairRecord(TypedDict):
    """A node as it is in both runs, or in one."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    differs: list[Literal["output", "delta", "missing", "status", "attempts"]]
    """In which respects it differs; never in time, which always does."""
    first: NodeFactsRecord | None
    """The node in the first run; null if it is not there."""
    second: NodeFactsRecord | None
    """The node in the second run; null if it is not there."""
    ratio: float | None
    """The time in the second run divided by that in the first."""
    output: list[ChangeRecord]
    """Where the outputs differ; only of the first nodes that differ."""
    delta: list[ChangeRecord]
    """Where the changes to the state differ, of the same nodes."""


class ComparisonRecord(TypedDict):
    """Two runs side by side."""

    same_outputs: bool
    """Whether all nodes have the same outputs."""
    same_deltas: bool
    """Whether all nodes changed the state alike."""
    first: SideRecord
    """The first run."""
    second: SideRecord
    """The second run."""
    input: list[ChangeRecord]
    """Where their inputs differ."""
    graph: list[ChangeRecord]
    """Where the nodes that both have are defined differently."""
    nodes: list[PairRecord]
    """The nodes of both, those that differ first."""
    size: int
    """How many nodes there are."""
    different: int
    """How many of them differ."""
    groups: dict[str, int]
    """How many of these are in each group of the graph of the second run, by its id; without groups that have none."""
    next: str | None
    """Pass it as `cursor` to get the nodes after these; null at the end."""


class ReplayRecord(TypedDict):
    """A replay that found no difference."""

    run_id: str
    """The id of the run."""
    executed: list[str]
    """The nodes whose bodies ran again, in order."""
    stubbed: dict[str, str]
    """The nodes whose outputs came from the record, and why."""
    effects: int
    """How many effects were served from the record."""
    seconds: float
    """How long it took."""


class MismatchRecord(TypedDict):
    """The first difference between a replay and what was recorded."""

    what: str
    """What differs."""
    node: str | None
    """The node; null if it is the graph that differs."""
    attempt: int | None
    """The number of the attempt whose record was replayed."""
    effect: int | None
    """The place of the effect among those of the attempt, -1: what `ctx.now()` gave; null if it is the output that differs."""
    diff: list[str]
    """A line for each place that differs."""


class ReplayOutcome(TypedDict):
    """What replaying a run with the code of a worker found: either a replay without a difference, or the first difference."""

    run: str
    """The id of the run."""
    replay: ReplayRecord | None
    """The replay, if nothing differs."""
    mismatch: MismatchRecord | None
    """The first difference, if something does."""
