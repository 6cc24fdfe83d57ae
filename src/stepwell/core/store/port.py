"""The one door into a store: `commit` for every change, `read` for every question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from ...base.ids import RunId, WorkerId
from ..model import Answer, Batch, Hint, Query, StoreLimits
from .hooks import CommitHooks


class BodyTransaction(Protocol):
    """A transaction of a body on the server of its store. The thread of the body ends it, by `commit` or `undo`."""

    @property
    def connection(self) -> Any:
        """The driver's own, for the body."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether somebody has called `cancel`."""
        ...

    def commit(self, batch: Batch) -> Answer | None:
        """Commit what the body wrote together with this batch, which settles it. None: the settlement was refused, and what the
        body wrote is undone.

        Raises StoreError when all of it was undone because of the server or of others: the body may run again. Whatever else
        it raises says that the body's own writes cannot be committed.
        """
        ...

    def is_of_server(self, error: BaseException) -> bool:
        """Whether the server has undone the transaction because of others, or of trouble of its own; the body may run again."""
        ...

    def undo(self) -> None:
        """Never raises: what is not committed is undone in any case."""
        ...

    def cancel(self) -> None:
        """End the statement that the body waits for. Called by another thread."""
        ...


class Transactions(Protocol):
    def begin(self) -> BodyTransaction: ...


class Store(Protocol):
    """Where runs are kept.

    `commit` applies the ops of a batch in order and returns one receipt for each; what it returned is durable. It is
    all or nothing: when it raises StoreError, either nothing was applied or the whole batch was, and sending the same
    batch again is safe and answers the same question again.
    """

    @property
    def url(self) -> str: ...

    @property
    def embedded(self) -> bool:
        """Whether only programs of its user write to it. The rows of a server may come from anybody, and what they name is
        run only if it is registered."""
        ...

    @property
    def limits(self) -> StoreLimits:
        """How much it takes at once."""
        ...

    @property
    def hooks(self) -> CommitHooks:
        """What is called after each commit, also after those of bodies in transactions."""
        ...

    def commit(self, batch: Batch) -> Answer: ...

    def read(self, queries: Sequence[Query]) -> list[Any]:
        """The answers, in order, all from one moment. `store.reader` has a typed function for each query."""
        ...

    def now(self) -> int:
        """The store's clock: microseconds since 1970."""
        ...

    @property
    def needs_hints(self) -> bool:
        """Whether others hear of a commit only when a hint is sent after it."""
        ...

    def send_hint(self, hint: Hint) -> None:
        """Tell whoever waits. Never raises: a hint that is lost costs only time."""
        ...

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        """Wait until something may have happened: in these queues (None: in any), with these runs, or that this worker should
        know; at most `timeout` seconds. True may mean nothing, and a hint may be lost, so look now and then all the same."""
        ...

    @property
    def transactions(self) -> Transactions | None:
        """Of bodies with `transaction=True`; None where a body cannot write to what its store is."""
        ...

    def close(self) -> None: ...
