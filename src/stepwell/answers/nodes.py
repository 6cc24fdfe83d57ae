"""Nodes of a run, their attempts and outputs; the journal, log lines and frozen graphs."""

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from ..core.graph.spec import Join
from ..core.model import AttemptStatus, JournalKind, NodeStatus


class ErrorRecord(TypedDict):
    """What a body raised."""

    type: str
    """The class of the exception."""
    message: str
    """Its message."""
    traceback: str | None
    """Its traceback, where it is asked for."""


class ProgressRecord(TypedDict):
    """The latest progress that a body reported."""

    done: float
    """How much is done."""
    total: float | None
    """Of how much, if the body says so."""
    message: str | None
    """What it is doing."""
    fraction: float | None
    """`done` divided by `total`, from 0 to 1; null without a total."""


class NodeProgress(TypedDict):
    """How far a RUNNING node is."""

    node: str
    """The id of the node."""
    progress: ProgressRecord
    """The latest that its attempt reported."""


class NodeRecord(TypedDict):
    """A node of a run, as lists have it."""

    id: str
    """Its id, which is unique in its run."""
    name: str
    """Its name, which several nodes may share."""
    index: int
    """Its number in the run, from 0."""
    status: NodeStatus
    """Its status."""
    reason: str | None
    """Why it has this status, where that does not go without saying."""
    attempts: int
    """How many attempts it had."""
    failures: int
    """How many of them count as failed by its retry policy."""
    queue: str
    """The queue from which workers take it."""
    due_at: str | None
    """Of a WAITING node: when it becomes READY."""
    child: str | None
    """The id of the run that performs it; null if none does, and of nodes as they were earlier."""


class NodePage(TypedDict):
    """A part of the nodes of a run."""

    items: list[NodeRecord]
    """What is on this page, in order."""
    next: str | None
    """Pass it as `cursor` to get the page after this one; null at the end."""
    seq: int
    """How many entries the journal of the run had when they were read."""


class NodeSummary(NodeRecord):
    """A node with its times, error and progress."""

    started_at: str | None
    """When its first attempt was claimed."""
    ended_at: str | None
    """When its latest attempt ended."""
    seconds: float | None
    """The total time of its ended attempts."""
    error: ErrorRecord | None
    """Why it has not completed. Errors of earlier attempts of a completed node are with its attempts."""
    progress: ProgressRecord | None
    """The latest progress it reported."""


class AttemptRecord(TypedDict):
    """One try at a node."""

    id: str
    """Its id."""
    number: int
    """Its number, from 1."""
    status: AttemptStatus
    """How it ended, or RUNNING."""
    worker: str
    """The id of the worker that claimed it."""
    started_at: str
    """When it was claimed."""
    ended_at: str | None
    """When it was settled."""
    seconds: float | None
    """The time between."""
    idempotency_key: str | None
    """What `ctx.idempotency_key` gave its body; null if a function of the node made it, and of an attempt that a fork
    shares with the run in which it was made."""
    config: Any
    """Of a document: the config as its templates were rendered for this attempt."""
    outcome: dict[str, Any]
    """What its handler noted about it, such as the status of an HTTP response."""
    error: ErrorRecord | None
    """Why it did not complete."""


class AttemptDetail(AttemptRecord):
    """One try at a node, and what it depended on."""

    ancestry: str | None
    """A hash of its node, its number, and the attempts with which its parents completed; null while a parent has not."""


class OutputRecord(TypedDict):
    """What a node returned."""

    node: str
    """The id of the node."""
    name: str
    """Its name."""
    size: int
    """Bytes of its JSON."""
    sha256: str
    """The SHA-256 of its JSON."""
    href: str
    """The path of the HTTP API that has it, whole or in ranges."""
    value: Any
    """The output itself, if it is not too large for this answer; else null."""
    inline: bool
    """Whether `value` has it."""


class NodeDetail(NodeSummary):
    """A node with its attempts, its config as it is written, and its output."""

    run: str
    """The id of its run."""
    seq: int
    """How many entries the journal of the run had when it was read."""
    job: str | None
    """The code it runs, as `package.module:function` or as the name of a handler; null of a method of its class."""
    depends_on: list[str]
    """The ids of its parents."""
    level: int
    """The length of the longest path to it from a node without parents."""
    condition: str | None
    """Its condition, `when`, as the graph has it; null if it has none."""
    join: Join
    """When skipped parents skip it: `any`, if all of them were; `all`, as soon as one was."""
    config: dict[str, Any]
    """Its arguments; of a document, the config as it is written."""
    idempotency_key: str | None
    """What `ctx.idempotency_key` gives its body now; null if a function of the node makes it."""
    own_idempotency_key: bool
    """Whether a function of the node makes its key, `idempotency_key=`. Only attempts call it, so the key is not known here."""
    attempt_list: list[AttemptRecord]
    """Its attempts, the first one first."""
    output: OutputRecord | None
    """What it returned; null until it has completed."""


class JournalRecord(TypedDict):
    """An entry of the journal of a run: a transition of the run, or of one of its nodes."""

    seq: int
    """Its number, from 1."""
    at: str
    """When it happened."""
    kind: JournalKind
    """What happened."""
    node: str | None
    """The id of the node; null if it is about the run."""
    attempt: int | None
    """The number of the attempt, if it is about one."""
    status: str | None
    """The status after it; of a gate, its purpose."""


class LineRecord(TypedDict):
    """A line that a body logged or printed."""

    run: str
    """The id of the run."""
    node_id: str
    """The id of the node."""
    node: str
    """The name of the node."""
    attempt: int
    """The number of the attempt."""
    index: int
    """The number of the line in its attempt. With the node and the attempt it tells which line this is."""
    time: str
    """When it was logged, by the clock of the worker."""
    level: str
    """Its level, such as INFO."""
    logger: str
    """The name of its logger; `stdout` or `stderr` of what was printed."""
    message: str
    """The line."""


class LinePage(TypedDict):
    """Lines of a run, by time."""

    items: list[LineRecord]
    """What is on this page, in order."""
    next: str | None
    """Pass it as `cursor` to get the page after this one; null at the end, and on pages that are read from there."""
    before: str | None
    """Pass it as `before` for the lines before these; null at the beginning, and on pages that are read from there."""
    since: str
    """Pass it as `since` later for what was stored after this page was read. Lines of its last seconds may come again."""


@with_config(ConfigDict(extra="allow"))
class FrozenNode(TypedDict):
    """A node as it can be edited. Besides these fields it has its options, each only if it differs from its default."""

    name: str
    """Its name."""
    job: NotRequired[str]
    """The code it runs; of a method of its class there is none."""
    args: dict[str, Any]
    """Its arguments."""
    depends_on: list[str]
    """The ids of its parents."""
    position: int
    """Its place among the nodes that were declared."""


class FrozenGraph(TypedDict):
    """A graph in the form that can be edited and put back."""

    version: int
    """The version of this form."""
    signature: str
    """The SHA-256 of its nodes and dependencies by name."""
    frozen_at: str
    """When the run was created."""
    state: NotRequired[str]
    """The class of its state, if it has one."""
    nodes: dict[str, FrozenNode]
    """Its nodes, by id."""
