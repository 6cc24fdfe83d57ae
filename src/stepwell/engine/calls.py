"""`Calls`: what can be asked of an engine, and of the client of a server, in the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from ..base.clock import Duration
from ..base.ids import RunId
from ..core.model import ListRuns, RunOrder
from ..core.store import Store, reader
from ..define.document import Document
from ..history.audit_log import AuditEntry, AuditFilter
from ..history.comparing import Comparison
from .bulk import BulkAsked, BulkPreview, previewed
from .checking import check_name, check_page, check_whole, checked_choice, checked_limit, checked_time
from .documents import SavedDocument, StoredWorkflow
from .finding import WhichRuns, which_runs
from .following import Event
from .parts import Parts
from .reports.counting import COUNT_BY, count_runs
from .reports.ordering import in_order
from .runs.bulk import MAX_BULK, BulkVerb
from .runs.run import Run, as_run
from .starting import Startable, StartOptions

if TYPE_CHECKING:
    from ..answers.runs import BulkRecord, CountBy, PreviewedRun, RunCountsRecord


class RunList(list[Run]):
    """One page of runs."""

    def __init__(self, parts: Parts, query: ListRuns, runs: list[Run], more: tuple[int, int] | None) -> None:
        super().__init__(runs)
        self._parts, self._query, self._more = parts, query, more

    @classmethod
    def find(cls, parts: Parts, query: ListRuns) -> RunList:
        page = reader.list_runs(parts.store, query)
        while not page.runs and page.cursor is not None:  # none of those that were searched, but there are more
            page = reader.list_runs(parts.store, query._replace(before=page.cursor))
        return cls(parts, query, [Run(parts, row.id) for row in page.runs], page.cursor)

    def next(self) -> RunList:
        """The page after this one; empty at the end."""
        if self._more is None:
            return RunList(self._parts, self._query, [], None)
        return RunList.find(self._parts, self._query._replace(before=self._more))

    def all(self) -> Iterator[Run]:
        """These runs and all after them, read page by page."""
        page = self
        while page:
            yield from page
            page = page.next()


class Calls(ABC):
    """The calls that `Engine` and `Client` share."""

    parts: Parts
    """For code that builds on it: what it is made of. Unlike the rest, it changes without notice."""

    @property
    def store(self) -> Store:
        """Its store, for code that builds on it."""
        return self.parts.store

    def __enter__(self) -> Self:
        return self

    def start(
        self,
        workflow: Startable,
        *,
        input: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        priority: int = 0,
        deadline: Duration | None = None,
        seed: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Run:
        """Start a run; it is durable when this returns. `tags` are what people find it by: `engine.runs(tag=…)`.

        The same `run_id`, or the same `idempotency_key`, with the same workflow and input gives the run that is there; that of
        a Builder must also have the same graph. `input` is that of a document; a class has its own.
        """
        options: StartOptions = {
            "run_id": run_id,
            "idempotency_key": idempotency_key,
            "priority": priority,
            "deadline": deadline,
            "seed": seed,
            "tags": tags,
        }
        return Run(self.parts, self._start(workflow, input, options))

    @abstractmethod
    def _start(self, workflow: Startable, input: Mapping[str, Any] | None, options: StartOptions) -> RunId: ...

    @abstractmethod
    def start_many(
        self, workflows: Iterable[Startable], *, priority: int = 0, tags: Mapping[str, str] | None = None
    ) -> list[Run]:
        """Start many runs."""

    @abstractmethod
    def events(
        self, run: Run | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> Iterator[Event]:
        """Events as they happen: the journal of a run, or the status of every run that is no child run when it changes.

            for event in engine.events(run, until="ended"):
                print(event.kind, event.data)

        `last` is the id of the last event received before. With `until="ended"` it stops after the run has ended, with an
        event `end`; otherwise it never stops by itself.
        """

    @abstractmethod
    def adopt(self, run_id: str) -> Run:
        """Work on an unfinished run that another process started and left."""

    def run(
        self,
        workflow: Startable,
        *,
        check: bool = True,
        wait: Duration | None = None,
        input: Mapping[str, Any] | None = None,
        **options: Unpack[StartOptions],
    ) -> Run:
        """Start a run and wait for its end, `wait` seconds at most.

        Raises RunFailed or RunCancelled if it ended so, RunPaused if it waits for a decision; with `check=False` the run is
        returned whatever its status. The other options are those of `start`.
        """
        checked_limit("wait", wait)  # before anything is started
        run = self.start(workflow, input=input, **options)
        row = self.parts.waiting.wait_for_started(run.id, wait)
        return run._checked(row) if check and row is not None else run

    def wait(self, run: Run | str, timeout: Duration | None = None) -> Run:
        """Wait until a run has ended, or has paused because a person must decide; see `Run.wait`.

        A worker must be working on it: this engine if it has a runner, otherwise another.
        """
        return as_run(self.parts, run).wait(timeout)

    def get(self, run_id: str) -> Run:
        """The run with this id; raises RunNotFound."""
        return Run(self.parts, reader.require_run(self.store, run_id).id)

    def runs(self, *, order: RunOrder = "created", limit: int = 100, **which: Unpack[WhichRuns]) -> RunList:
        """The newest runs that match. More of them: `runs.all()`, `runs.next()`.

            engine.runs(error="PaymentDeclined", since=timedelta(days=1), order="duration")

        `order="ended"` gives runs that have ended, the last one first; `"duration"` those that took longest.
        """
        check_page(limit)
        return RunList.find(self.parts, in_order(which_runs(**which), order)._replace(limit=limit))

    def count_runs(self, by: CountBy = "status", **which: Unpack[WhichRuns]) -> RunCountsRecord:
        """How many runs match, by `status`, `workflow`, or the `hour` or `day` of their creation.

            engine.count_runs("workflow", status="failed")["counts"]

        Where `exact` is false there are at least so many.
        """
        return count_runs(self.store, which_runs(**which), checked_choice("by", by, COUNT_BY))

    def preview_bulk(self, verb: str, *, limit: int = 100, **asked: Unpack[BulkAsked]) -> BulkPreview:
        """What `retry`, `reattempt`, `cancel`, `pause`, `resume` or `fork` would do to all runs that match; then do it.

            preview = engine.preview_bulk("retry", status="failed", workflow="orders")
            print(preview.record["done"], "runs,", preview.record["nodes"], "nodes")
            preview.apply(reason="the bank is back")

        Only runs of the preview are touched, and none that was steered, ended or deleted since.
        """
        check_whole("limit", limit, 1, MAX_BULK, f"a whole number from 1 to {MAX_BULK:,}")
        return previewed(self, verb, limit, asked)

    @abstractmethod
    def _preview_bulk(self, asked: BulkVerb, query: ListRuns, cursor: Any) -> tuple[BulkRecord, Any]: ...

    @abstractmethod
    def _apply_bulk(self, asked: BulkVerb, previewed: list[PreviewedRun]) -> BulkRecord: ...

    def compare(self, first: Run | str, second: Run | str) -> Comparison:
        """Two runs side by side; see `Run.diff`."""
        return as_run(self.parts, first).diff(second)

    def save(self, document: Document) -> SavedDocument:
        """Store a document; `engine.start("summarise", input={...})` starts the active version of it, `summarise@3` that one.

        The same content is the same version. The newest version is active unless another was chosen.
        """
        return self.parts.documents.save(document)

    def activate(self, version: str) -> SavedDocument:
        """Make `summarise@2` the version that `summarise` starts; `summarise` alone makes the newest active again."""
        return self.parts.documents.activate(version)

    def audit_log(
        self,
        run: Run | str | None = None,
        *,
        who: str | None = None,
        action: str | None = None,
        since: datetime | timedelta | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        """Who asked for what, when, from where and why: of one run, or of everything, the newest first.

            for entry in engine.audit_log(run):
                print(entry.who, entry.action, entry.reason)

        What a person, a token or a trigger asks for is there, and every request to a run; not what a program starts.
        """
        check_page(limit)
        check_name("who", who, "the name of a token or trigger, or the id of a token")
        check_name("action", action, "what was asked for, as in cancel")
        run_id = run.id if isinstance(run, Run) else run
        check_name("run", run_id, "a Run or the id of one")
        wanted = AuditFilter(run_id, who, action, checked_time("since", since))
        return list(islice(self._audit_entries(wanted), limit))

    @abstractmethod
    def _audit_entries(self, wanted: AuditFilter) -> Iterator[AuditEntry]: ...

    def workflows(self) -> list[StoredWorkflow]:
        """The documents that are stored, by name."""
        return list(self.parts.documents.all())
