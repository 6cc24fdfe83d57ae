"""`Run`: one execution, as its user sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ...base.clock import SECOND, Duration
from ...base.codec import decode
from ...base.commands import command
from ...base.ids import Digest, RunId
from ...base.words import shown
from ...core.graph import Graph, to_frozen
from ...core.model import NODE_FAILED, NodeStatus, RunRow, RunStatus
from ...core.model.lines import EFFECT, LOG, PAYLOAD, in_order_of_time
from ...core.store import reader
from ...define import Delta
from ...define.code.invoke import said_to_return
from ...errors import InputError, RunCancelled, RunFailed, RunPaused
from ...history.comparing import Comparison
from ...history.effects.record import Effect, effects_of
from ...history.measuring import RunMetrics
from ...history.why import Why
from ..bodies.visible_state import final_state
from ..checking import check_attempt, check_node_name, check_step
from ..parts import Parts
from ..reports.audit import audit_run
from ..reports.compare import RunSource, compare_runs
from ..waiting import waits_for_a_decision
from .control import Controls
from .node_outputs import all_outputs, index_of_node, no_output, result_of, typed
from .stored import StoredRun
from .views import LogRecord, NodeError, NodeView, RunProgress

if TYPE_CHECKING:
    from ...history.replay.checkpoint import Checkpoint, Label
    from ..reports.replay import Replayed


Output = TypeVar("Output")


class Run(Controls):
    """A run in a store. It holds no state of its own: every property reads what is stored now."""

    _parts: Parts

    def __init__(self, parts: Parts, run_id: RunId) -> None:
        self._parts = parts
        self.id = run_id

    def __repr__(self) -> str:
        return f"<Run {self.id}>"  # the rest is in the store, which a debugger must not read

    def _repr_html_(self) -> str:
        """For notebooks."""
        from ..show.run import run_html

        return run_html(self._stored, self._typed)

    def show(self, *, whole: bool = False, tracebacks: bool = False) -> None:
        """Print the run: its nodes as a tree, and a timeline. `whole` shows every node of a large run.

        run.show()
        """
        from rich.console import Console

        from ..show.run import print_run

        screen, whole_run = Console(highlight=False, emoji=False), "run.show(whole=True)"
        # A notebook makes a block of each print, unless they are collected first.
        with screen if screen.is_jupyter else contextlib.nullcontext():
            print_run(screen, self._stored, self._typed, tracebacks=tracebacks, whole=whole, all_of_it=whole_run)

    def _typed(self, words: str) -> str:
        """The command to type for this run; for a run in memory, the call, which has the same name."""
        return command(words, self._parts.store.url) or f"run.{words.partition(' ')[0]}()"

    def __await__(self) -> Generator[Any, None, Run]:
        """`await run` is `run.wait()` for `async def`: it blocks no loop and holds no thread."""
        return self._end().__await__()

    async def _end(self) -> Run:
        await self._parts.waiting.wait_on_loop(self.id)
        return self

    @property
    def row(self) -> RunRow:
        """The run as the store has it, for code that builds on it."""
        return reader.require_run(self._parts.store, self.id)

    @property
    def _stored(self) -> StoredRun:
        """The run as it stands now."""
        return StoredRun(self._parts.store, self.row, self._load_graph)

    @property
    def status(self) -> RunStatus:
        """The status now: `run.status == "COMPLETED"`."""
        return self.row.status

    @property
    def progress(self) -> RunProgress:
        """How far the run is, in numbers of nodes. Cheap however large it is, because no node is read.

        print(run.progress.ended, "of", run.progress.nodes)
        """
        return self._stored.progress

    @property
    def workflow(self) -> str:
        """The name of its workflow."""
        return self.row.workflow

    @property
    def input(self) -> dict[str, Any]:
        """Its input by name, as JSON has it."""
        found: dict[str, Any] = decode(self.row.input)
        return found

    @property
    def graph(self) -> Graph:
        """The graph that it follows now. It may have healed since the run began."""
        return self._parts.code.graphs.of(self.row)

    @property
    def result(self) -> Any:
        """What the run is for: the output of its last node; where several come last, a dict of their outputs by name.

        It has the type that the node says it returns. Raises RunFailed, RunCancelled or RunPaused if the run has ended or
        paused like that, and RunStillActive while it goes on.
        """
        row = self.row
        self._checked(row)
        return result_of(StoredRun(self._parts.store, row, self._load_graph), self._parts.code.at_hand(row))

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of all completed nodes by name, or by id where several have one name. Every id works too.

        They are in the order of declaration, so a fan-out has the order of its items.
        """
        found = reader.get_outputs(self._parts.store, self.id)
        row = self.row  # read after the outputs: switching to another graph only adds numbers
        return all_outputs(self._parts.code.at_hand(row), self.id, self._parts.code.graphs.of(row), found)

    @overload
    def output(self, node: Callable[..., Coroutine[Any, Any, Delta[Output]]]) -> Output: ...
    @overload
    def output(self, node: Callable[..., Coroutine[Any, Any, Output]]) -> Output: ...
    @overload
    def output(self, node: Callable[..., Delta[Output]]) -> Output: ...
    @overload
    def output(self, node: Callable[..., Output]) -> Output: ...
    @overload
    def output(self, node: str) -> Any: ...
    def output(self, node: str | Callable[..., Any]) -> Any:
        """The output of one node, in its return type; raises KeyError until it has completed, and if it was skipped.

        run.output("ship")             # by name, or by id
        run.output(Order.ship)         # by its method, or its job: type checkers know what comes back
        """
        row = self.row
        stored = StoredRun(self._parts.store, row, self._load_graph)
        code = self._parts.code
        index = index_of_node(stored, node, code.class_at_hand(row))
        found = reader.get_outputs(self._parts.store, self.id, (index,))
        spec = stored.graph.in_order[index]
        if index not in found:
            raise no_output(stored, spec, index)
        shape = code.at_hand(row).returns_of(spec) or (None if isinstance(node, str) else said_to_return(node))
        return typed(shape, self.id, spec, found[index])

    @property
    def state(self) -> dict[str, Any]:
        """The state of the workflow by field, folded from all completed nodes; empty if it declares none.

        Once the run has ended it depends only on what the nodes returned.
        """
        row = self.row
        state = self._parts.code.bodies_of(row).state
        if state is None:
            return {}
        outputs = reader.get_stored_outputs(self._parts.store, self.id)
        return state.received(final_state(self.id, self._parts.code.graphs.of(row), state, outputs))

    def _index_of(self, node: str) -> int:
        check_node_name(node)
        return self._stored.index_of(node)

    def nodes(self, *, removed: bool = False) -> list[NodeView]:
        """Every node, in order, with its attempts; with `removed`, also nodes that only earlier versions had."""
        stored = self._stored
        found = stored.nodes()
        return [node for node in found if removed or node.row.index not in stored.graph.removed]

    def node(self, name: str) -> NodeView:
        """One node, named by id or name, with its attempts."""
        (view,) = self._stored.nodes(self._index_of(name))
        return view

    def logs(self, node: str | None = None, attempt: int | None = None) -> list[LogRecord]:
        """What its bodies logged and printed, in the order of time; optionally of one node or one attempt number.

        for line in run.logs("charge"):
            print(line.time, line.attempt, line.level, line.message)
        """
        check_attempt(attempt)
        index = None if node is None else self._index_of(node)
        rows = reader.list_lines(self._parts.store, self.id, index, number=attempt, kind=LOG)
        specs = self.graph.in_order
        return [
            LogRecord(line.at / SECOND, specs[row.node].name, row.number, line.level, line.logger, line.text)
            for row, line in in_order_of_time(rows)
        ]

    def effects(self, node: str | None = None, attempt: int | None = None) -> list[Effect]:
        """The recorded effects: what its bodies asked of the outside world, and the answers; by attempt, then by index.

        for effect in run.effects("charge"):
            print(effect.attempt, effect.index, effect.name, effect.request, effect.error or effect.response)
        """
        check_attempt(attempt)
        index = None if node is None else self._index_of(node)
        store = self._parts.store
        rows = reader.list_lines(store, self.id, index, number=attempt, kind=EFFECT)
        payloads = reader.list_lines(store, self.id, index, number=attempt, kind=PAYLOAD) if rows else ()
        return effects_of([*payloads, *rows], self.graph.order)

    def replay(self) -> Replayed:
        """Run the "pure" and "recordable" bodies again, with the code as it is now and without the outside world.

        Every effect is answered from the record, and each output must equal the recorded one, byte for byte; the first
        difference raises ReplayMismatch. Other nodes give their recorded outputs, and are listed as stubbed.

            report = run.replay()
            print(report.executed, report.stubbed, report.effects, report.seconds)
        """
        from ..reports.replay import replay_run

        return replay_run(self._parts.store, self._parts.code, self.id)

    def checkpoint(self, at: int | str | None = None) -> Checkpoint:
        """The run as it was at a `seq` of its journal, at a label, or at the checkpoint with a key; by default as it is now.

        It is derived from the journal; nothing is stored for it.

            paid = run.checkpoint("paid")
            print(paid.step, paid.state, [item.node for item in paid.frontier], paid.idempotency_key)
            json.dump(paid.data(), file)
        """
        from ..reports.checkpoints import checkpoint

        check_step(self.id, at)
        parts = self._parts
        return checkpoint(parts.store, self.id, self._load_graph, parts.code.bodies_of, at, parts.checkpoint_keys)

    def checkpoints(self) -> list[Label]:
        """The checkpoints that bodies gave names to with `ctx.checkpoint()`, in order."""
        from ..reports.checkpoints import labels

        return labels(self._parts.store, self.id, self._load_graph)

    def _step_of(self, label: str) -> int | None:
        """The `seq` of the latest checkpoint with this label; None if there is none."""
        return max((each.step for each in self.checkpoints() if each.label == label), default=None)

    def _load_graph(self, digest: Digest) -> Graph:
        return self._parts.code.graphs.get(digest, self.id)

    def export(self, file: str | Path, *, missing_code_ok: bool = False) -> Path:
        """Write what a replay needs of this run into one JSON file, a cassette, to test later code with.

            run.export("tests/orders.cassette.json")

        Known secrets are masked. The code of the run is imported to know them; if it cannot be, InputError says so and nothing
        is written, unless `missing_code_ok`. A file of this name is replaced.
        """
        from ..reports.cassettes import export_run

        return export_run(self._parts.store, self._parts.code, self.id, file, missing_code_ok=missing_code_ok)

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self.nodes())

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until the run has ended, in whatever status, or has paused because somebody must decide.

        Raises RunStillActive when that takes longer than `timeout` seconds. `check()` judges how it ended:

            run.wait(60).check()
        """
        self._parts.waiting.wait(self.id, timeout)
        return self

    def check(self) -> Run:
        """Raise RunFailed or RunCancelled if the run has ended like that, RunPaused if it waits for a decision."""
        return self._checked(self.row)

    def _checked(self, row: RunRow) -> Run:
        if waits_for_a_decision(row):
            failure = self._failure(row) if row.reason == NODE_FAILED and row.failed else None
            raise RunPaused(self.id, row.reason or "", failure=failure, store=self._parts.store.url)
        if row.status is RunStatus.FAILED:
            raise self._failure(row)
        if row.status is RunStatus.CANCELLED:
            raise RunCancelled(self.id, store=self._parts.store.url)
        return self

    def export_graph(self) -> dict[str, Any]:
        """The graph of this run as plain data: to keep with `json.dump`, to read, or to edit.

            form = run.export_graph()
            form["nodes"]["n_8f3a2b11"]["job"] = "shop.payments:charge"

        `run.import_graph(form)` goes on with it.
        """
        row = self.row
        return to_frozen(self._parts.code.graphs.of(row), row.created_at / SECOND)

    def why(self, node: str | None = None) -> Why:
        """Why the run is not done yet, or ended as it did; or why one node has the status it has.

        print(run.why("ship"))
        """
        if node is not None:
            check_node_name(node)
        return self._stored.why(node)

    @property
    def metrics(self) -> RunMetrics:
        """The run in numbers, from what is stored: attempts, retries, latencies. Reads its whole journal.

        print(run.metrics.retries, run.metrics.step_latency.p95)
        """
        return self._stored.metrics()

    def diff(self, other: Run | str) -> Comparison:
        """Compare this run with another: input, graph, and the status, output, attempts and time of every node.

        print(run.fork("charge", input={"express": True}).wait().diff(run))
        """
        theirs = as_run(self._parts, other)
        return compare_runs(*(RunSource(run._parts.store, run.id, run._parts.code.graphs.of) for run in (self, theirs)))

    def audit(self) -> list[str]:
        """Recompute every invariant from the rows; an empty list means that all hold."""
        return audit_run(self._parts.store, self.id)

    def _failure(self, row: RunRow) -> RunFailed:
        store = self._parts.store
        broken = reader.all_nodes(store, self.id, NodeStatus.FAILED, NodeStatus.INTERRUPTED)
        if not broken:
            reason = row.reason or "unknown reason"
            told = _REASONS.get(reason, reason)
            return RunFailed(self.id, node="(run)", attempt=0, error_type=reason, error_message=told, store=store.url)
        attempts = {node.index: reader.list_attempts(store, self.id, node.index) for node in broken}
        earliest = min(broken, key=lambda node: attempts[node.index][-1].ended_at or 0)
        (first,) = self._stored.nodes(earliest.index)
        error = first.error or NodeError("Interrupted", "it is not known whether the body ran to its end", None)
        return RunFailed(
            self.id,
            node=first.name,
            attempt=first.row.attempt,
            error_type=error.type,
            error_message=error.message + (_LOOK_FIRST if first.status is NodeStatus.INTERRUPTED else ""),
            others=len(broken) - 1,
            store=store.url,
        )


def as_run(parts: Parts, given: Run | str) -> Run:
    """A run, given as one or by its id."""
    if isinstance(given, str):
        return Run(parts, RunId(given))
    if not isinstance(given, Run):
        raise InputError(f"expected a Run or a run id, got {shown(given)}")
    return given


_LOOK_FIRST = "; look whether it did its work before you retry it, which runs it once more"
_REASONS = {"deadline": "it did not end within its deadline"}
