"""What `ctx.idempotency_key` gives the nodes of a run, as far as it can be known without calling a function of theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ...base.ids import Digest, idempotency_key
from ...core.graph import Graph
from ...core.kernel.audit import earlier_graphs
from ...core.model import AttemptRow, RunRow, queries
from ...core.store import Store, reader


class IdempotencyKeys:
    """The idempotency keys of one run. What is not in its row and its graph is read at its first use."""

    def __init__(self, store: Store, run: RunRow, load: Callable[[Digest], Graph]) -> None:
        self._store = store
        self._run = run
        self._load = load

    def is_own(self, index: int) -> bool:
        """Whether a function of the node makes its keys. After a heal also if it did in an earlier version."""
        return any(graph.in_order[index].own_key for graph in self._graphs if index < len(graph.in_order))

    def of_node(self, index: int, generation: int) -> str | None:
        """The key of attempts after so many superseded completions; None if a function of the node makes it."""
        if self.is_own(index):
            return None
        return idempotency_key(self._run.id, self._load(self._run.digest).identity(index), generation)

    def of_attempt(self, attempt: AttemptRow, generation: int) -> str | None:
        """The same for an attempt; None also if a fork shares it with the run in which it was made."""
        is_shared = self._run.origin is not None and (attempt.index, attempt.number) in self._shared
        return None if is_shared else self.of_node(attempt.index, generation)

    @cached_property
    def _graphs(self) -> list[Graph]:
        digests = {self._run.digest}
        if self._run.heals > 0:
            healed = queries.ListJournal(self._run.id, kinds=("healed",))
            digests.update(map(Digest, earlier_graphs(reader.rows(self._store, healed))))
        return [self._load(digest) for digest in digests]

    @cached_property
    def _shared(self) -> set[tuple[int | None, int | None]]:
        shared = queries.ListJournal(self._run.id, kinds=("shared",))
        return {(entry.index, entry.attempt) for entry in reader.rows(self._store, shared)}
