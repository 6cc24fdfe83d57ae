"""Runs of classes keep up with their class: which runs this process heals, and which it leaves to others."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from ...base.codec import sha256
from ...base.ids import WorkerId
from ...core.graph import Graph
from ...core.kernel.healing import POSSIBLE_RENAME, UNFIT, Verdict, judge, way_on
from ...core.kernel.layout import add_graph
from ...core.model import RUN_VERBS, PutRecord, RunRow, Unfinished
from ...core.store import Store, reader
from ...core.store.living import served
from ...errors import RunConflict, RunError
from ..procedures.gates import ask, enact, switch_graph
from ..procedures.procedure import carry_out
from .code import Code

log = logging.getLogger("stepwell")


class Versions:
    def __init__(self, store: Store, code: Code, worker: WorkerId | None) -> None:
        self._store = store
        self._code = code
        self._worker = worker
        self._possible_renames: set[tuple[str, str]] = set()
        """Runs, each with a digest, whose heal was refused because it may rename a node: it would be refused again."""

    def judge(self, workflow: str, target: str | None, graph: Graph) -> Verdict:
        """What this process does with a run that has this graph."""
        if not self._code.outdated(workflow, target, graph):
            return "serve"
        today = self._code.today(workflow, target)
        assert today is not None
        if today.digest not in reader.get_graph_ages(self._store, today.digest):
            for op in add_graph(today, workflow, chunk=self._store.limits.nodes):
                self._store.commit([op])
        alive = {digest for name, digest in served(self._store, but=self._worker) if name == workflow}
        ages = reader.get_graph_ages(self._store, today.digest, graph.follows or "", *alive)
        return judge(graph.follows, today.digest, ages, alive)

    def up_to_date(
        self, row: RunRow, *, accept: bool = False, check_input: bool = True, entries: Sequence[PutRecord] = ()
    ) -> RunRow:
        """The run, healed if its class has changed. RunConflict if that is left to newer code, a node may have been renamed, or
        the input does not fit. `entries`: what the audit log gets of a heal that a person accepts."""
        row = self._followed(row, accept=accept, entries=entries)
        if check_input:
            self.check_input(row)
        return row

    def check_input(self, row: RunRow) -> None:
        """RunConflict if the input of a run does not fit its class; a run that goes on is paused."""
        found = self._code.misfits(row)
        if not found:
            return
        reason = unfit(row, found)
        if row.status.terminal:
            raise RunConflict(
                f"run {row.id}: {reason}; `run.fork(..., input={{...}})` begins another run", run_id=row.id
            )
        if row.status.moving:
            # Unless somebody gives the run another input meanwhile.
            carry_out(self._store, enact(ask(row.id, "pause", reason=reason, judged=sha256(row.input))))
            log.warning("run %s is paused: %s", row.id, reason)
        raise RunConflict(f"run {row.id} is paused: {reason}", run_id=row.id)

    def _followed(self, row: RunRow, *, accept: bool, entries: Sequence[PutRecord]) -> RunRow:
        graph = self._code.graphs.get(row.digest, row.id)
        verdict = self.judge(row.workflow, row.target, graph)
        if verdict == "serve":
            return row
        if verdict == "yield":
            raise RunConflict(
                f"run {row.id} is left to a live worker that has a newer version of {row.workflow}", run_id=row.id
            )
        today = self._code.today(row.workflow, row.target)
        assert today is not None
        return self._heal(row, graph, today, back=verdict == "roll back", accept=accept, entries=entries)

    def heal_all(self, of: Unfinished, verdict: Verdict, until: float) -> bool:
        """Heal these runs while there is time; whether any were healed or are left."""
        graph, today = self._code.graphs.get(of.digest), self._code.today(of.workflow, of.target)
        assert today is not None
        some = False
        for row in reader.all_runs(self._store, *RUN_VERBS["cancel"].allowed, workflow=of.workflow, digest=of.digest):
            if row.target != of.target or (row.id, today.digest) in self._possible_renames:
                continue
            if time.monotonic() >= until:
                return True
            try:
                healed = self._heal(row, graph, today, back=verdict == "roll back", accept=False)
                some = True
                if not healed.status.paused:
                    self.check_input(healed)
            except RunError as error:  # also a run that was just deleted: the others need not wait for it
                log.info("%s", error)
        return some

    def _heal(
        self,
        row: RunRow,
        graph: Graph,
        today: Graph,
        *,
        back: bool,
        accept: bool,
        entries: Sequence[PutRecord] = (),
    ) -> RunRow:
        try:
            carry_out(self._store, switch_graph(row, graph, today, accept=accept, entries=entries))
        except RunConflict as conflict:
            if POSSIBLE_RENAME in str(conflict):
                self._possible_renames.add((row.id, today.digest))
            raise
        healed = reader.require_run(self._store, row.id)
        if healed.digest == row.digest:
            self._possible_renames.add((row.id, today.digest))
            if healed.status.paused and (healed.reason or "").startswith(POSSIBLE_RENAME):
                log.warning("run %s is paused: %s", row.id, healed.reason)
                raise RunConflict(f"run {row.id} is paused: {healed.reason}", run_id=row.id)
            raise RunConflict(f"run {row.id} is {healed.status} and was not healed", run_id=row.id)
        log.warning(
            "run %s was healed %s of %s (%s)",
            row.id,
            "back to an older version" if back else "to the present version",
            row.workflow,
            changes(graph, self._code.graphs.get(healed.digest, row.id)),
        )
        return healed


def unfit(row: RunRow, found: Mapping[str, Sequence[str]]) -> str:
    """The reason of a run that is paused because its class refuses its input."""
    problems = "; ".join(problem for each in found.values() for problem in each)
    given = ", ".join(f'"{name}": ...' for name in found)
    call = f"run.{'retry' if row.status.terminal else way_on(row)}(input={{{given}}})"
    return f"{UNFIT}{problems}. Give what is missing: {call}, or --input NAME=VALUE on the command line"


def changes(old: Graph, new: Graph) -> str:
    """What a heal changes, in a few words."""
    before = {index: node for node, index in old.index.items() if index not in old.removed}
    now = {index: node for node, index in new.index.items() if index not in new.removed}
    both = sorted(now.keys() & before.keys())
    return told_changes(
        new=[spec.id for spec in new if new.index[spec.id] not in before],
        gone=[before[index] for index in sorted(before.keys() - now.keys())],
        renamed=[f"{before[index]} to {now[index]}" for index in both if before[index] != now[index]],
    )


def told_changes(**changed: Sequence[str]) -> str:
    """Which nodes of two graphs differ, in a few words."""
    parts = [
        f"{len(found)} {what}: {', '.join(found[:3])}{f' and {len(found) - 3} more' if len(found) > 3 else ''}"
        for what, found in changed.items()
        if found
    ]
    return "; ".join(parts) or "the same nodes, otherwise connected or with other options"
