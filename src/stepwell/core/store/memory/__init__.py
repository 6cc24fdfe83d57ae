"""`memory://`: the executable specification of a store. Simple before fast; nothing survives the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Sequence
from typing import Any, assert_never, cast

from ....base.clock import Clock, WallClock
from ....base.ids import RunId, WorkerId
from ....errors import StoreError
from ...model import Answer, Batch, Hint, Op, PutRecord, Query, Receipt, Refusal, Refused, ops, receipts
from ..hooks import CommitHooks
from ..rules.grouping import groups
from ..rules.processes import check_process
from ..rules.values import refuse_values
from ..rules.verdicts import refuse_follower
from . import children, records, restoring, running, shaping
from .reading import answer
from .state import LIMITS, MemoryState


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
        self._state = MemoryState()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._version = 0
        """How many commits have changed a run."""
        self._heard: dict[WorkerId, int] = {}
        """What each worker was last told of it."""
        self.hooks = CommitHooks()
        self._closed = False
        self._pid = os.getpid()

    def commit(self, batch: Batch) -> Answer:
        return self.hooks.around(self._commit, batch)

    def _commit(self, batch: Batch) -> Answer:
        check_process(self._pid, self.url)
        with self._lock:
            self._check_open()
            now = self._clock.now()
            answers: list[Receipt] = []
            for kind, members in groups(batch):
                before = answers[-1] if answers else None
                answers += self._judge(kind, [batch[position] for position in members], now, before)
            if any(map(_changed_something, answers)):
                self._version += 1
                self._changed.notify_all()
            workers = dict.fromkeys(op.worker for op in batch if isinstance(op, ops.Claim | ops.Renew))
            stops = tuple(attempt for worker in workers for attempt in running.stops(self._state, worker))
            return Answer(answers, now, stops)

    def _judge(self, kind: type[Op], group: list[Op], now: int, before: Receipt | None) -> list[Receipt]:
        refused = [refuse_values(op) or refuse_follower(op, before) for op in group]
        applied = iter(
            self._apply(kind, good, now) if (good := [o for o, r in zip(group, refused, strict=True) if not r]) else ()
        )
        return [next(applied) if refusal is None else refusal for refusal in refused]

    def _apply(self, kind: type[Op], group: list[Op], now: int) -> list[Receipt]:
        state = self._state
        if kind is ops.Settle:
            settlements = cast("list[ops.Settle]", group)
            if (child := settlements[0].child) is not None:  # it stands alone
                return [children.hand_over(state, settlements[0], child, now)]
            return running.settle(state, settlements, now)
        if kind is ops.Create:
            return shaping.create(state, cast("list[ops.Create]", group), now)
        if kind is ops.Append:
            return running.append(state, cast("list[ops.Append]", group), now)
        (op,) = group
        match op:
            case ops.Claim():
                return [running.claim(state, op, now)]
            case ops.Wake():
                return [children.wake(state, op, now)]
            case ops.AddGraph():
                return [shaping.add_graph(state, op, now)]
            case ops.AddNodes():
                return [shaping.add_nodes(state, op, now)]
            case ops.Share():
                return [shaping.share(state, op, now)]
            case ops.SwitchGraph():
                return [shaping.arrange(state, op, now)]
            case ops.Enlist():
                return [running.enlist(state, op, now)]
            case ops.Renew():
                return [running.renew(state, op, now)]
            case ops.Dismiss():
                return [running.dismiss(state, op, now)]
            case ops.Sweep():
                return [running.sweep(state, op, now)]
            case ops.Gate():
                return [shaping.gate(state, op, now)]
            case ops.Rewrite():
                return [shaping.rewrite(state, op, now)]
            case ops.Restore():
                return [restoring.restore(state, op, now)]
            case ops.Delete():
                return [shaping.delete(state, op)]
            case ops.DeleteGraph():
                return [shaping.delete_graph(state, op)]
            case PutRecord():
                return [records.put_record(state.records, op, now)]
            case ops.Settle() | ops.Create() | ops.Append():
                raise AssertionError("handled above")
            case _:
                assert_never(op)

    def read(self, queries: Sequence[Query]) -> list[Any]:
        check_process(self._pid, self.url)
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
        check_process(self._pid, self.url)
        with self._lock:
            self._check_open()
            before = self._heard.get(worker, -1)
            if timeout > 0:
                self._changed.wait_for(lambda: self._version != before or self._closed, timeout)
            self._heard[worker] = self._version
            return self._version != before

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


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
