"""What a `Run` needs of its engine, for a run of a server.

A store that is read through the server, waiting by its event stream, and requests of the API in place of changes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from ..base.clock import SECOND, Duration
from ..base.codec import decode
from ..base.ids import RunId, WorkerId, new_run_id
from ..core.graph import Graph, to_frozen
from ..core.model import (
    Answer,
    Batch,
    Gate,
    Hint,
    Op,
    Query,
    Receipt,
    RunRow,
    StoreLimits,
    Sweep,
    parted,
    receipts,
)
from ..core.model.wire import WireError, answer_from_wire, query_to_wire
from ..core.store import Store, reader
from ..core.store.hooks import CommitHooks
from ..define.document import Document
from ..engine.checking import checked_limit
from ..engine.code.code import Code
from ..engine.documents import Documents, SavedDocument, check_document
from ..engine.following import Event
from ..engine.waiting import waits_for_a_decision
from ..errors import RunStillActive, StoreError
from ..handlers import Handlers
from .events import follow, follow_on_loop
from .transport import Transport, path_of


class RemoteStore:
    """The store of a server, for reading: by `StoredRun`, reports and commands."""

    embedded = False
    needs_hints = False
    limits = StoreLimits()
    transactions = None

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.url = transport.url
        self.hooks = CommitHooks()
        self._ahead: int | None = None
        """Microseconds that the store's clock is ahead of ours."""

    def read(self, queries: Sequence[Query]) -> list[Any]:
        body = {"queries": [query_to_wire(query) for query in queries]}
        found = self._transport.post(path_of("read"), body, repeatable=True)
        self._ahead = found["now"] - time.time_ns() // 1_000
        try:
            return [answer_from_wire(query, each) for query, each in zip(queries, found["answers"], strict=True)]
        except WireError as error:
            raise StoreError(f"{self.url}: {error}; is the server of another version?") from None

    def now(self) -> int:
        if self._ahead is None:
            self.read([])
        return time.time_ns() // 1_000 + (self._ahead or 0)

    def commit(self, batch: Batch) -> Answer:
        return Answer([self._done(op) for op in batch], self.now())

    def _done(self, op: Op) -> Receipt:
        """The few ops that have a counterpart in the API."""
        match op:
            case Sweep():  # workers of the server sweep
                return receipts.Swept(0, 0, (), (), None)
            case _:
                raise StoreError(f"{type(op).__name__} cannot be asked of the server {self.url}: use its store itself")

    def send_hint(self, hint: Hint) -> None:
        """The server tells its workers."""

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        time.sleep(timeout)
        return False

    def close(self) -> None:
        self._transport.close()


class RemoteDocuments(Documents):
    """The documents of a server: read from its store, saved and activated by requests."""

    def __init__(self, transport: Transport, store: Store, handlers: Handlers) -> None:
        super().__init__(store, handlers)
        self._transport = transport

    def save(self, document: Document) -> SavedDocument:
        check_document(document)
        return _saved(self._transport.post(path_of("workflows"), decode(document.content), repeatable=True))

    def activate(self, text: str) -> SavedDocument:
        name, number = parted(text)
        path = path_of("workflows", name, "activate")
        return _saved(self._transport.post(path, {"version": number}, repeatable=True))


def _saved(record: Mapping[str, Any]) -> SavedDocument:
    return SavedDocument._make(record[name] for name in SavedDocument._fields)


LOOK_EVERY = 0.2
"""For a shorter wait, no stream is opened."""


class RemoteWaiting:
    """Waits for runs by their event streams."""

    def __init__(self, transport: Transport, store: Store) -> None:
        self._transport, self._store = transport, store

    def wait(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        limit = checked_limit("timeout", timeout)
        began = time.monotonic()
        row = reader.require_run(self._store, run_id)
        while not _is_over(row):
            left = None if limit is None else began + limit - time.monotonic()
            if left is not None and left <= 0:
                raise _still_active(row, limit)
            if left is not None and left < LOOK_EVERY:
                time.sleep(left)
            else:
                for event in follow(self._transport, path_of("runs", run_id, "events"), str(row.seq), seconds=left):
                    if _tells_more(event):
                        break
            row = reader.require_run(self._store, run_id)
        return row

    def wait_for_started(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        return self.wait(run_id, timeout)

    async def wait_on_loop(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        """The same for coroutines, without a thread."""
        limit = checked_limit("timeout", timeout)
        try:
            async with asyncio.timeout(limit):
                return await self._wait_on_loop(run_id)
        except TimeoutError:
            row = await asyncio.to_thread(reader.require_run, self._store, run_id)
            raise _still_active(row, limit) from None

    async def _wait_on_loop(self, run_id: RunId) -> RunRow:
        row = await asyncio.to_thread(reader.require_run, self._store, run_id)
        while not _is_over(row):
            stream: Any = follow_on_loop(self._transport, path_of("runs", run_id, "events"), str(row.seq))
            try:
                async for event in stream:
                    if _tells_more(event):
                        break
            finally:
                await stream.aclose()
            row = await asyncio.to_thread(reader.require_run, self._store, run_id)
        return row


def _is_over(row: RunRow) -> bool:
    return row.status.terminal or waits_for_a_decision(row)


def _tells_more(event: Event) -> bool:
    """Only an entry about the run itself can be its end."""
    return event.kind in ("end", "reset") or event.data.get("kind") == "run"


def _still_active(row: RunRow, limit: float | None) -> RunStillActive:
    return RunStillActive(f"run {row.id} is still {row.status} after {limit:g} s; it goes on", run_id=row.id)


class RemoteRequests:
    """Sends requests to the server. Its refusals raise the same errors as those of an engine."""

    def __init__(self, transport: Transport, store: Store, code: Code) -> None:
        self._transport, self._store, self._code = transport, store, code

    def ask(self, gate: Gate) -> bool:
        """Cancel or pause a run."""
        grace = {"grace_seconds": decode(gate.arguments)["grace"] / SECOND} if gate.purpose == "cancel" else {}
        self._post(gate.run_id, gate.purpose, **grace)
        return True

    def go_on(self, gate: Gate, *, accept: bool = False, input: Mapping[str, Any] | None = None) -> bool:
        if gate.purpose == "reattempt":
            given = decode(gate.arguments)
            row = reader.require_run(self._store, gate.run_id)
            node = self._code.graphs.of(row).order[given["node"]]
            self._post(gate.run_id, "nodes", node, "reattempt", cascade=given.get("cascade", False))
        elif input:
            self._post(gate.run_id, gate.purpose, accept=accept, input=dict(input))
        else:
            self._post(gate.run_id, gate.purpose, accept=accept)
        return True

    def change_graph(self, row: RunRow, new: Graph, purpose: Literal["import", "freeze"]) -> None:
        if purpose == "freeze":
            self._post(row.id, "freeze")
        else:
            form = to_frozen(new, row.created_at / SECOND)
            self._transport.ask("PUT", path_of("runs", row.id, "graph", "frozen"), body=form)

    def fork(
        self,
        row: RunRow,
        arguments: bytes,
        input: dict[str, Any],
        *,
        run_id: str | None,
        idempotency_key: str | None,
        of_all: bool,
    ) -> RunId:
        given = decode(arguments)
        before = given["before"]
        at = None if of_all else given["seq"] if before is None else self._code.graphs.of(row).order[before]
        # An id of our own makes it safe to ask again when the answer is lost.
        chosen = run_id if run_id is not None or idempotency_key is not None else new_run_id()
        wanted: dict[str, Any] = {"at": at, "run_id": chosen, "input": input or None}
        body = {name: value for name, value in wanted.items() if value is not None}
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        path = path_of("runs", row.id, "fork")
        record = self._transport.ask("POST", path, body=body, headers=headers, repeatable=True)
        return RunId(record["id"])

    def delete(self, run_id: RunId) -> None:
        self._transport.ask("DELETE", path_of("runs", run_id))

    def _post(self, run: str, *path: str, **body: Any) -> Any:
        return self._transport.post(path_of("runs", run, *path), body)
