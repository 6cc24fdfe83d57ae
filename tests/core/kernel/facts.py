"""Rows as a store would give them, for what is computed from them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stepwell.base.clock import SECOND
from stepwell.base.codec import encode
from stepwell.base.ids import AttemptId, Digest, NodeId, RunId, WorkerId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.model import AttemptRow, AttemptStatus, GateState, JournalRow, NodeRow, NodeStatus, RunRow, RunStatus
from stepwell.history.why import Facts, KnownNode, Why, Worker, explain, most_telling

NOW = int(datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC).timestamp()) * SECOND
ALIVE = Worker(WorkerId("w"), "build-3", 4711)


def ago(seconds: float) -> int:
    return NOW - int(seconds * SECOND)


def graph(**parents: str | NodeSpec) -> Graph:
    """`graph(a="", b="a")`: b depends on a. A NodeSpec says more than that."""
    specs = [
        given if isinstance(given, NodeSpec) else NodeSpec(NodeId(name), name, tuple(map(NodeId, given.split())))
        for name, given in parents.items()
    ]
    return Graph(specs)


def run_row(of: Graph, status: str = "RUNNING", **changes: Any) -> RunRow:
    gate = GateState.OPEN if status in ("PENDING", "RUNNING") else GateState.SHUT
    row = RunRow(
        RunId("r-1"),
        "Order",
        "shop:Order",
        Digest("d" * 64),
        RunStatus(status),
        "fail_fast",
        b"{}",
        7,
        0,
        None,
        gate,
        None,
        False,
        len(of),
        0,
        0,
        0,
        9,
        ago(600),
        ago(599),
        ago(5) if RunStatus(status).terminal else None,
        None,
        None,
    )
    return row._replace(**changes)


def known(of: Graph, node: str, status: str, *attempts: AttemptRow, **changes: Any) -> KnownNode:
    index = of.index[node]
    own = tuple(attempt._replace(index=index, number=number) for number, attempt in enumerate(attempts, 1))
    row = NodeRow(
        index,
        NodeId(node),
        NodeStatus(status),
        len(own),
        len(of.parents[index]),
        len(of.parents[index]),
        sum(each.status in (AttemptStatus.FAILED, AttemptStatus.TIMED_OUT) for each in own),
        sum(each.status is AttemptStatus.LOST for each in own),
        of.nodes[node].lane,
        None,
        None,
    )
    return KnownNode(row._replace(**changes), own)


def attempt(status: str, seconds_ago: float = 10, error: str | None = None, message: str = "broken") -> AttemptRow:
    """It ended so many seconds ago; one that runs began then."""
    running = status == "RUNNING"
    said = None if error is None else encode({"type": error, "message": message})
    began = ago(seconds_ago) if running else ago(seconds_ago + 2)
    ended = None if running else ago(seconds_ago)
    return AttemptRow(AttemptId("c.0"), 0, 0, AttemptStatus(status), WorkerId("w"), began, ended, None, said, None)


def entry(seq: int, kind: str, status: str, index: int | None = None, number: int | None = None) -> JournalRow:
    """The n-th entry was written n minutes before noon, counted down from ten."""
    return JournalRow(seq, ago(60 * (10 - seq)), kind, index, number, status)


def why(of: Graph, node: str | None, *nodes: KnownNode, run: RunRow | None = None, **more: Any) -> Why:
    """The answer, when these nodes were read; those that can hold others up do."""
    telling = [each for each in nodes if each.row.status in ("FAILED", "INTERRUPTED", "WAITING", "RUNNING", "READY")]
    given = {"workers": (ALIVE,), "blockers": most_telling(each for each in telling if each.row.id != node), **more}
    facts = Facts(run or run_row(of), lambda: of, NOW, nodes={each.row.id: each for each in nodes}, **given)
    return explain(facts, None if node is None else NodeId(node))


def text(answer: Why) -> list[str]:
    return answer.text(command="stepwell {}".format, zone=UTC).split("\n")
