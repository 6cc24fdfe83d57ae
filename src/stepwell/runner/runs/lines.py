"""Follows the log lines of a run: each is given once."""

from __future__ import annotations

from ...model import LineRow
from ...model.lines import LOG, LogLine, in_order_of_time
from ...store import reader
from .stored import StoredRun


class NewLines:
    """What a run has logged since the last call of `next`, in the order of time.

    `since` is when the last known line was stored; the lines of that very moment are given again.
    """

    def __init__(self, run: StoredRun, index: int | None, attempt: int | None, since: int | None = None) -> None:
        self.run = run
        self._index = index
        self._attempt = attempt
        self._since = since
        self._seen: set[tuple[str, int]] = set()
        """The lines of that moment that were given."""

    def next(self) -> list[tuple[LineRow, LogLine]]:
        rows = reader.list_lines(
            self.run.store, self.run.row.id, self._index, number=self._attempt, kind=LOG, since=self._since
        )
        new = [row for row in rows if (row.attempt, row.index) not in self._seen]
        if rows:
            self._since = max(row.at for row in rows)
            self._seen = {(row.attempt, row.index) for row in rows if row.at == self._since}
        return in_order_of_time(new)
