"""Nodes that join a run too late must not run: told by its history, without the code that is judged."""

from __future__ import annotations

from collections.abc import Iterable

from stepwell.core.kernel.audit import ENDED_BY
from stepwell.core.model import HEALED_LATE, JournalRow, NodeStatus
from stepwell.core.store.memory.state import GraphState, MemoryState, RunState
from tests.simulation.simulate.before import Violation


def check_in_time(state: MemoryState, run: RunState, index: int) -> None:
    """The body of a node begins: nothing below it ran or was done when it joined, unless somebody asked for it since."""
    journal = run.journal
    place = next((place for place in reversed(range(len(journal))) if journal[place].kind == "healed"), None)
    if place is None:
        return
    old, new = (state.graphs[digest] for digest in (journal[place].status or "").split())
    since = journal[place:]
    if index < old.total or any(_asks_for(entry, index) for entry in since):
        return
    opened = next((at for at, entry in enumerate(since) if entry.kind == "run"), 0)
    # While the gate is held nothing begins: what runs or is done at both ends was so all the time.
    begun = _begun(journal[:place]) & _begun(journal[: place + opened])
    if begun & _below(index, new):
        raise Violation(f"node {index} of {run.id} joined when nodes below it had begun, and its body begins")


def check_late(run: RunState) -> None:
    """A node came too late only if something below it has begun, or all of its parents came too late."""
    late = {node.index for node in run.nodes if node.reason == HEALED_LATE and not node.layout.removed}
    for index in late:
        parents = run.graph.rows[index].parents
        begun = any(run.nodes[below].attempt for below in _below(index, run.graph))
        if run.created.fork is None and not begun and not (parents and late.issuperset(parents)):
            raise Violation(
                f"node {index} of {run.id} is taken for one that came too late, and nothing below it has begun"
            )


def _asks_for(entry: JournalRow, index: int) -> bool:
    return entry.kind == "rewrote" and entry.index == index and entry.status == NodeStatus.PENDING


def _begun(journal: Iterable[JournalRow]) -> set[int]:
    """The nodes that run or have completed."""
    found: set[int] = set()
    for entry in journal:
        if entry.index is None:
            continue
        if entry.kind in ("claimed", "completed", "shared"):
            found.add(entry.index)
        elif entry.kind in ENDED_BY or entry.kind == "rewrote":
            found.discard(entry.index)
    return found


def _below(index: int, graph: GraphState) -> set[int]:
    found: set[int] = set()
    stack = [index]
    while stack:
        more = set(graph.children.get(stack.pop(), ())) - found
        found |= more
        stack += more
    return found
