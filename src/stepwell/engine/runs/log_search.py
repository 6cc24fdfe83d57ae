"""Log lines of a run by level and text, page by page, with a limit to what is looked at for each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias, get_args

from ...base.ids import AttemptId
from ...base.words import iso
from ...core.model import LineRow, ListLines
from ...core.model.lines import LOG, LogLine, in_order_of_time
from ...core.store.rules.filtering import folded
from .stored import StoredRun

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

    def page(
        self, run: StoredRun, after: LinePlace | None, limit: int
    ) -> tuple[list[tuple[LineRow, LogLine]], LinePlace | None]:
        """Lines after one, by time, and after which to go on; there may be fewer than `limit`, and still more."""
        rows: list[LineRow] = []
        looked = 0
        while True:
            size = limit if self._is_plain else AT_ONCE
            (page,) = run.store.read([ListLines(run.row.id, self.index, size, after, self.attempt, LOG)])
            rows += [row for row in page if self._is_plain or self._fits(LogLine.of(row.data))]
            looked, after = looked + len(page), page.cursor
            if len(rows) > limit:
                rows = rows[:limit]
                after = rows[-1].attempt, rows[-1].index
            if after is None or len(rows) >= limit or looked >= SEARCHED_LINES:
                return in_order_of_time(rows), after

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

    def _fits(self, line: LogLine) -> bool:
        if self.level is not None and line.severity < logging.getLevelNamesMapping()[self.level]:
            return False
        return self.text is None or folded(self.text) in folded(f"{line.logger}\n{line.text}")
