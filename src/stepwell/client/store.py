"""A store that is read through a server. Changes are requests of the API."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from ..codec import decode
from ..errors import StoreError
from ..ids import RunId, WorkerId
from ..model import ActivateVersion, Answer, Batch, Hint, Op, Query, Receipt, SaveVersion, StoreLimits, Sweep, receipts
from ..model.versions import VersionActivated, VersionSaved
from ..model.wire import Unreadable, answer_from_wire, query_to_wire
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
        self._ahead: int | None = None
        """Microseconds that the store's clock is ahead of ours."""

    def read(self, queries: Sequence[Query]) -> list[Any]:
        body = {"queries": [query_to_wire(query) for query in queries]}
        found = self._transport.post(path_of("read"), body, repeatable=True)
        self._ahead = found["now"] - time.time_ns() // 1_000
        try:
            return [answer_from_wire(query, each) for query, each in zip(queries, found["answers"], strict=True)]
        except Unreadable as error:
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
            case SaveVersion("document", _, _, body):
                saved = self._transport.post(path_of("workflows"), decode(body), repeatable=True)
                return VersionSaved(saved["version"], not saved["is_new"], saved["active"])
            case ActivateVersion("document", name, number):
                path = path_of("workflows", name, "activate")
                done = self._transport.post(path, {"version": number}, repeatable=True)
                return VersionActivated(done["active"])
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
