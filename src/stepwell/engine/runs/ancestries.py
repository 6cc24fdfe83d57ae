"""The ancestry hashes of attempts, read from the store when the first of them is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ...base.ids import Digest, RunId
from ...core.graph import Graph
from ...core.graph.order import reachable
from ...core.kernel.ancestry import STANDING, AncestryHashes
from ...core.model import Query, queries
from ...core.store import Store, reader

_ALL = 2**40


class Ancestries:
    """The ancestry hashes of all attempts of a run, or of one node, whose ancestors alone are read then."""

    def __init__(self, store: Store, run_id: RunId, load: Callable[[Digest], Graph], only: int | None = None) -> None:
        """`only`: the index of the node."""
        self._store = store
        self._run_id = run_id
        self._load = load
        self._only = only

    def of(self, index: int, number: int) -> str | None:
        """The hash of attempt `number` of a node; None while a parent has neither completed nor been skipped."""
        return self._hashes.of(index, number)

    @cached_property
    def _hashes(self) -> AncestryHashes:
        row = reader.require_run(self._store, self._run_id)
        superseded = False
        while True:
            graph = self._load(row.digest)
            now, nodes, *journal = self._read(graph, superseded)
            if now.digest != row.digest:  # the run has switched to another graph meanwhile
                row = now
            elif not superseded and any(node.generation for node in nodes):
                superseded = True
            else:
                return AncestryHashes(graph, {node.index: node for node in nodes}, *journal)

    def _read(self, graph: Graph, superseded: bool) -> list[Any]:
        """The run and its nodes at one moment; the journal too where completions were superseded."""
        own = None if self._only is None else (self._only, *reachable([self._only], graph.parents))
        asked: list[Query] = [queries.ListNodes(self._run_id, limit=_ALL, indexes=own)]
        if superseded:
            asked.append(queries.ListJournal(self._run_id, limit=_ALL, kinds=STANDING, indexes=own))
        return reader.at_one_moment(self._store, self._run_id, *asked)
