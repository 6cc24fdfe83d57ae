"""The progress of a run in numbers, and shown as a line now and then; `bar.py` is for a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Self

import typer

from ...base.clock import SECOND
from ...core.model import GetRun, ListNodes, NodeRow, NodeStatus, RunRow
from ...core.model.lines import Progress, latest_progress
from ...core.store import reader
from ...engine.calls import Calls
from ...engine.runs.stored import StoredRun
from ...errors import RunStillActive
from .words import duration, how_far, plain

LOOK_EVERY = 0.1
SHARE_OF_TIME = 0.05
"""Polling must not slow down the work: counting 100,000 nodes takes a while, so it is done less often."""

_DONE = (NodeStatus.COMPLETED, NodeStatus.SKIPPED)
_BEFORE = (NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING)
_BROKEN = (NodeStatus.FAILED, NodeStatus.INTERRUPTED)
BARS_UP_TO = 4
"""How many nodes have a bar of their own in the live display."""
_NAMES_IN_A_LINE = 4
NAMES_UP_TO = 12


class Tally(NamedTuple):
    """The progress of a run. The numbers need not add up: cancelled nodes are in none of them."""

    total: int
    done: int
    running: int
    waiting: int
    failed: int
    at_work: tuple[str, ...]
    """Some of those that run or wait for a time."""
    bars: tuple[tuple[str, Progress], ...] = ()
    """Nodes that say how far they are; these are not in `at_work`."""
    paused: bool = False


class Display:
    """Shows a tally whenever it is updated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None: ...

    def update(self, tally: Tally) -> None:
        raise NotImplementedError


def follow(engine: Calls, row: RunRow, showing: Display) -> None:
    """Show the progress of a run until it has ended, or is paused and none of its nodes run."""
    with showing as display:
        while True:
            began = time.monotonic()
            now = tally(engine, row)
            display.update(now)
            pause = max(LOOK_EVERY, (time.monotonic() - began) / SHARE_OF_TIME)
            try:
                status = engine.wait(row.id, pause).status
            except RunStillActive:
                continue
            # Running bodies may end and are recorded; leaving now would mean running them again.
            if status.terminal or (now.paused and not now.running):
                return
            time.sleep(pause)


def tally(engine: Calls, row: RunRow) -> Tally:
    at_work = ListNodes(row.id, limit=NAMES_UP_TO + 1, statuses=(NodeStatus.RUNNING, NodeStatus.WAITING))
    newest, nodes = engine.store.read([GetRun(row.id), at_work])
    row = newest or row  # a run that was healed has other nodes
    graph = engine.parts.code.graphs.of(row)
    counts = reader.count_nodes(engine.store, row.id, graph.removed)
    marks = latest_progress(reader.list_marks(engine.store, row.id, tuple(node.index for node in nodes)))
    specs = graph.in_order
    children = StoredRun(engine.store, row).children_of(nodes)

    def sum_of(*statuses: NodeStatus) -> int:
        return sum(counts.get(status, 0) for status in statuses)

    def named(node: NodeRow) -> str:
        name = plain(specs[node.index].name)
        if node.parked and node.index in children:
            return f"{name} (run {children[node.index]})"
        if node.status is NodeStatus.WAITING and node.due_at is not None:
            return f"{name} (again in {duration(max(0, node.due_at - engine.store.now()) / SECOND)})"
        return name if node.attempt <= 1 else f"{name} (attempt {node.attempt})"

    def marked(node: NodeRow) -> bool:
        return node.status is NodeStatus.RUNNING and node.index in marks and marks[node.index].attempt == node.attempt

    return Tally(
        len(graph),
        sum_of(*_DONE),
        sum_of(NodeStatus.RUNNING),
        sum_of(*_BEFORE),
        sum_of(*_BROKEN),
        tuple(named(node) for node in nodes if not marked(node)),
        tuple((named(node), marks[node.index].progress) for node in nodes if marked(node))[:BARS_UP_TO],
        row.status.paused,
    )


def elapsed(seconds: float) -> str:
    """In tenths while it is short, so that it does not change its width all the time."""
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


class Lines(Display):
    """A line after one second, then after two, four and so on, up to one in half a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._pause = 1.0
        self._next = self._began + self._pause

    def update(self, tally: Tally) -> None:
        now = self._now()
        if now < self._next:
            return
        self._pause = min(30.0, self._pause * 2)
        self._next = now + self._pause
        at_work = (*(f"{name} ({how_far(progress)})" for name, progress in tally.bars), *tally.at_work)
        more = ", ..." if len(at_work) > _NAMES_IN_A_LINE else ""
        names = f": {', '.join(at_work[:_NAMES_IN_A_LINE])}{more}" if at_work else ""
        typer.echo(
            f"{elapsed(now - self._began)}: {tally.done:,}/{tally.total:,} done, {tally.running:,} running, "
            f"{tally.waiting:,} waiting, {tally.failed:,} failed{', paused' if tally.paused else ''}{names}",
            err=True,
        )
