"""What forks must share, told by the history of their origin, without the code that is judged."""

from __future__ import annotations

from collections.abc import Mapping

from stepwell.base.codec import decode
from stepwell.core.model import Create, NodeStatus
from stepwell.core.store.memory.state import RunState
from tests.simulation.simulate.before import Violation


class Forks:
    def __init__(self) -> None:
        self._shares: dict[str, set[int]] = {}
        """By fork: the nodes that had completed where it was forked."""
        self.told = True
        """False once the newest history of the origin is lost: then nobody knows any more what it was."""

    def made(self, runs: Mapping[str, RunState], op: Create) -> None:
        assert op.fork is not None
        if not self.told:
            return
        place = decode(op.fork)
        origin = runs[place["origin"]]
        completed: set[int] = set()
        for entry in origin.journal[: place["seq"]]:
            if entry.index is None:
                continue
            if entry.kind in ("completed", "shared"):
                completed.add(entry.index)
            elif entry.kind == "rewrote":
                completed.discard(entry.index)
        self._shares[op.run_id] = completed - self._not_wanted(runs[op.run_id], place["before"])

    def _not_wanted(self, fork: RunState, before: int | None) -> set[int]:
        """By the graph of the fork: its origin may have switched to another one since."""
        found = set() if before is None else {before}
        grown = True
        while grown:
            below = {child for index in found for child in fork.graph.children.get(index, ())}
            grown = not below <= found
            found |= below
        return found

    def body_begins(self, runs: Mapping[str, RunState], run_id: str, index: int) -> None:
        if not self.told or index not in self._shares.get(run_id, ()):
            return
        asked_for = any(
            entry.kind == "rewrote" and entry.index == index and entry.status == NodeStatus.PENDING
            for entry in runs[run_id].journal
        )
        if not asked_for:
            raise Violation(f"node {index} of the fork {run_id} is shared and its body begins again")

    def judge(self, run: RunState, origin: RunState | None) -> None:
        """`origin`: the run it was forked from, if it is one."""
        for node, theirs in zip(run.nodes, () if origin is None else origin.nodes, strict=False):
            kept = node.attempt == 0 and node.status is NodeStatus.SKIPPED and theirs.status is NodeStatus.SKIPPED
            if kept and node.reason != theirs.reason:
                raise Violation(
                    f"{node.layout.id} of the fork {run.id} was skipped for {node.reason}, not {theirs.reason}"
                )
        shared = {entry.index for entry in run.journal if entry.kind == "shared"}
        if self.told and shared != self._shares.get(run.id, set()):
            raise Violation(f"the fork {run.id} shares {shared} instead of {self._shares.get(run.id)}")
