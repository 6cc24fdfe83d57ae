"""`Client`: what users open, for threads and for coroutines."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.clock import Duration
from ..base.ids import RunId, new_run_id
from ..base.words import iso, shown
from ..core.graph import to_frozen
from ..core.model import ListRuns
from ..define import Builder, Workflow
from ..define.document import Document
from ..engine import Engine, Run
from ..engine.aio.calls import AsyncCalls
from ..engine.aio.run import AsyncRun, behind
from ..engine.calls import Calls
from ..engine.checking import checked_changes, checked_limit, checked_list, checked_seconds
from ..engine.following import Event
from ..engine.parts import Parts
from ..engine.runs.bulk import BulkVerb
from ..engine.runs.run import as_run
from ..engine.starting import Startable, StartOptions
from ..errors import InputError
from ..handlers import Handler, Handlers
from ..history.audit_log import AuditEntry, AuditFilter
from .bulk import filter_of, request_bulk
from .events import follow, follow_on_loop, path_of_events
from .remote import RemoteDocuments, RemoteRequests, RemoteStore, RemoteWaiting
from .transport import SECONDS, Transport, path_of
from .triggers import RemoteTriggers

if TYPE_CHECKING:
    from ..answers.runs import BulkRecord, PreviewedRun
    from ..engine.reports.replay import Replayed


@dataclass(frozen=True)
class ClientParts(Parts):
    """What only a client has."""

    transport: Transport


class Client(Calls):
    """A server's engine.

        with Client("https://stepwell.example.com", token="sw_...") as client:
            run = client.run("summarise", input={"url": "https://example.com"})
            print(run.output("sum"))

    It has the verbs of `Engine`, and its runs are read as those of an engine are. Bodies run where the workers are; what needs
    code here (`run.state`, `run.replay()`) imports what `jobs` allows.
    """

    parts: ClientParts

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        jobs: Iterable[str] = (),
        handlers: Handlers | Iterable[Handler | str] = (),
        timeout: Duration = SECONDS,
    ) -> None:
        transport = Transport(url, token, checked_seconds("timeout", timeout, positive=True))
        store = RemoteStore(transport)
        # An engine without a runner: it keeps graphs that were read, and finds code for what needs some.
        parts = Engine(store, runner=None, jobs=jobs, handlers=handlers).parts
        self.parts = ClientParts(
            store,
            parts.code,
            RemoteDocuments(transport, store, parts.documents.handlers),
            RemoteRequests(transport, store, parts.code),
            RemoteWaiting(transport, store),
            parts.checkpoint_keys,
            transport,
        )
        self.triggers = RemoteTriggers(transport)
        """The triggers of the server, with the methods of `engine.triggers`."""
        self._async: AsyncClient | None = None

    def __repr__(self) -> str:
        return f"<Client {self.parts.transport.url}>"

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncClient:
        """The same client for coroutines."""
        self._async = AsyncClient(self)
        return self._async

    async def __aexit__(self, *raised: object) -> None:
        if self._async is not None:
            await self._async.close()

    def close(self, timeout: Duration | None = None) -> None:
        self.parts.transport.close()

    def _start(self, workflow: Startable, input: Mapping[str, Any] | None, options: StartOptions) -> RunId:
        """A text names a stored document, or a class that the server's workers have. A Builder or a Document is sent as data,
        an instance of a class as its name and its input."""
        run_id, key, tags = options["run_id"], options["idempotency_key"], options["tags"]
        # An id of our own makes it safe to ask again when the answer is lost.
        chosen = run_id if run_id is not None or key is not None else new_run_id()
        wanted: dict[str, Any] = {
            "run_id": chosen,
            "priority": options["priority"],
            "deadline": checked_limit("deadline", options["deadline"], positive=True),
            "seed": options["seed"],
            "tags": None if tags is None else dict(tags),
        }
        body = {name: value for name, value in wanted.items() if value is not None}
        headers = {} if key is None else {"Idempotency-Key": key}
        path, more = _startable(workflow, checked_changes(input))
        record = self.parts.transport.ask("POST", path, body={**body, **more}, headers=headers, repeatable=True)
        return RunId(record["id"])

    def start_many(
        self, workflows: Iterable[Startable], *, priority: int = 0, tags: Mapping[str, str] | None = None
    ) -> list[Run]:
        """Start many runs, one after the other."""
        return [self.start(each, priority=priority, tags=tags) for each in checked_list(workflows)]

    def replay(self, run: Run | str) -> Replayed:
        """Have a worker of the server replay a run, with the code that it has; see `Run.replay`, which uses the code here.

        RunConflict if no live worker has the code of the run.
        """
        from .by_worker import replay_by_worker

        return replay_by_worker(self.parts, self.parts.transport, as_run(self.parts, run).id)

    def export(self, run: Run | str, file: str | Path, *, missing_code_ok: bool = False) -> Path:
        """Write the cassette that the server makes of a run; see `Run.export`, which needs the code here."""
        from .by_worker import export_by_server

        return export_by_server(self.parts.transport, as_run(self.parts, run).id, file, missing_code_ok=missing_code_ok)

    def adopt(self, run_id: str) -> Run:
        """The run: the server's workers work on what has not ended."""
        return self.get(run_id)

    def _preview_bulk(self, asked: BulkVerb, query: ListRuns, cursor: Any) -> tuple[BulkRecord, Any]:
        body = {"dry_run": True, "filter": filter_of(query), "limit": query.limit, "cursor": cursor}
        record: BulkRecord = request_bulk(self.parts.transport, asked, body)
        return record, record["next"]

    def _apply_bulk(self, asked: BulkVerb, previewed: list[PreviewedRun]) -> BulkRecord:
        record: BulkRecord = request_bulk(self.parts.transport, asked, {"preview": previewed})
        return record

    def _audit_entries(self, wanted: AuditFilter) -> Iterator[AuditEntry]:
        asked = {"who": wanted.who, "action": wanted.action, "since": iso(wanted.since)}
        path = path_of("audit-log") if wanted.run is None else path_of("runs", wanted.run, "audit-log")
        return map(AuditEntry.of, self.parts.transport.pages(path, **asked))

    def events(
        self, run: Run | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> Iterator[Event]:
        """Events as they happen; see `Engine.events`. It reconnects when the connection breaks."""
        path, asked = path_of_events(run.id if isinstance(run, Run) else run, until)
        return follow(self.parts.transport, path, last, asked)


class AsyncClient(AsyncCalls):
    """A client for coroutines: what `async with Client(...)` gives.

        async with Client("https://stepwell.example.com", token="sw_...") as client:
            run = await client.run("summarise", input={"url": "https://example.com"})
            print(await run.output("sum"))

    Every call of `Client` is there under its name, and is awaited; `client.sync` is the client for threads.
    """

    sync: Client

    def __init__(self, client: Client) -> None:
        super().__init__(client, "stepwell-client")

    def __repr__(self) -> str:
        return repr(self.sync).replace("<Client", "<AsyncClient", 1)

    def events(
        self, run: AsyncRun | str | None = None, last: str | None = None, *, until: Literal["ended"] | None = None
    ) -> AsyncIterator[Event]:
        """What happens, as it happens: `async for event in client.events(): ...`; see `Client.events`."""
        path, asked = path_of_events(run.id if isinstance(run, AsyncRun) else run, until)
        return follow_on_loop(self.sync.parts.transport, path, last, asked)

    async def replay(self, run: AsyncRun | Run | str) -> Replayed:
        """Have a worker of the server replay a run; see `Client.replay`."""
        return await self._pool.call(self.sync.replay, behind(run))

    async def export(self, run: AsyncRun | Run | str, file: str | Path, *, missing_code_ok: bool = False) -> Path:
        """Write the cassette that the server makes of a run; see `Client.export`."""
        return await self._pool.call(self.sync.export, behind(run), file, missing_code_ok=missing_code_ok)

    async def close(self, timeout: Duration | None = None) -> None:
        self._pool.close()
        self.sync.close()


def _startable(workflow: Startable, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path to post to, and the body apart from the options."""
    if isinstance(workflow, str):
        return path_of("workflows", workflow, "runs"), {"input": values}
    if isinstance(workflow, Document):
        return path_of("runs"), {"document": workflow.canonical, "input": values}
    if values:
        raise InputError("input= is for documents: a class takes its input when it is made, OrderWorkflow(order_id=7)")
    if isinstance(workflow, Workflow):
        return path_of("workflows", type(workflow).workflow_name, "runs"), {"input": dict(workflow.workflow_input())}
    if isinstance(workflow, Builder):
        return path_of("runs"), {"graph": to_frozen(workflow.graph(), time.time()), "workflow": workflow.workflow_name}
    raise InputError(f"expected a name, a Workflow, a Builder or a Document to start, got {shown(workflow)}")
