"""A store that passes everything on to another one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..base.ids import RunId, WorkerId
from ..core.model import Answer, Batch, Hint, Query, StoreLimits
from ..core.store import Store
from ..core.store.hooks import CommitHooks
from ..core.store.port import Transactions


class WrappedStore:
    """The same store. Subclasses change what they are for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def store(self) -> Store:
        return self._store

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def embedded(self) -> bool:
        return self._store.embedded

    @property
    def limits(self) -> StoreLimits:
        return self._store.limits

    @property
    def durability(self) -> object | None:
        """What a crash of the server may lose, in words; None of a store that is no server."""
        return getattr(self._store, "durability", None)

    @property
    def hooks(self) -> CommitHooks:
        return self.store.hooks

    @property
    def needs_hints(self) -> bool:
        return self.store.needs_hints

    @property
    def transactions(self) -> Transactions | None:
        return self.store.transactions

    def commit(self, batch: Batch) -> Answer:
        return self.store.commit(batch)

    def read(self, queries: Sequence[Query]) -> list[Any]:
        return self.store.read(queries)

    def now(self) -> int:
        return self.store.now()

    def send_hint(self, hint: Hint) -> None:
        self.store.send_hint(hint)

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        return self.store.wait_for_hint(queues, runs, worker, timeout)

    def close(self) -> None:
        self.store.close()
