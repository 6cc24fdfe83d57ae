"""Those who wait for a run, and those who listen to all of them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from ..errors import InputError
from ..ids import NodeId, RunId
from ..model import AttemptStatus, NodeStatus, RunNews, RunStatus, Settle
from ..words import shown
from .pressure import BackpressureEvent
from .work import Held

log = logging.getLogger("stepwell")


class Waiter:
    """One thread that waits for one run."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._error: BaseException | None = None

    def wait(self, timeout: float | None) -> None:
        self._event.wait(timeout)
        self._event.clear()
        if self._error is not None:
            raise self._error

    def wake(self, error: BaseException | None = None) -> None:
        self._error = error
        self._event.set()


class Watch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[RunId, list[Waiter]] = {}

    @contextlib.contextmanager
    def waiting(self, run_id: RunId) -> Iterator[Waiter]:
        waiter = Waiter()
        with self._lock:
            self._waiters.setdefault(run_id, []).append(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters[run_id].remove(waiter)
                if not self._waiters[run_id]:
                    del self._waiters[run_id]

    def runs(self) -> tuple[RunId, ...]:
        with self._lock:
            return tuple(self._waiters)

    def tell(self, news: Iterable[RunNews]) -> None:
        for run in news:
            if (run.status.terminal or run.status is RunStatus.PAUSED) and run.run_id in self._waiters:
                with self._lock:
                    for waiter in self._waiters.get(run.run_id, ()):
                        waiter.wake()

    def trouble(self, error: BaseException | None, runs: Collection[RunId] | None = None) -> None:
        """The store does not take commits, so nobody knows when these runs, or any, will end: say so. None: it does again."""
        with self._lock:
            for run_id, waiters in self._waiters.items():
                if error is not None and (runs is None or run_id in runs):
                    for waiter in waiters:
                        waiter.wake(error)


class RunEvent(NamedTuple):
    run_id: RunId
    status: RunStatus


class NodeEvent(NamedTuple):
    """An attempt was settled and the store recorded it."""

    run_id: RunId
    node_id: NodeId
    name: str
    attempt: int
    attempt_status: AttemptStatus
    status: NodeStatus


class Events:
    """Listeners in this process. They are called by the thread that committed, so they should be quick."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Callable[[Any], None]]] = {"run": [], "node": [], "backpressure": []}

    def on(self, event: str, callback: Callable[[Any], None]) -> None:
        if not isinstance(event, str) or event not in self._listeners:
            raise InputError(f"no event {shown(event)}; there are: {', '.join(self._listeners)}")
        if not callable(callback):
            raise InputError(
                f"on({event!r}, {shown(callback)}): a function of one argument is needed, which is the event"
            )
        self._listeners[event].append(callback)

    def runs(self, news: Iterable[RunNews]) -> None:
        if self._listeners["run"]:
            for run in news:
                self._call("run", RunEvent(run.run_id, run.status))

    def settled(self, settled: list[tuple[Held, Settle, bool]]) -> None:
        if self._listeners["node"]:
            for held, op, recorded in settled:
                if recorded:
                    spec = held.spec
                    event = NodeEvent(held.facts.run_id, spec.id, spec.name, held.number, op.status, op.node)
                    self._call("node", event)

    def pressed(self, event: BackpressureEvent) -> None:
        self._call("backpressure", event)

    def _call(self, event: str, value: object) -> None:
        for callback in self._listeners[event]:
            try:
                callback(value)
            except Exception:
                log.exception("a listener for %r events failed", event)
