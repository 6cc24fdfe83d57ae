"""Log lines of a run by level and text, page by page from either end, with a limit to what is looked at for each; new lines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, get_args

from ...base.clock import SECOND
from ...base.ids import AttemptId
from ...base.words import iso
from ...core.model import LineRow, ListLines
from ...core.model.lines import LOG, LogLine, in_order_of_time
from ...core.store import Store, reader
from ...core.store.rules.filtering import folded
from .stored import SLACK, StoredRun

Level: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LEVELS: tuple[Level, ...] = get_args(Level)
SEARCHED_LINES = 20_000
"""Lines that are looked at for one page."""
AT_ONCE = 1_000
LinePlace: TypeAlias = tuple[AttemptId, int]


class LogSearch(NamedTuple):
    """Which lines."""

    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which no record needs
    """Only of this node."""
    attempt: int | None = None
    """Only of attempts with this number."""
    level: Level | None = None
    """Only of this level or a higher one."""
    text: str | None = None
    """Only with this in the line or in the name of the logger, whatever the case of ASCII letters."""

    since: int | None = None
    """Only what was stored then or later."""

    def page(
        self, run: StoredRun, after: LinePlace | None, limit: int, *, newest_first: bool = False
    ) -> tuple[list[tuple[LineRow, LogLine]], LinePlace | None]:
        """Lines after one, by time, and after which to go on; there may be fewer than `limit`, and still more.

        With `newest_first` they are those before it, or the last ones, also by time.
        """
        rows: list[LineRow] = []
        looked = 0
        while True:
            size = limit if self._is_plain else AT_ONCE
            asked = ListLines(run.row.id, self.index, size, after, self.attempt, LOG, self.since, newest_first)
            (page,) = run.store.read([asked])
            rows += [row for row in page if self.fits(row)]
            looked, after = looked + len(page), page.cursor
            if len(rows) > limit:
                rows = rows[:limit]
                after = rows[-1].attempt, rows[-1].index
            if after is None or len(rows) >= limit or looked >= SEARCHED_LINES:
                return in_order_of_time(reversed(rows) if newest_first else rows), after

    def as_text(self, run: StoredRun) -> Iterator[str]:
        """All of them, a line each."""
        after: LinePlace | None = None
        while True:
            lines, after = self.page(run, after, AT_ONCE)
            specs = run.graph.in_order
            yield "".join(
                f"{iso(line.at)}  {specs[row.node].name} #{row.number}  {line.level}  {line.logger}: {line.text}\n"
                for row, line in lines
            )
            if after is None:
                return

    @property
    def _is_plain(self) -> bool:
        return self.level is None and self.text is None

    def fits(self, row: LineRow) -> bool:
        """Whether its level and text are wanted."""
        if self._is_plain:
            return True
        line = LogLine.of(row.data)
        if self.level is not None and line.severity < logging.getLevelNamesMapping()[self.level]:
            return False
        return self.text is None or folded(self.text) in folded(f"{line.logger}\n{line.text}")


def safe_since(store: Store) -> int:
    """The lines that this store has not got by now are stored then or later; some of those that it has are, too."""
    return store.now() - (SECOND if store.embedded else SLACK)


class NewLines:
    """What a run has logged since the last call of `next`, in the order of time.

    `search.since` is when the last known line was stored; the lines of `SLACK` before that are given again.
    """

    def __init__(self, run: StoredRun, search: LogSearch) -> None:
        self.run = run
        self._search = search
        self._since = search.since
        self._seen: set[tuple[str, int]] = set()
        """The lines given that are read again."""

    def next(self) -> list[tuple[LineRow, LogLine]]:
        store, search = self.run.store, self._search
        slack = SECOND if store.embedded else SLACK
        since = None if self._since is None else self._since - slack
        rows = reader.list_lines(store, self.run.row.id, search.index, number=search.attempt, kind=LOG, since=since)
        new = [row for row in rows if (row.attempt, row.index) not in self._seen and search.fits(row)]
        if rows:
            self._since = max(row.at for row in rows)
            self._seen = {(row.attempt, row.index) for row in rows if row.at >= self._since - slack}
        return in_order_of_time(new)

    def skip(self, lines: Iterable[tuple[LineRow, LogLine]]) -> None:
        """Do not give these lines, which are known."""
        self._seen |= {(row.attempt, row.index) for row, _ in lines}
