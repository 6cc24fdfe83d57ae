"""Listeners in this process: `engine.on(event, callback)`.

Events come in the order of the engine's commits, which within a run is the order of `seq`. One thread calls the listeners, one
after the other, so none of them holds up work.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..base.clock import LONGEST_WAIT
from ..base.ids import NodeId, RunId
from ..base.words import shown
from ..core.kernel.children import may_be_child
from ..core.model import AttemptStatus, Batch, NodeStatus, Receipt, RunStatus, Settle, receipts
from ..core.store import Store, reader
from ..errors import InputError, StoreError
from .bodies.held import Held
from .bodies.raised import Raised
from .recent import Recent
from .scheduling.metrics import IDLE, EngineMetrics
from .scheduling.pressure import BackpressureEvent

log = logging.getLogger("stepwell")

EVENTS = ("run", "node", "backpressure", "metrics")
MAX_RUNS = 100_000
"""Runs whose latest event is remembered."""
MAX_WAITING = 1_000_000
"""Events that may wait for slow listeners; further ones are dropped, and that is logged."""
METRICS_SECONDS = 10.0
"""How often listeners get the metrics by default."""
CLOSE_SECONDS = 5.0
"""How long closing waits for the listeners to have heard everything."""


class RunEvent(NamedTuple):
    """A run has another status now."""

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
    """Turns commits into events and calls the listeners.

    The events of one run come in order, each once; what other processes did to it, when this one notices.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: dict[str, list[Callable[[Any], None]]] = {name: [] for name in EVENTS}
        self._every: list[_Periodic] = []
        """Listeners for metrics."""
        self.measure: Callable[[], EngineMetrics] = lambda: IDLE
        """What listeners for metrics get."""
        self.listening = False
        """Whether anybody listens to runs or nodes."""
        self.settling: Callable[[], Iterable[Held]] = tuple
        """The attempts that the current group commit settles."""
        self._told: Recent[RunId, tuple[int, RunStatus]] = Recent(MAX_RUNS)
        """The latest `seq` and status of each run."""
        self._children: Recent[RunId, bool] = Recent(MAX_RUNS)
        """Whether runs are child runs, of those whose ids look like it."""
        self._waiting: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._dropping = False
        self._thread: threading.Thread | None = None

    def on(self, event: str, callback: Callable[[Any], None], every: float | None = None) -> None:
        """`every`: seconds between two "metrics" events, and before the first."""
        if not isinstance(event, str) or event not in self._listeners:
            raise InputError(f"no event {shown(event)}; there are: {', '.join(self._listeners)}")
        if not callable(callback):
            raise InputError(
                f"on({event!r}, {shown(callback)}): expected a function of one argument, which is the event"
            )
        if inspect.iscoroutinefunction(callback):
            raise InputError(
                f"on({event!r}, {shown(callback)}): an async def is called on a loop, and this engine has none of "
                "yours; open it with `async with Engine(...) as engine`, or give a plain function"
            )
        if every is not None and event != "metrics":
            raise InputError(
                f"on({event!r}, ..., every=...): only metrics are told now and then; what happens, when it does"
            )
        with self._store.hooks.in_order:
            if event == "metrics":
                self._every.append(_Periodic(callback, METRICS_SECONDS if every is None else every))
                self._waiting.put(("", threading.Event()))  # wakes the thread, which looks when metrics are due
            else:
                self._listeners[event].append(callback)
            first, self.listening = not self.listening, bool(self._listeners["run"] or self._listeners["node"])
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="stepwell-events", daemon=True)
                self._thread.start()
        if first and self.listening:
            self._store.hooks.add(self._committed, in_order=True)

    # What happened

    def _committed(self, batch: Batch, answers: Sequence[Receipt]) -> None:
        """The store applied a batch. Its hooks are called in the order of commits."""
        news: dict[RunId, receipts.RunNews] = {}
        claimed: dict[RunId, None] = {}
        settled: list[Settle] = []
        for op, receipt in zip(batch, answers, strict=True):
            match receipt:
                case receipts.Settled():
                    settled.append(op)  # type: ignore[arg-type]
                    if op.child is not None:  # type: ignore[union-attr]
                        self._children[op.child.run_id] = True  # type: ignore[union-attr]
                    news[receipt.run.run_id] = receipt.run
                case receipts.Rewritten() | receipts.GateTaken():
                    news[receipt.run.run_id] = receipt.run
                case receipts.Swept():
                    news |= {run.run_id: run for run in receipt.runs}
                case receipts.Claimed():
                    claimed |= dict.fromkeys(grant.run_id for grant in receipt.grants)
                case receipts.Created(existed=False) | receipts.Deleted():
                    self._told.pop(op.run_id, None)  # type: ignore[union-attr]  # ids are used again
                    self._children.pop(op.run_id, None)  # type: ignore[union-attr]
                case _:
                    pass
        if settled and self._listeners["node"]:
            self._tell_settled(settled)
        for run in news.values():
            self._tell_run(run.run_id, run.status, run.seq)
        for run_id in claimed:
            before = self._told.get(run_id)
            if before is None or before[1] is RunStatus.PENDING:
                self._tell_run(run_id, RunStatus.RUNNING, 0 if before is None else before[0])

    def seen(self, news: Iterable[receipts.RunNews]) -> None:
        """The statuses of runs as they were read: they may be old, and other processes may have changed them."""
        if self.listening:
            for run in news:
                if self._is_new(run):
                    with self._store.hooks.in_order:  # the commit on its way may be what was read, and has more events
                        if self._is_new(run):
                            self._tell_run(run.run_id, run.status, run.seq)

    def pressed(self, event: BackpressureEvent) -> None:
        self._tell("backpressure", event)

    def _is_new(self, run: receipts.RunNews) -> bool:
        before = self._told.get(run.run_id)
        return before is None or (run.seq > before[0] and run.status is not before[1])

    def _tell_settled(self, settled: list[Settle]) -> None:
        held = {each.attempt: each for each in self.settling()}
        for op in settled:
            attempt = held.get(op.attempt)
            if attempt is not None:
                run_id, spec = attempt.facts.run_id, attempt.spec
                self._tell("node", NodeEvent(run_id, spec.id, spec.name, attempt.number, op.status, op.node))

    def _tell_run(self, run_id: RunId, status: RunStatus, seq: int) -> None:
        before = self._told.get(run_id)
        self._told[run_id] = seq, status
        if before is None or status is not before[1]:
            self._tell("run", RunEvent(run_id, status))

    # Telling it

    def _tell(self, event: str, value: object) -> None:
        if not self._listeners[event]:
            return
        if self._waiting.qsize() < MAX_WAITING:
            self._dropping = False
            self._waiting.put((event, value))
        elif not self._dropping:
            self._dropping = True
            log.error("listeners are so slow that %d events wait for them; what comes now is dropped", MAX_WAITING)

    def wait_until_heard(self) -> None:
        """Wait until the listeners have been called for every event so far."""
        if self._thread is not None and threading.current_thread() is not self._thread:
            heard = threading.Event()
            with self._store.hooks.in_order:  # after the events of a commit that others may have seen already
                self._waiting.put(("", heard))
            heard.wait(CLOSE_SECONDS)

    def close(self) -> None:
        self.wait_until_heard()
        self._waiting.put(None)

    def _serve(self) -> None:
        while True:
            try:
                item = self._waiting.get(timeout=self._tell_metrics())
            except queue.Empty:
                continue
            if item is None:
                return
            event, value = item
            if isinstance(value, threading.Event):
                value.set()
                continue
            if isinstance(value, RunEvent | NodeEvent) and self._is_child(value.run_id):
                continue
            for callback in tuple(self._listeners[event]):
                _call(event, callback, value)

    def _is_child(self, run_id: RunId) -> bool:
        """Whether a run performs a node of another one. Asked in the thread of the listeners, which may wait for the store."""
        if not may_be_child(run_id):
            return False
        known = self._children.get(run_id)
        if known is None:
            try:
                row = reader.get_run(self._store, run_id)
            except StoreError:
                return True
            known = self._children[run_id] = row is None or row.parent is not None
        return known

    def _tell_metrics(self) -> float | None:
        """Call the listeners that are due; the seconds until the next one is."""
        if not self._every:
            return None
        for each in self._every:
            if each.is_due(time.monotonic()):
                _call("metrics", each.callback, self.measure())
        return min(LONGEST_WAIT, *(max(0.0, each.at - time.monotonic()) for each in self._every))


class _Periodic:
    """A listener that is called at regular intervals; times that were missed are left out."""

    def __init__(self, callback: Callable[[Any], None], seconds: float) -> None:
        self.callback = callback
        self.seconds = seconds
        self.at = time.monotonic() + seconds

    def is_due(self, now: float) -> bool:
        due = now >= self.at
        if due:
            self.at = max(self.at + self.seconds, now)
        return due


def _call(event: str, callback: Callable[[Any], None], value: object) -> None:
    try:
        callback(value)
    except BaseException as error:  # also SystemExit, which must not end this thread
        with contextlib.suppress(BaseException):  # a logging handler is code of the user too
            told = Raised.of(error)
            log.error("a listener for %r events failed: %s: %s\n%s", event, told.type, told.message, told.traceback)
