"""Where the records of an attempt go: into its settlement, or, if they are durable, to the store at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn, TypeVar

from ...core.model import Append, AttemptStatus, LineRow, Op, Receipt, Refused
from ...core.model.lines import EFFECT, PAYLOAD
from ...core.store import Store, reader
from ...errors import EngineClosed, Stopped, StoreError
from .held import Held, RecordedLines

if TYPE_CHECKING:
    from ...history.effects.record import Line
    from .log_lines import AttemptOutput, UnstoredLines

TRY_AGAIN_SECONDS = 0.25
Found = TypeVar("Found")


class Ledger:
    """Stores and reads effects, for all attempts of a worker."""

    def __init__(self, store: Store, submit: Callable[[list[Op]], list[Receipt]]) -> None:
        self._store = store
        self._submit = submit
        self._never = threading.Event()

    def append(self, held: Held, ops: list[Append]) -> None:
        """Return when the ops are durable. The effect has happened, so a failing store is tried again, as for settlements."""
        try:
            receipts = self._patiently(held, lambda: self._submit([*ops]))
        except EngineClosed:
            _refuse(held)
        if any(isinstance(receipt, Refused) for receipt in receipts):
            _refuse(held)

    def earlier(self, held: Held) -> list[LineRow]:
        """The effects of earlier attempts at a node, since its last completion was superseded."""
        return self._patiently(held, lambda: self._earlier(held))

    def _patiently(self, held: Held, ask: Callable[[], Found]) -> Found:
        while True:
            try:
                return ask()
            except StoreError:
                if held.over or held.stop:
                    raise
                self._never.wait(TRY_AGAIN_SECONDS)

    def _earlier(self, held: Held) -> list[LineRow]:
        run_id, index = held.facts.run_id, held.index
        attempts = reader.list_attempts(self._store, run_id, index) if held.generation else []
        begin = max((row.number for row in attempts if row.status is AttemptStatus.SUPERSEDED), default=0)
        rows: list[LineRow] = []
        for kind in (PAYLOAD, EFFECT):
            rows += reader.list_lines(self._store, run_id, index, kind=kind)
        return [row for row in rows if begin < row.number < held.number]


class AttemptSink:
    """Takes the records of one attempt."""

    __slots__ = ("_held", "_ledger", "_lines", "_recorded")

    def __init__(self, held: Held, lines: UnstoredLines, ledger: Ledger | None) -> None:
        self._held = held
        self._lines = lines
        self._ledger = ledger
        if held.recorded is None:
            held.recorded = RecordedLines()
        self._recorded = held.recorded

    # Records that come after the settlement was sent do no harm and are not stored.

    def keep(self, lines: list[Line]) -> None:
        self._recorded.effects += lines

    def read_clock(self, at: int) -> None:
        self._recorded.readings.append(at)

    def append(self, lines: list[Line]) -> None:
        held = self._held
        output: AttemptOutput | None = self._lines.of(held)
        start = None if output is None else output.numbers(len(lines))
        if start is None or self._ledger is None:
            _refuse(held)
        ops = [Append(held.attempt, start + place, kind, data) for place, (kind, data) in enumerate(lines)]
        self._ledger.append(held, ops)

    def earlier(self) -> Iterable[LineRow]:
        return () if self._ledger is None else self._ledger.earlier(self._held)


def _refuse(held: Held) -> NoReturn:
    raise Stopped(
        f"node {held.spec.name!r} of run {held.facts.run_id}, attempt {held.number}, may not write any more: it is over, "
        "another worker has taken the node, or the engine is closing. Its effect has happened, but is not recorded"
    )
