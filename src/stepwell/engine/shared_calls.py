"""`SharedCalls`: the calls that an engine and the client of a server answer alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Self

from ..base.clock import Duration
from ..core.model import ListRuns, RunStatus
from ..core.store import reader
from ..define.document import Document
from ..history.comparing import Comparison
from .checking import check_page, check_prefix, checked_status, checked_tags, checked_time
from .documents import Documents, SavedDocument, StoredWorkflow
from .runs.control import EnginePort
from .runs.run import Run, as_run


class Runs(list[Run]):
    """One page of runs, the newest first."""

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


class SharedCalls(EnginePort):
    """Documents that are stored, runs that are looked for, and waiting for one."""

    documents: Documents

    def __enter__(self) -> Self:
        return self

    def save(self, document: Document) -> SavedDocument:
        """Store a document; `engine.start("summarise", input={...})` starts the active version of it, `summarise@3` that one.

        The same content is the same version. The newest version is active unless somebody has chosen another.
        """
        return self.documents.save(document)

    def workflows(self) -> list[StoredWorkflow]:
        """The documents that are stored, by name."""
        return list(self.documents.all())

    def get(self, run_id: str) -> Run:
        """The run with this id; raises RunNotFound."""
        return Run(self, reader.require_run(self.store, run_id).id)

    def compare(self, first: Run | str, second: Run | str) -> Comparison:
        """Two runs side by side; see `Run.diff`."""
        return as_run(self, first).diff(second)

    def runs(
        self,
        *,
        tag: Mapping[str, str] | None = None,
        workflow: str | None = None,
        status: RunStatus | str | None = None,
        since: datetime | timedelta | None = None,
        prefix: str | None = None,
        limit: int = 100,
    ) -> Runs:
        """The newest runs that match. `since` is when they were created. More of them: `runs.all()`, `runs.next()`."""
        check_page(limit, workflow)
        check_prefix(prefix)
        statuses = () if status is None else (checked_status(status),)
        query = ListRuns(limit, workflow=workflow, statuses=statuses, prefix=prefix or None, tags=checked_tags(tag))
        return Runs.find(self, query._replace(since=checked_time("since", since)))

    def wait(self, run: Run | str, timeout: Duration | None = None) -> Run:
        """Wait until a run has ended, or has paused because a person must decide; see `Run.wait`.

        A worker must be working on it: this engine if it has a runner, otherwise another.
        """
        return as_run(self, run).wait(timeout)
