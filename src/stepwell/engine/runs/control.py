"""The verbs of a run. With `dry_run=True` most of them only say what they would do.

The `reason` is kept in the audit log with who asked; see docs/security.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, overload

from ...base.clock import Duration, microseconds
from ...base.ids import NodeId, RunId
from ...core.graph import Graph, from_frozen
from ...core.kernel.importing import import_problems
from ...core.kernel.plans import NotNow
from ...core.model import RUN_VERBS, Gate, NodeStatus
from ...core.model.origin import ForkOrigin, origin_of
from ...core.store import reader
from ...define.document.checking import with_templates_read
from ...errors import GraphError, InputError, RunConflict
from ...history.audit_log import asking
from ..checking import check_step, checked_changes, checked_seconds
from ..parts import Parts
from ..procedures.forking import fork_arguments, preview_fork
from ..procedures.gates import ask, ask_to_reattempt, preview
from ..procedures.procedure import carry_out
from .stored import StoredRun

Self = TypeVar("Self", bound="Controls")


class Touched(NamedTuple):
    """A node that a request would change."""

    id: NodeId
    name: str
    status: NodeStatus
    becomes: NodeStatus


class Controls:
    """The verbs of `Run`."""

    id: RunId
    _parts: Parts

    @property
    def _stored(self) -> StoredRun:
        raise NotImplementedError

    def _index_of(self, node: str) -> int:
        raise NotImplementedError

    def _step_of(self, label: str) -> int | None:
        raise NotImplementedError

    @overload
    def retry(
        self: Self,
        *,
        accept: bool = ...,
        input: Mapping[str, Any] | None = ...,
        reason: str | None = ...,
        dry_run: Literal[False] = ...,
    ) -> Self: ...
    @overload
    def retry(self, *, reason: str | None = ..., dry_run: Literal[True]) -> list[Touched]: ...
    def retry(
        self: Self,
        *,
        accept: bool = False,
        input: Mapping[str, Any] | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Self | list[Touched]:
        """Run again only what did not complete. The run goes on in this engine, if it has a runner.

        `accept=True` says that no node was renamed when the class lost some and gained others. `input` has values for inputs
        that the class has gained since, or now wants in another type:

            run.retry(input={"express": True})
        """
        values = checked_changes(input)
        gate = ask(self.id, "retry")
        with asking(reason):
            return self._preview(gate) if dry_run else self._go_on(gate, accept=accept, input=values)

    @overload
    def reattempt(
        self: Self, node: str, *, cascade: bool = ..., reason: str | None = ..., dry_run: Literal[False] = ...
    ) -> Self: ...
    @overload
    def reattempt(
        self, node: str, *, cascade: bool = ..., reason: str | None = ..., dry_run: Literal[True]
    ) -> list[Touched]: ...
    def reattempt(
        self: Self, node: str, *, cascade: bool = False, reason: str | None = None, dry_run: bool = False
    ) -> Self | list[Touched]:
        """Run an ended node again, even one that completed, with what failed or was cancelled below it.

        That is refused while something below it is running, and if something below it has completed, unless `cascade=True` runs
        that again as well. `fork` does the same in a new run.
        """
        gate = ask_to_reattempt(self.id, self._index_of(node), cascade=cascade)
        with asking(reason):
            return self._preview(gate) if dry_run else self._go_on(gate)

    @overload
    def cancel(
        self: Self, *, grace_seconds: Duration = ..., reason: str | None = ..., dry_run: Literal[False] = ...
    ) -> Self: ...
    @overload
    def cancel(
        self, *, grace_seconds: Duration = ..., reason: str | None = ..., dry_run: Literal[True]
    ) -> list[Touched]: ...
    def cancel(
        self: Self, *, grace_seconds: Duration = 5.0, reason: str | None = None, dry_run: bool = False
    ) -> Self | list[Touched]:
        """Start nothing more, ask running bodies to stop, and fence them after the grace."""
        grace = microseconds(checked_seconds("grace_seconds", grace_seconds))
        gate = ask(self.id, "cancel", grace=grace)
        with asking(reason):
            return self._preview(gate) if dry_run else self._ask(gate)

    @overload
    def pause(self: Self, *, reason: str | None = ..., dry_run: Literal[False] = ...) -> Self: ...
    @overload
    def pause(self, *, reason: str | None = ..., dry_run: Literal[True]) -> list[Touched]: ...
    def pause(self: Self, *, reason: str | None = None, dry_run: bool = False) -> Self | list[Touched]:
        """Start nothing more until `resume()`. Running bodies may end, and are recorded."""
        gate = ask(self.id, "pause")
        with asking(reason):
            return self._preview(gate) if dry_run else self._ask(gate)

    @overload
    def resume(
        self: Self,
        *,
        accept: bool = ...,
        input: Mapping[str, Any] | None = ...,
        reason: str | None = ...,
        dry_run: Literal[False] = ...,
    ) -> Self: ...
    @overload
    def resume(self, *, reason: str | None = ..., dry_run: Literal[True]) -> list[Touched]: ...
    def resume(
        self: Self,
        *,
        accept: bool = False,
        input: Mapping[str, Any] | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Self | list[Touched]:
        """Go on with a paused run; if a failure paused it, with the nodes that do not need the one that failed.

        `accept=True` says that no node was renamed when the class lost some and gained others. `input` has values for inputs
        that the class has gained since, or now wants in another type:

            run.resume(input={"express": True})
        """
        values = checked_changes(input)
        gate = ask(self.id, "resume")
        with asking(reason):
            return self._preview(gate) if dry_run else self._go_on(gate, accept=accept, input=values)

    def freeze(self: Self, *, reason: str | None = None) -> Self:
        """Keep the present graph: the run no longer follows its class."""
        row = reader.require_run(self._parts.store, self.id)
        graph = self._parts.code.graphs.of(row)
        with asking(reason):
            self._parts.requests.change_graph(row, graph, "freeze")
        return self

    def import_graph(self: Self, data: str | bytes | Mapping[str, Any], *, reason: str | None = None) -> Self:
        """Go on with an edited graph, in the form that `export_graph()` gives; the run no longer follows its class.

        Everything is checked before anything changes: what has completed, runs or was skipped must stay as it was.
        """
        return self._import_graph(with_templates_read(from_frozen(data), self._parts.code.handlers), reason)

    def _import_graph(self: Self, new: Graph, reason: str | None = None) -> Self:
        row = reader.require_run(self._parts.store, self.id)
        problems = import_problems(self._parts.code.graphs.of(row), reader.all_nodes(self._parts.store, self.id), new)
        if problems:
            raise GraphError(problems)
        with asking(reason):
            self._parts.requests.change_graph(row, new, "import")
        return self

    @overload
    def fork(
        self: Self,
        at: int | str | None = ...,
        *,
        input: Mapping[str, Any] | None = ...,
        run_id: str | None = ...,
        idempotency_key: str | None = ...,
        reason: str | None = ...,
        dry_run: Literal[False] = ...,
    ) -> Self: ...
    @overload
    def fork(
        self,
        at: int | str | None = ...,
        *,
        input: Mapping[str, Any] | None = ...,
        run_id: str | None = ...,
        idempotency_key: str | None = ...,
        reason: str | None = ...,
        dry_run: Literal[True],
    ) -> list[Touched]: ...
    def fork(
        self: Self,
        at: int | str | None = None,
        *,
        input: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Self | list[Touched]:
        """Start a new run with what this one has done so far, or had done: `at` a `seq`, at the checkpoint with this label, or
        before this node and everything below it. A label goes before a node of the same name.

        What is shared is not done again; `input` changes the input of the rest, which runs with the code as it is now.
        The same `run_id`, or the same `idempotency_key`, is the same fork. `dry_run=True` only lists that rest.

            again = run.fork("charge", input={"express": True})
        """
        check_step(self.id, at)
        changes = checked_changes(input)
        row = reader.require_run(self._parts.store, self.id)
        seq, before = row.seq, None
        if isinstance(at, int):
            if not 1 <= at <= row.seq:
                raise InputError(f"run {self.id} has no checkpoint {at}; there are 1 to {row.seq}")
            seq = at
        elif at is not None:
            step = self._step_of(at)
            if step is None:
                before = self._index_of(at)
            else:
                seq = step
        if dry_run:
            graph, runs = carry_out(self._parts.store, preview_fork(row, seq, before))
            nodes = {node.index: node.status for node in reader.all_nodes(self._parts.store, self.id)}
            return _touched(graph, {index: (nodes[index], NodeStatus.PENDING) for index in runs})
        with asking(reason):
            made = self._parts.requests.fork(
                row,
                fork_arguments(row, seq, before),
                changes,
                run_id=run_id,
                idempotency_key=idempotency_key,
                of_all=at is None,
            )
        return type(self)(self._parts, made)  # type: ignore[call-arg]

    @property
    def origin(self) -> ForkOrigin | None:
        """Where this run was forked from: `run_id`, `seq`, `before`; None if it is no fork."""
        return origin_of(reader.require_run(self._parts.store, self.id))

    def forks(self: Self) -> list[Self]:
        """The forks of this run, newest first."""
        row = reader.require_run(self._parts.store, self.id)
        return [type(self)(self._parts, fork.id) for fork in reader.forks(self._parts.store, row)]  # type: ignore[call-arg]

    @property
    def parent(self: Self) -> Self | None:
        """The run of which this one performs a node; None if it is no child run."""
        row = reader.require_run(self._parts.store, self.id)
        return None if row.parent is None else type(self)(self._parts, row.parent)  # type: ignore[call-arg]

    def children(self: Self, node: str | None = None) -> list[Self]:
        """The runs that perform nodes of this one, oldest first; optionally those of one node, named by id or name.

        A node that was attempted again has one for each time that its body returned a workflow.

            for child in run.children("imported"):
                print(child.path, child.status)
        """
        index = None if node is None else self._index_of(node)
        rows = [row for row in self._stored.children() if index is None or row.parent_node == index]
        return [type(self)(self._parts, row.id) for row in reversed(rows)]  # type: ignore[call-arg]

    @property
    def path(self) -> str:
        """The id of its root, and the names of the nodes down to the one that it performs: `order-7/imported/load`."""
        return self._stored.path

    def delete(self, *, reason: str | None = None) -> None:
        """Forget an ended run: its rows, attempts, outputs and journal. What the audit log has of it stays."""
        with asking(reason):
            self._parts.requests.delete(self.id)

    def _ask(self: Self, gate: Gate) -> Self:
        if self._parts.requests.ask(gate) is None:
            self._refuse(gate)
        return self

    def _go_on(self: Self, gate: Gate, **options: Any) -> Self:
        if self._parts.requests.go_on(gate, **options) is None:
            self._refuse(gate)
        return self

    def _preview(self, gate: Gate) -> list[Touched]:
        row, plan = carry_out(self._parts.store, preview(gate))
        if row.status not in gate.allowed:
            self._refuse(gate)
            return []
        if isinstance(plan, NotNow):
            raise RunConflict(f"run {self.id}: {plan.message}", run_id=self.id)
        moves = {change.index: (change.was, change.status) for change in plan.changes}
        if gate.stop:
            for node in reader.all_nodes(self._parts.store, self.id, NodeStatus.RUNNING):
                moves[node.index] = (node.status, NodeStatus.CANCELLED)
        return _touched(self._parts.code.graphs.of(row), moves)

    def _refuse(self, gate: Gate) -> None:
        """Raise RunConflict with the reason, unless the run already is what was asked for."""
        status = reader.require_run(self._parts.store, self.id).status
        verb = RUN_VERBS[gate.purpose]
        if status not in verb.done:
            raise RunConflict(f"run {self.id} is {status}; {verb.refusal}", run_id=self.id)


def _touched(graph: Graph, moves: Mapping[int, tuple[NodeStatus, NodeStatus]]) -> list[Touched]:
    """Nodes by number with the statuses that they have and would get, in the order of the graph."""
    specs = graph.in_order
    return [Touched(specs[at].id, specs[at].name, *moves[at]) for at in sorted(moves, key=graph.ranks.__getitem__)]
