"""How a run is getting on, while somebody watches: a bar on a terminal (`bar.py`), a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Protocol

import typer

from ..clock import SECOND
from ..errors import RunStillActive
from ..model import CountNodes, GetRun, ListNodes, NodeRow, NodeStatus, RunRow
from ..runner import Engine
from .words import duration

LOOK_EVERY = 0.1
SHARE_OF_TIME = 0.05
"""Looking must not slow down the work: counting 100,000 nodes takes a while, so it is then done less often."""

_DONE = (NodeStatus.COMPLETED, NodeStatus.SKIPPED)
_BEFORE = (NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING)
_BROKEN = (NodeStatus.FAILED, NodeStatus.INTERRUPTED)
NAMES_UP_TO = 12
_NAMES_IN_A_LINE = 4


class Tally(NamedTuple):
    """How a run stands. The four numbers need not add up: nodes that were cancelled are none of them."""

    total: int
    done: int
    running: int
    waiting: int
    failed: int
    at_work: tuple[str, ...]
    """Some of those that run or wait for a time."""


class Progress(Protocol):
    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, tally: Tally) -> None: ...


def follow(engine: Engine, row: RunRow) -> None:
    """Show the progress of a run until it has ended."""
    pause = LOOK_EVERY
    with _progress() as progress:
        while True:
            began = time.monotonic()
            progress.update(tally(engine, row))
            pause = max(LOOK_EVERY, (time.monotonic() - began) / SHARE_OF_TIME)
            try:
                engine.wait(row.id, pause)
                return
            except RunStillActive:
                continue


def tally(engine: Engine, row: RunRow) -> Tally:
    at_work = ListNodes(row.id, limit=NAMES_UP_TO + 1, statuses=(NodeStatus.RUNNING, NodeStatus.WAITING))
    counts, nodes, now = engine.store.read([CountNodes(row.id), at_work, GetRun(row.id)])
    row = now or row  # it may have been healed meanwhile
    specs = engine.graph_of(row).in_order

    def sum_of(*statuses: NodeStatus) -> int:
        return sum(counts.get(status, 0) for status in statuses)

    def named(node: NodeRow) -> str:
        name = specs[node.index].name
        if node.status is NodeStatus.WAITING and node.due_at is not None:
            return f"{name} (again in {duration(max(0, node.due_at - engine.store.now()) / SECOND)})"
        return name if node.attempt <= 1 else f"{name} (attempt {node.attempt})"

    running, names = sum_of(NodeStatus.RUNNING), tuple(map(named, nodes))
    return Tally(row.nodes, sum_of(*_DONE), running, sum_of(*_BEFORE), sum_of(*_BROKEN), names)


def _progress() -> Progress:
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Lines()
    from .bar import Bar

    return Bar()


def elapsed(seconds: float) -> str:
    """In tenths while it is short, so that it does not change its width all the time."""
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


class Lines:
    """A line after one second, then after two, four and so on, up to one in half a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._pause = 1.0
        self._next = self._began + self._pause

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, tally: Tally) -> None:
        now = self._now()
        if now < self._next:
            return
        self._pause = min(30.0, self._pause * 2)
        self._next = now + self._pause
        more = ", ..." if len(tally.at_work) > _NAMES_IN_A_LINE else ""
        names = f": {', '.join(tally.at_work[:_NAMES_IN_A_LINE])}{more}" if tally.at_work else ""
        typer.echo(
            f"{elapsed(now - self._began)}: {tally.done:,}/{tally.total:,} done, {tally.running:,} running, "
            f"{tally.waiting:,} waiting, {tally.failed:,} failed{names}",
            err=True,
        )
