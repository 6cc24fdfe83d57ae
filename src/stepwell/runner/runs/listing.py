"""Lists of runs, page by page."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import ListRuns
from ...store import reader
from .control import EnginePort
from .run import Run


class Runs(list[Run]):
    """One page, the newest first."""

    def __init__(self, engine: EnginePort, query: ListRuns, runs: list[Run], more: int | None) -> None:
        super().__init__(runs)
        self._engine, self._query, self._more = engine, query, more

    @classmethod
    def find(cls, engine: EnginePort, query: ListRuns) -> Runs:
        page = reader.list_runs(engine.store, query)
        return cls(engine, query, [Run(engine, row.id) for row in page.runs], page.cursor)

    def next(self) -> Runs:
        """The page after this one; empty at the end."""
        if self._more is None:
            return Runs(self._engine, self._query, [], None)
        return Runs.find(self._engine, self._query._replace(before=self._more))

    def all(self) -> Iterator[Run]:
        """These runs and all after them, read page by page."""
        page = self
        while page:
            yield from page
            page = page.next()
