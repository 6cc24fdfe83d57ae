"""Runs from one store to another: ended ones are copied; unfinished ones are paused, moved, and go on there.

A run is never at work in both stores. An unfinished run is paused here before it is read, deleted here once it is complete and
audited there, and only then resumed there. The reason of the pause says so, and copying again after a crash goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from ...base.ids import Digest, RunId
from ...core.graph import Graph
from ...core.kernel.audit import earlier_graphs
from ...core.kernel.children import root_id
from ...core.kernel.layout import add_graph
from ...core.model import (
    RUN_VERBS,
    AttemptRow,
    Batch,
    GateState,
    NodeStatus,
    Receipt,
    Refusal,
    Refused,
    RunRow,
    RunStatus,
    ops,
    queries,
)
from ...core.model.versions import VERSION_KINDS
from ...core.store import Store, reader, versions
from ...errors import InputError, RunBusy, StepwellError, StoreCorrupt
from ..reports.audit import audit_run
from .children import child_rows
from .gates import ask, delete, enact
from .procedure import carry_out, in_turn

if TYPE_CHECKING:
    from ...answers.runs import CopiedRunRecord

Row = TypeVar("Row")
Outcome = Literal["copied", "moved", "there", "left", "refused"]
TRIES = 3
"""How often a run is copied again that changed while it was read."""
ROWS = 1_000
AT_ONCE = 100
"""Nodes whose attempts are read together: their outputs may be large."""


class CopiedRun(NamedTuple):
    run_id: RunId
    workflow: str
    outcome: Outcome
    detail: str = ""
    nodes: int = 0
    attempts: int = 0

    def to_dict(self) -> CopiedRunRecord:
        return cast("CopiedRunRecord", self._asdict())


class CopiedRows(NamedTuple):
    nodes: int
    attempts: int
    journal: int
    lines: int


class NotCopied(StepwellError):
    """A run stays where it is; the message says why."""


def copy_runs(
    source: Store,
    target: Store,
    *,
    only: Collection[str] = (),
    unfinished: bool = False,
    trust: bool = False,
    wait_seconds: float = 60.0,
) -> Iterator[CopiedRun]:
    """Copy runs, the oldest first, and say of each what became of it."""
    if target.embedded and not source.embedded and not trust:
        raise InputError(
            f"what {source.url} names would run from {target.url} as your own code: a server may be written by others. If you "
            "trust all that is in it, say so: trust=True, or --trust"
        )
    return Copying(source, target, unfinished, wait_seconds).run([*only] if only else None)


class Copying:
    def __init__(self, source: Store, target: Store, unfinished: bool, wait_seconds: float) -> None:
        self._source, self._target = source, target
        self._unfinished = unfinished
        self._wait_seconds = wait_seconds
        self._reason = f"copied from {source.url}"
        """The reason of runs that are paused while they are copied."""

    def run(self, only: Sequence[str] | None) -> Iterator[CopiedRun]:
        rows = reader.all_runs(self._source) if only is None else self._trees(only)
        runs = {row.id: row.digest for row in rows}
        ages = reader.get_graph_ages(self._source, *set(runs.values()))
        for digest in sorted(
            ages, key=ages.__getitem__
        ):  # of two versions of a workflow, the one stored first is the older
            self._copy_graph(Digest(digest))
        if only is None:
            self._copy_versions()
        for run_id in reversed(runs):
            row = reader.get_run(self._source, run_id)
            if row is not None:
                yield self._copy(row)
        yield from self._resume_left(runs)

    def _trees(self, only: Sequence[str]) -> Iterator[RunRow]:
        """These runs and all below them, the newest first."""
        for run_id in only:
            row = reader.require_run(self._source, run_id)
            for child in carry_out(self._source, child_rows(row.id)):
                yield from self._trees([child.id])
            yield row

    # Definitions

    def _copy_graph(self, digest: Digest, workflow: str | None = None) -> None:
        if reader.get_graph_ages(self._target, digest):
            return
        document = reader.get_graph(self._source, digest)
        if document is None:
            raise StoreCorrupt(f"the graph {digest} is missing from {self._source.url}")
        if workflow is None:
            page = reader.list_runs(self._source, queries.ListRuns(limit=1, digest=digest))
            if not page.runs:
                return  # its last run is gone
            workflow = page.runs[0].workflow
        for op in add_graph(Graph.load(document), workflow, chunk=self._target.limits.nodes):
            self._commit([op])

    def _copy_versions(self) -> None:
        for kind in VERSION_KINDS:
            for name in versions.all_names(self._source, kind):
                active: int | None = None
                for row in versions.all_versions(self._source, kind, name.name):
                    content = versions.get_content(self._source, kind, row.digest)
                    saved = versions.save_version(self._target, kind, row.name, row.digest, content)
                    active = saved.number if row.active else active
                if name.active != name.newest:
                    versions.activate_version(self._target, kind, name.name, active)

    # Runs

    def _copy(self, row: RunRow) -> CopiedRun:
        if row.parent is not None or not row.status.terminal:
            root = reader.get_run(self._source, root_id(row.id, row.depth))
            if root is not None and not root.status.terminal and (root.id != row.id or self._has_children(root)):
                detail = (
                    f"{root.id} and the runs that perform its nodes are copied when it has ended: it is {root.status}"
                )
                return CopiedRun(row.id, row.workflow, "left", detail)
        there = reader.get_run(self._target, row.id)
        if there is not None and there.purpose == "restore":  # somebody died while it was copied
            carry_out(self._target, delete(row.id))
            there = None
        if there is not None:
            return self._already_there(row, there)
        if not row.status.terminal and not self._unfinished:
            return CopiedRun(row.id, row.workflow, "left", f"it is {row.status}: --unfinished moves it")
        try:
            if row.status.terminal:
                counts = self._copy_until_it_is_still(row.id)
                return CopiedRun(row.id, row.workflow, "copied", "", counts.nodes, counts.attempts)
            return self._move(row)
        except (NotCopied, RunBusy) as error:
            return CopiedRun(row.id, row.workflow, "refused", str(error))

    def _has_children(self, row: RunRow) -> bool:
        return bool(reader.list_runs(self._source, queries.ListRuns(limit=1, parent=row.id)).runs)

    def _already_there(self, row: RunRow, there: RunRow) -> CopiedRun:
        if (there.created_at, there.seed, there.workflow) != (row.created_at, row.seed, row.workflow):
            return CopiedRun(row.id, row.workflow, "refused", f"{self._target.url} has another run of this id")
        ending = row.reason == self._reason and row.gate is GateState.HELD and row.purpose == "cancel"
        if there.reason == self._reason and (ending or row.status is RunStatus.CANCELLED):
            # The copy was complete when somebody died.
            self._in_turn(self._source, lambda: enact(ask(row.id, "cancel", grace=0)))
            return self._hand_over(row)
        if row.status.paused and row.reason == self._reason and there.reason == self._reason:
            self._remove_copy(row.id)
            return self._copy(row)
        same = (there.status, there.seq) == (row.status, row.seq)
        detail = "" if same else f"but it is {there.status} there and {row.status} here, and stays so"
        return CopiedRun(row.id, row.workflow, "there", detail, row.nodes)

    def _move(self, row: RunRow) -> CopiedRun:
        going = not row.status.paused or row.reason == self._reason
        if not row.status.paused:
            self._in_turn(self._source, lambda: enact(ask(row.id, "pause", reason=self._reason)))
        try:
            self._wait_for_bodies(row.id)
            counts = self._copy_until_it_is_still(row.id)
            gate = ask(row.id, "cancel", grace=0)._replace(allowed=RUN_VERBS["resume"].allowed)
            if self._in_turn(self._source, lambda: enact(gate)) is None:
                self._remove_copy(row.id)
                raise NotCopied("somebody resumed or ended it meanwhile; copy it again")
        except NotCopied:
            if going:
                self._in_turn(self._source, lambda: enact(ask(row.id, "resume")))
            raise
        moved = self._hand_over(row, resume=going)
        return moved._replace(nodes=counts.nodes, attempts=counts.attempts)

    def _hand_over(self, row: RunRow, *, resume: bool = True) -> CopiedRun:
        carry_out(self._source, delete(row.id))
        if resume:
            self._in_turn(self._target, lambda: enact(ask(row.id, "resume")))
        return CopiedRun(row.id, row.workflow, "moved", "" if resume else "it stays paused", row.nodes)

    def _resume_left(self, known: Collection[RunId]) -> Iterator[CopiedRun]:
        """Resume copies whose originals were deleted before somebody died."""
        for row in reader.all_runs(self._target, *RUN_VERBS["resume"].allowed):
            if row.reason == self._reason and reader.get_run(self._source, row.id) is None and row.id not in known:
                self._in_turn(self._target, lambda run_id=row.id: enact(ask(run_id, "resume")))  # type: ignore[misc]
                yield CopiedRun(row.id, row.workflow, "moved", "", row.nodes)

    def _wait_for_bodies(self, run_id: RunId) -> None:
        """Wait for running bodies to end; the sweep gives back what a dead worker had."""
        give_up_at = time.monotonic() + self._wait_seconds
        while running := reader.count_nodes(self._source, run_id).get(NodeStatus.RUNNING, 0):
            if time.monotonic() > give_up_at:
                raise NotCopied(
                    f"{running} of its nodes still ran after {self._wait_seconds:g} s; it goes on where it was"
                )
            time.sleep(0.05)
            self._source.commit([ops.Sweep()])
        row = reader.require_run(self._source, run_id)
        if not row.status.paused:
            raise NotCopied(f"it became {row.status} meanwhile; copy it again")

    def _copy_until_it_is_still(self, run_id: RunId) -> CopiedRows:
        for _ in range(TRIES):
            row = reader.require_run(self._source, run_id)
            if row.gate is GateState.HELD:
                raise NotCopied(f"somebody is just changing it ({row.purpose}); copy it again")
            if row.releasing:
                raise NotCopied("a node has completed, and not all of its children know it; let it go on for a moment")
            counts = self._restore(row)
            if reader.require_run(self._source, run_id).seq == row.seq:
                self._check(row, counts)
                return counts
            self._remove_copy(run_id)
        raise NotCopied("it changes all the time; pause it first")

    def _restore(self, row: RunRow) -> CopiedRows:
        source, run_id = self._source, row.id
        healed = list(reader.rows(source, queries.ListJournal(run_id, kinds=("healed",)))) if row.heals else []
        former = tuple(digest for digest in map(Digest, earlier_graphs(healed)) if digest != row.digest)
        for digest in (*former, row.digest):
            self._copy_graph(digest, row.workflow)
        counts = [0, 0, 0, 0]
        limits = self._target.limits
        parts: list[tuple[str, Iterable[Any], Callable[[Any], int]]] = [
            ("nodes", reader.rows(source, queries.ListNodes(run_id)), lambda _: 0),
            ("attempts", self._attempts(run_id), lambda row: sum(map(len, filter(None, row[-3:])))),  # its payloads
            ("journal", reader.rows(source, queries.ListJournal(run_id)), lambda _: 0),
            ("lines", [*reader.list_marks(source, run_id)], lambda line: len(line.data)),
            ("lines", reader.rows(source, queries.ListLines(run_id)), lambda line: len(line.data)),
        ]
        self._commit([ops.Restore(row, former_graphs=former)])
        for place, (field, rows, size) in enumerate(parts):
            for chunk in _chunks(rows, size, min(ROWS, limits.nodes), limits.batch_bytes):
                part: dict[str, Any] = {field: chunk}
                self._commit([ops.Restore(row, **part)])
                counts[min(place, 3)] += len(chunk)
        self._commit([ops.Restore(row, finish=True)])
        return CopiedRows(*counts)

    def _attempts(self, run_id: RunId) -> Iterator[AttemptRow]:
        """In the order of claims, a few at a time: their outputs may be large."""
        found = sorted(
            (a.started_at, a.id, a.index, a.number) for a in reader.each_attempt(self._source, run_id, limit=ROWS)
        )
        for start in range(0, len(found), AT_ONCE):
            part = found[start : start + AT_ONCE]
            indexes = [*dict.fromkeys(index for _, _, index, _ in part)]
            pages = self._source.read([queries.ListAttempts(run_id, index) for index in indexes])
            rows = {(row.index, row.number): row for page in pages for row in page}
            for _, _, index, number in part:
                if (index, number) in rows:
                    yield rows[index, number]

    def _check(self, row: RunRow, counts: CopiedRows) -> None:
        """Compare the copy with the original, and audit it."""
        there = reader.require_run(self._target, row.id)
        problems = audit_run(self._target, row.id)
        found = CopiedRows(
            len(reader.all_nodes(self._target, row.id)),
            sum(1 for _ in reader.each_attempt(self._target, row.id, limit=ROWS)),
            len(reader.list_journal(self._target, row.id)),
            len(reader.list_marks(self._target, row.id)) + len(reader.list_lines(self._target, row.id)),
        )
        if found != counts:
            problems.append(f"{found} are there, and {counts} here")
        if there != row:
            differing = [name for name, a, b in zip(RunRow._fields, row, there, strict=True) if a != b]
            problems.append(f"these differ: {', '.join(differing)}")
        if problems:
            self._remove_copy(row.id)
            raise NotCopied(f"it was not the same there and was removed again: {'; '.join(problems[:3])}")

    def _remove_copy(self, run_id: RunId) -> None:
        there = reader.get_run(self._target, run_id)
        if there is not None and not there.status.terminal and there.purpose != "restore":
            self._in_turn(self._target, lambda: enact(ask(run_id, "cancel", grace=0)))
        carry_out(self._target, delete(run_id))

    def _commit(self, batch: Batch) -> list[Any]:
        receipts: list[Receipt] = list(self._target.commit(batch))
        for op, receipt in zip(batch, receipts, strict=True):
            if isinstance(receipt, Refused):
                if type(op) is ops.Restore and reader.get_run(self._target, op.run.id) is None:
                    self._check_key(op.run, receipt)
                raise NotCopied(
                    f"{self._target.url} refuses it: {receipt.reason} {receipt.detail} ({type(op).__name__})"
                )
        return receipts

    def _check_key(self, row: RunRow, refused: Refused) -> None:
        if refused.reason is Refusal.CONFLICT:
            raise NotCopied(
                f"another run of {row.workflow} there has its idempotency key {row.idempotency_key!r}: delete one of both, or "
                "keep them in two stores"
            )

    def _in_turn(self, store: Store, procedure: Callable[[], Any]) -> Any:
        return in_turn(lambda: carry_out(store, procedure()), self._wait_seconds)


def _chunks(
    rows: Iterable[Row], size: Callable[[Row], int], most_rows: int, most_bytes: int
) -> Iterator[tuple[Row, ...]]:
    chunk: list[Row] = []
    held = 0
    for row in rows:
        if chunk and (len(chunk) >= most_rows or held + size(row) > most_bytes):
            yield tuple(chunk)
            chunk, held = [], 0
        chunk.append(row)
        held += size(row)
    if chunk:
        yield tuple(chunk)
