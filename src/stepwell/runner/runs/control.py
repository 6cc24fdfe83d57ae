"""What can be asked of a run. Everything can say first what it would do: `dry_run=True`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, overload

from ...clock import Duration, microseconds
from ...define.document.repairing import with_templates_read
from ...errors import GraphError, InputError, RunConflict
from ...graph import from_frozen
from ...ids import NodeId, RunId
from ...kernel.importing import import_problems
from ...kernel.plans import NotNow
from ...model import Gate, NodeStatus, RunStatus
from ...model.origin import Origin, origin_of
from ...store import Store, reader
from ..checking import check_step, checked_changes, checked_seconds
from ..code.code import Code
from ..procedures.forking import fork_arguments, preview_fork
from ..procedures.gates import ask, ask_to_reattempt, preview
from ..procedures.procedure import carry_out
from ..waiting import Waiting
from .requests import Requests

if TYPE_CHECKING:
    from ..reports.checkpoints import KnownKeys

Self = TypeVar("Self", bound="Controls")


class EnginePort(Protocol):
    """What a run needs of the engine it was got from."""

    store: Store
    code: Code
    requests: Requests
    waiting: Waiting
    checkpoint_keys: KnownKeys


class Touched(NamedTuple):
    """One node that a request would change."""

    id: NodeId
    name: str
    status: NodeStatus
    becomes: NodeStatus


class Controls:
    """The verbs of a run. `Run` has them; what it is told of the run is in `Run` itself."""

    id: RunId
    _engine: EnginePort

    def index_of(self, node: str) -> int:
        raise NotImplementedError

    def step_of(self, label: str) -> int | None:
        raise NotImplementedError

    @overload
    def retry(self: Self, *, accept: bool = ..., dry_run: Literal[False] = ...) -> Self: ...
    @overload
    def retry(self, *, dry_run: Literal[True]) -> list[Touched]: ...
    def retry(self: Self, *, accept: bool = False, dry_run: bool = False) -> Self | list[Touched]:
        """Run again only what did not complete. The run goes on in this engine, if it has a runner.

        `accept=True`: nodes that the class has lost and gained since are no renamed ones.
        """
        gate = ask(self.id, "retry")
        return self._preview(gate) if dry_run else self._go_on(gate, accept=accept)

    @overload
    def reattempt(self: Self, node: str, *, cascade: bool = ..., dry_run: Literal[False] = ...) -> Self: ...
    @overload
    def reattempt(self, node: str, *, cascade: bool = ..., dry_run: Literal[True]) -> list[Touched]: ...
    def reattempt(self: Self, node: str, *, cascade: bool = False, dry_run: bool = False) -> Self | list[Touched]:
        """Run one node again that has ended, even one that completed, with what failed or was cancelled below it.

        While something below it is running that is refused; when something below it has completed, too, unless `cascade=True`
        runs that again as well. `fork` does the same in a new run.
        """
        gate = ask_to_reattempt(self.id, self.index_of(node), cascade=cascade)
        return self._preview(gate) if dry_run else self._go_on(gate)

    @overload
    def cancel(self: Self, *, grace_seconds: Duration = ..., dry_run: Literal[False] = ...) -> Self: ...
    @overload
    def cancel(self, *, grace_seconds: Duration = ..., dry_run: Literal[True]) -> list[Touched]: ...
    def cancel(self: Self, *, grace_seconds: Duration = 5.0, dry_run: bool = False) -> Self | list[Touched]:
        """Start nothing more, ask what runs to stop, and fence it after the grace."""
        grace = microseconds(checked_seconds("grace_seconds", grace_seconds))
        gate = ask(self.id, "cancel", grace=grace)
        return self._preview(gate) if dry_run else self._ask(gate)

    @overload
    def pause(self: Self, *, dry_run: Literal[False] = ...) -> Self: ...
    @overload
    def pause(self, *, dry_run: Literal[True]) -> list[Touched]: ...
    def pause(self: Self, *, dry_run: bool = False) -> Self | list[Touched]:
        """Start nothing more until `resume()`. What runs may end, and is recorded."""
        gate = ask(self.id, "pause")
        return self._preview(gate) if dry_run else self._ask(gate)

    @overload
    def resume(
        self: Self, *, accept: bool = ..., input: Mapping[str, Any] | None = ..., dry_run: Literal[False] = ...
    ) -> Self: ...
    @overload
    def resume(self, *, dry_run: Literal[True]) -> list[Touched]: ...
    def resume(
        self: Self, *, accept: bool = False, input: Mapping[str, Any] | None = None, dry_run: bool = False
    ) -> Self | list[Touched]:
        """Go on with a paused run; after a failure that paused it, with what does not need the node that failed.

        `accept=True`: nodes that the class has lost and gained since are no renamed ones. `input` has values for inputs that
        the class has got since, or asks for in another type:

            run.resume(input={"express": True})
        """
        values = checked_changes(input)
        gate = ask(self.id, "resume")
        return self._preview(gate) if dry_run else self._go_on(gate, accept=accept, input=values)

    def freeze(self: Self) -> Self:
        """Keep the graph the run has now: it no longer follows its class."""
        row = reader.require_run(self._engine.store, self.id)
        graph = self._engine.code.graphs.of(row)
        self._engine.requests.change_graph(row, graph, "freeze")
        return self

    def import_graph(self: Self, data: str | bytes | Mapping[str, Any]) -> Self:
        """Go on with an edited graph, in the form that `export_graph()` gives; the run no longer follows its class.

        Everything is checked before anything changes: what has completed, runs or was skipped must stay as it was.
        """
        row = reader.require_run(self._engine.store, self.id)
        new = with_templates_read(from_frozen(data), self._engine.code.handlers)
        problems = import_problems(self._engine.code.graphs.of(row), reader.all_nodes(self._engine.store, self.id), new)
        if problems:
            raise GraphError(problems)
        self._engine.requests.change_graph(row, new, "import")
        return self

    @overload
    def fork(
        self: Self,
        at: int | str | None = ...,
        *,
        input: Mapping[str, Any] | None = ...,
        run_id: str | None = ...,
        dry_run: Literal[False] = ...,
    ) -> Self: ...
    @overload
    def fork(
        self,
        at: int | str | None = ...,
        *,
        input: Mapping[str, Any] | None = ...,
        run_id: str | None = ...,
        dry_run: Literal[True],
    ) -> list[Touched]: ...
    def fork(
        self: Self,
        at: int | str | None = None,
        *,
        input: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        dry_run: bool = False,
    ) -> Self | list[Touched]:
        """A new run that begins with what this one had done: now, at a `seq` or a checkpoint that a body gave this label, or
        before a node and all that is below it. What is both a label and a node is taken for the label.

        What is shared is not done again; `input` changes the input for the rest, which runs with the code as it is now.
        `dry_run=True` only lists that rest.

            again = run.fork("charge", input={"express": True})
        """
        check_step(self.id, at)
        changes = checked_changes(input)
        row = reader.require_run(self._engine.store, self.id)
        seq, before = row.seq, None
        if isinstance(at, int):
            if not 1 <= at <= row.seq:
                raise InputError(f"run {self.id} has no checkpoint {at}; there are 1 to {row.seq}")
            seq = at
        elif at is not None:
            step = self.step_of(at)
            if step is None:
                before = self.index_of(at)
            else:
                seq = step
        if dry_run:
            graph, runs = carry_out(self._engine.store, preview_fork(row, seq, before))
            nodes = {node.index: node.status for node in reader.all_nodes(self._engine.store, self.id)}
            specs = [(index, graph.in_order[index]) for index in sorted(runs, key=graph.ranks.__getitem__)]
            return [Touched(spec.id, spec.name, nodes[index], NodeStatus.PENDING) for index, spec in specs]
        made = self._engine.requests.fork(row, fork_arguments(row, seq, before), changes, run_id)
        return type(self)(self._engine, made)  # type: ignore[call-arg]

    @property
    def origin(self) -> Origin | None:
        """The run that this one is a fork of, and the `seq` it was forked at: `run_id`, `seq`, `before`."""
        return origin_of(reader.require_run(self._engine.store, self.id))

    def forks(self: Self) -> list[Self]:
        """The runs that were forked from this one, newest first."""
        row = reader.require_run(self._engine.store, self.id)
        return [type(self)(self._engine, fork.id) for fork in reader.forks(self._engine.store, row)]  # type: ignore[call-arg]

    def delete(self) -> None:
        """Forget an ended run: its rows, attempts, outputs and journal."""
        self._engine.requests.delete(self.id)

    def _ask(self: Self, gate: Gate) -> Self:
        if self._engine.requests.ask(gate) is None:
            self._refuse(gate)
        return self

    def _go_on(self: Self, gate: Gate, **options: Any) -> Self:
        if self._engine.requests.go_on(gate, **options) is None:
            self._refuse(gate)
        return self

    def _preview(self, gate: Gate) -> list[Touched]:
        row, plan = carry_out(self._engine.store, preview(gate))
        if row.status not in gate.allowed:
            self._refuse(gate)
            return []
        if isinstance(plan, NotNow):
            raise RunConflict(f"run {self.id}: {plan.message}", run_id=self.id)
        graph = self._engine.code.graphs.of(row)
        specs = graph.in_order
        touched = {
            change.index: Touched(specs[change.index].id, specs[change.index].name, change.was, change.status)
            for change in plan.changes
        }
        if gate.stop:
            for node in reader.all_nodes(self._engine.store, self.id, NodeStatus.RUNNING):
                spec = specs[node.index]
                touched[node.index] = Touched(spec.id, spec.name, node.status, NodeStatus.CANCELLED)
        return [touched[index] for index in sorted(touched, key=graph.ranks.__getitem__)]

    def _refuse(self, gate: Gate) -> None:
        """Say why the run is in no status for it, unless it is what was asked for already."""
        status = reader.require_run(self._engine.store, self.id).status
        done, advice = _REFUSALS[gate.purpose]
        if status not in done:
            raise RunConflict(f"run {self.id} is {status}; {advice}", run_id=self.id)


_R = RunStatus
_REFUSALS: Mapping[str, tuple[tuple[RunStatus, ...], str]] = {
    "retry": ((), "only a FAILED, CANCELLED or PAUSED run can be retried"),
    "reattempt": ((), "only a node of a run that has started and is not being cancelled can be attempted again"),
    "cancel": ((_R.CANCELLING, _R.CANCELLED), "it has ended and cannot be cancelled"),
    "pause": ((_R.PAUSED,), "only a run that has not ended can be paused"),
    "resume": ((_R.PENDING, _R.RUNNING), "only a paused run can be resumed"),
}
"""In which status a run is what was asked for already, and what to say in the others."""
del _R
