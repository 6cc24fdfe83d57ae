"""The sweeper: finds what has become due, and finishes gates that were abandoned. It needs nothing but a store.

Every engine has one. Any number of them may work on one store, without a leader.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...base.ids import RunId
from ...core.model import Answer, HeldGate, RunNews, Sweep, Swept
from ...errors import StepwellError
from ..procedures.gates import finish
from ..procedures.procedure import Commit, Procedure

log = logging.getLogger("stepwell")


class SweepResult(NamedTuple):
    receipt: Swept
    next_due_in: int | None
    """Microseconds until the next sweep will find something; None if no row says so."""
    more: bool
    """It reached its limit, so there may be more to find."""


class Sweeper:
    def __init__(
        self,
        *,
        finished: Callable[[RunId, RunNews | None], None] = lambda _run, _news: None,
        wake_gates: Callable[[], None] = lambda: None,
    ) -> None:
        self._finished = finished
        self._wake_gates = wake_gates
        self._gates: deque[HeldGate] = deque()
        self._named: set[HeldGate] = set()
        """The gates in `_gates`, because a sweep may report a waiting one again."""

    def sweep(self) -> Procedure[SweepResult]:
        asked = Sweep()
        answer = yield Commit([asked])
        assert isinstance(answer, Answer)
        (receipt,) = answer
        assert isinstance(receipt, Swept)
        # What was due and still is would not change with another sweep at once.
        known = receipt.next_due is not None and receipt.next_due > answer.now
        due_in = receipt.next_due - answer.now if known and receipt.next_due is not None else None
        if receipt.lost:
            several = f"{receipt.lost} attempts of lost workers were"
            log.warning("%s taken over", "1 attempt of a lost worker was" if receipt.lost == 1 else several)
        for held in receipt.gates:
            self.finish_gate(held)
        most = max(receipt.lost, receipt.woken, len(receipt.gates), len(receipt.runs))
        return SweepResult(receipt, due_in, most >= asked.limit)

    def finish_gate(self, held: HeldGate) -> None:
        """Finish the work of this gate soon, in another thread because it may take long."""
        if held not in self._named:
            self._named.add(held)
            self._gates.append(held)
        self._wake_gates()

    @property
    def pending(self) -> bool:
        return bool(self._gates)

    def finish_next_gate(self) -> Procedure[None]:
        held = self._gates.popleft()
        self._named.discard(held)
        try:
            news = yield from finish(held)
        except StepwellError as error:
            log.warning(
                "run %s: its gate for %r could not be finished yet; it is tried again: %s",
                held.run_id,
                held.purpose,
                error,
            )
            return  # a later sweep reports it again, if it is still held
        self._finished(held.run_id, news)
