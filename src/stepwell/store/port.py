"""The one door into a store: `commit` for every change, `read` for every question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..model import Answer, Batch, Query, StoreLimits


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

    def commit(self, batch: Batch) -> Answer: ...

    def read(self, queries: Sequence[Query]) -> list[Any]:
        """The answers, in order, all from one moment. `store.reader` has a typed function for each query."""
        ...

    def now(self) -> int:
        """The store's clock: microseconds since 1970."""
        ...

    def version(self) -> int:
        """A number that differs from an earlier one when any run was changed in between, by anybody. Cheap."""
        ...

    def close(self) -> None: ...
