"""The sweeper: finds what time has changed, and finishes gates that somebody left. It needs a store and nothing else.

Every engine has one; any number of them may work on one store, and none of them leads.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...errors import StepwellError
from ...ids import RunId
from ...model import Answer, HeldGate, RunNews, Sweep, Swept
from ..procedures.gates import finish
from ..procedures.procedure import Commit, Procedure

log = logging.getLogger("stepwell")


class SweepResult(NamedTuple):
    receipt: Swept
    next_due_in: int | None
    """Microseconds until another sweep will find something; None: not as far as the rows say."""
    more: bool
    """It found as much as it may at once, so there may be more."""


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
        """The same: one that waits may be reported again."""

    def sweep(self) -> Procedure[SweepResult]:
        asked = Sweep()
        answer = yield Commit([asked])
        assert isinstance(answer, Answer)
        (receipt,) = answer
        assert isinstance(receipt, Swept)
        # What was due before and still is, another sweep at once would not change either.
        known = receipt.next_due is not None and receipt.next_due > answer.now
        due_in = receipt.next_due - answer.now if known and receipt.next_due is not None else None
        if receipt.lost:
            lost = (
                "1 attempt of a lost worker was"
                if receipt.lost == 1
                else f"{receipt.lost} attempts of lost workers were"
            )
            log.warning("%s taken over", lost)
        for held in receipt.gates:
            self.finish_gate(held)
        most = max(receipt.lost, receipt.woken, len(receipt.gates), len(receipt.runs))
        return SweepResult(receipt, due_in, most >= asked.limit)

    def finish_gate(self, held: HeldGate) -> None:
        """Have this gate's work finished soon. It may take long, so it is done elsewhere."""
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
            log.warning("run %s: %r is not finished yet: %s", held.run_id, held.purpose, error)
            return  # it is reported again, if it is still there
        self._finished(held.run_id, news)
