"""What must happen regularly although nobody asks: sweeping, finishing gates, looking what other processes did."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from ..errors import StepwellError
from ..ids import RunId
from ..model import HeldGate, RunNews, RunRow, Sweep, Swept
from ..store import Store, reader
from . import gates
from .chores import Due
from .local import LocalRunner
from .procedure import carry_out

log = logging.getLogger("stepwell")


class Housekeeping:
    """The chores of one runner. Called from the runner's housekeeping thread."""

    def __init__(
        self, store: Store, runner: LocalRunner, *, waited: Callable[[], tuple[RunId, ...]], serve: Callable[[], None]
    ) -> None:
        self._store = store
        self._runner = runner
        self._waited = waited
        self._serve = serve
        self._gates: deque[HeldGate] = deque()
        self._version = -1

    def finish_gate(self, held: HeldGate) -> None:
        """Have this gate's work finished soon."""
        self._gates.append(held)
        self._runner.wake()

    def do(self, due: Due) -> None:
        while self._gates:
            self._finish(self._gates.popleft())
        if due.sweep:
            self._sweep()
        if due.watch:
            self._watch()

    def _finish(self, held: HeldGate) -> None:
        try:
            news = carry_out(self._store, gates.finish(held))
        except StepwellError as error:
            log.warning("run %s: %r is not finished yet: %s", held.run_id, held.purpose, error)
            return  # the sweeper reports it again, if it is still there
        if news is not None:
            self._runner.spread([news])
        self._runner.hungry([held.run_id])

    def _sweep(self) -> None:
        receipt = self._store.commit([Sweep()])[0]
        assert isinstance(receipt, Swept)
        now = self._runner.now()
        self._runner.chores.swept(now, None if receipt.next_due is None else receipt.next_due - self._store.now())
        if receipt.lost:
            log.warning("%d attempts of lost workers were taken over", receipt.lost)
            self._runner.suspects_possible()
        self._runner.spread(receipt.runs)
        self._runner.hungry([run.run_id for run in receipt.runs])
        for held in receipt.gates:
            self._finish(held)
        if receipt.lost or receipt.woken:
            self._runner.look_around()

    def _watch(self) -> None:
        """See whether other processes moved runs that this one works on or waits for."""
        version = self._store.version()
        changed = version != self._version
        self._version = version
        self._runner.chores.watched(self._runner.now(), changed=changed, busy=self._runner.busy)
        if not changed:
            return
        known = tuple(self._runner.desk.facts)
        if known:
            self._runner.hungry(reader.ready_runs(self._store, known))
        rows = [reader.get_run(self._store, run) for run in self._waited()]
        self._runner.spread([_news(row) for row in rows if row is not None and row.status.terminal])
        self._serve()


def _news(row: RunRow) -> RunNews:
    return RunNews(row.id, row.status, row.gate, row.purpose, row.open, row.active, row.failed, row.seq)
