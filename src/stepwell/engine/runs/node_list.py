"""The nodes of a run as a list, page by page: now or at an entry of its journal, by status and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...core.graph import Graph
from ...core.model import NodeStatus, queries
from ..reports.moments import Moment, moment_of
from .records import node_record
from .stored import StoredRun

if TYPE_CHECKING:
    from ...answers import nodes


class NodeFilter(NamedTuple):
    """Which nodes of a run."""

    statuses: tuple[NodeStatus, ...] = ()
    text: str | None = None
    """Only nodes with this in their names, whatever the case, and the node with this id."""
    at: int | None = None
    """As they were after this entry of the journal."""

    def page(self, run: StoredRun, after: int, limit: int) -> tuple[list[nodes.NodeRecord], int | None]:
        """The next nodes after this index, and the last index if there may be more. A page may be short."""
        if self.at is not None:
            return self._page_of(moment_of(run, self.at), after, limit)
        indexes = None if self.text is None else self._matching(run.graph, after)
        some = None if indexes is None else tuple(indexes[:limit])
        (rows,) = run.read(queries.ListNodes(run.row.id, after, limit, self.statuses, some))
        removed = run.graph.removed
        more = rows.cursor if indexes is None or some is None else some[-1] if len(indexes) > len(some) else None
        children = run.children_of(rows)
        return [node_record(run, row, children.get(row.index)) for row in rows if row.index not in removed], more

    def _page_of(self, moment: Moment, after: int, limit: int) -> tuple[list[nodes.NodeRecord], int | None]:
        statuses = self.statuses
        indexes = [
            index for index in self._matching(moment.graph, after) if not statuses or moment.statuses[index] in statuses
        ]
        items = [_record_at(moment, index) for index in indexes[:limit]]
        return items, indexes[limit - 1] if len(indexes) > limit else None

    def _matching(self, graph: Graph, after: int) -> list[int]:
        text, removed, specs = (self.text or "").lower(), graph.removed, graph.in_order
        return [
            index
            for index in range(after + 1, len(specs))
            if index not in removed and (text in specs[index].name.lower() or specs[index].id == self.text)
        ]


def _record_at(moment: Moment, index: int) -> nodes.NodeRecord:
    """The journal has neither reasons, nor times at which nodes are due, nor child runs."""
    spec = moment.graph.in_order[index]
    return {
        "id": spec.id,
        "name": spec.name,
        "index": index,
        "status": moment.statuses[index],
        "reason": None,
        "attempts": moment.attempts[index],
        "failures": moment.failures[index],
        "queue": spec.queue,
        "due_at": None,
        "child": None,
    }
