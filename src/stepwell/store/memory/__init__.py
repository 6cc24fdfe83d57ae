"""`memory://`: the executable specification of a store. Simple before fast; nothing survives the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...clock import Clock, WallClock
from ...errors import StoreError
from ...ids import RunId, WorkerId
from ...model import Answer, Batch, Hint, Op, PutRecord, Query, Receipt, Refusal, Refused, ops, receipts
from ...model.versions import ActivateVersion, SaveVersion
from ..rules.grouping import groups
from ..rules.values import refuse_values
from . import restoring, running, shaping, versions
from .reading import answer
from .state import LIMITS, State


class MemoryStore:
    """Everything in one process, gone with it.

    >>> store = MemoryStore()
    >>> store.commit([])
    []
    """

    url = "memory://"
    embedded = True
    needs_hints = False
    transactions = None

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or WallClock()
        self.limits = LIMITS
        self._state = State()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._version = 0
        """How many commits have changed a run."""
        self._heard: dict[WorkerId, int] = {}
        """What each worker was last told of it."""
        self._closed = False

    def commit(self, batch: Batch) -> Answer:
        with self._lock:
            self._check_open()
            now = self._clock.now()
            answers: list[Receipt] = []
            for kind, members in groups(batch):
                answers += self._judge(kind, [batch[position] for position in members], now)
            if any(map(_changed_something, answers)):
                self._version += 1
                self._changed.notify_all()
            workers = dict.fromkeys(op.worker for op in batch if isinstance(op, ops.Claim | ops.Renew))
            stops = tuple(attempt for worker in workers for attempt in running.stops(self._state, worker))
            return Answer(answers, now, stops)

    def _judge(self, kind: type[Op], group: list[Op], now: int) -> list[Receipt]:
        refused = [refuse_values(op) for op in group]
        applied = iter(
            _apply(self._state, kind, good, now)
            if (good := [o for o, r in zip(group, refused, strict=True) if not r])
            else ()
        )
        return [next(applied) if refusal is None else refusal for refusal in refused]

    def read(self, queries: Sequence[Query]) -> list[Any]:
        with self._lock:
            self._check_open()
            return [answer(self._state, query) for query in queries]

    def now(self) -> int:
        return self._clock.now()

    def send_hint(self, hint: Hint) -> None:
        """Commits tell themselves."""

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        with self._lock:
            self._check_open()
            before = self._heard.get(worker, -1)
            if timeout > 0:
                self._changed.wait_for(lambda: self._version != before or self._closed, timeout)
            self._heard[worker] = self._version
            return self._version != before

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


def _apply(state: State, kind: type[Op], group: list[Any], now: int) -> list[Receipt]:
    if kind in _SETS:
        return _SETS[kind](state, group, now)
    (op,) = group
    return [_ALONE[kind](state, op, now)]


_SETS: Mapping[type[Op], Callable[[State, list[Any], int], list[Receipt]]] = {
    ops.Settle: running.settle,
    ops.Create: shaping.create,
    ops.Append: running.append,
}
_ALONE: Mapping[type[Op], Callable[[State, Any, int], Receipt]] = {
    ops.Claim: running.claim,
    ops.AddGraph: shaping.add_graph,
    ops.AddNodes: shaping.add_nodes,
    ops.Share: shaping.share,
    ops.SwitchGraph: shaping.arrange,
    ops.Enlist: running.enlist,
    ops.Renew: running.renew,
    ops.Dismiss: running.dismiss,
    ops.Sweep: running.sweep,
    ops.Gate: shaping.gate,
    ops.Rewrite: shaping.rewrite,
    ops.Restore: restoring.restore,
    ops.Delete: lambda state, op, _: shaping.delete(state, op),
    ops.DeleteGraph: lambda state, op, _: shaping.delete_graph(state, op),
    SaveVersion: lambda state, op, now: versions.save_version(state.versions, op, now),
    ActivateVersion: lambda state, op, _: versions.activate_version(state.versions, op),
    PutRecord: lambda state, op, now: versions.put_record(state.records, op, now),
}


def _changed_something(receipt: Receipt) -> bool:
    """A refusal, a claim without grants, a renewal or a sweep without finds leaves every run as it was.

    Not so a rewrite of which some rows were refused: the others were applied.
    """
    match receipt:
        case Refused(reason):
            return reason is Refusal.CHANGED
        case receipts.Claimed(()) | receipts.Enlisted() | receipts.Renewed(_, _, 0):
            return False
        case receipts.Swept(lost, woken, runs):
            return bool(lost or woken or runs)
        case _:
            return True
