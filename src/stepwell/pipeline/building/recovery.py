"""After a crash: finish the runs that another process left, publish what they settled, and record what failed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...base.clock import SECOND
from ...base.commands import DEFAULT_STORE
from ...core.model import UNPAUSED_RUNS
from ...errors import StepwellError
from ..staleness.standing import FRESH
from ..staleness.units import Unit
from ..states.records import StageFailure
from .results import is_own_run, node_units, results_of
from .work import Runs

if TYPE_CHECKING:
    from ...engine import Run
    from ..looking import View

TOKEN_RUN = 32
"""How many digits of the run id the token of a draft begins with."""


class Recovery:
    """What a scan does first, under the lease: nobody else works on runs of this root."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._failed: dict[str, tuple[tuple[str, str], Run]] = {}

    def recover(self, drafts: Iterable[str], died: int | None) -> bool:
        """Go on with runs that another process left, and publish what was settled and not published; whether there was any.

        `died` is the number of a scan that may not have come to its end.
        """
        wanted: dict[str, list[str]] = {}
        for path in drafts:
            token = path.rpartition("/")[2].partition("-")[2]
            if len(token) > TOKEN_RUN and token[TOKEN_RUN] == ".":
                wanted.setdefault(token[:TOKEN_RUN], []).append(path.lstrip("/"))
        if self._runs.given is None and not wanted and not os.path.exists(DEFAULT_STORE.removeprefix("sqlite:///")):
            return False
        engine = self._runs.engine
        self._runs.paused = {unit: run.id for run in self._find("PAUSED") for unit in self._units_of(run)}
        left = [run for status in UNPAUSED_RUNS for run in self._find(status)]
        for run in left:
            try:
                engine.adopt(run.id).wait()
            except StepwellError:
                run.cancel()  # its code is gone: what is still stale is planned anew
                run.wait()
        # Of these a run may have ended after the drafts were listed, and before the runs were.
        ended = (
            []
            if died is None
            else [run for each in ("FAILED", "COMPLETED") for run in self._find(each, scan=str(died))]
        )
        paused = self._runs.pipeline.store.cache.read().verdict.get("paused", ())
        for run_id in dict.fromkeys([*wanted, *paused, *(run.id for run in (*left, *ended))]):
            self._publish(run_id, wanted.get(run_id, []))
        return bool(left or wanted or ended or paused)

    def _find(self, status: str, **tags: str) -> Sequence[Run]:
        tag = {**self._runs.own_tag, **tags}
        runs = self._runs.engine.runs(workflow=self._runs.workflow, status=status, tag=tag, limit=1_000)
        return [run for run in runs if is_own_run(run)]

    def _publish(self, run_id: str, drafts: Sequence[str]) -> None:
        """Publish what a run settled, unless it was published, or nobody knows the run any more. Its other drafts are of
        attempts that were lost.
        """
        try:
            run = self._runs.engine.get(run_id)
        except StepwellError:
            return
        store = self._runs.pipeline.store
        states, failed, *_ = results_of(run, store.drafts)
        known = store.records.find(each.draft.address for each in states)
        outdated = {
            unit
            for unit, draft, record in states
            if (now := known.get(draft.address)) is not None
            and now.content_hash != record.content_hash
            and now.produced_at >= record.produced_at  # to the second: of two of one second, what is seen stays
        }
        self._runs.publisher.recover([each for each in states if each.unit not in outdated], known)
        for draft in [
            *(each.draft for each in states if each.unit in outdated),
            *(store.drafts.named("", name) for name in drafts),
        ]:
            store.drafts.discard(draft)
        self._failed |= {unit: (error, run) for unit, error in failed.items()}

    def _units_of(self, run: Run) -> list[str]:
        """The units for which a run was started, except those it has made."""
        states, failed, *_ = results_of(run, self._runs.pipeline.store.drafts)
        known = {each.unit for each in states} | failed.keys()
        return [unit for node in run.graph.nodes.values() for unit in node_units(node) if unit not in known]

    @property
    def has_failures(self) -> bool:
        return bool(self._failed)

    def note_failures(self, view: View) -> None:
        """Record failures that the process which started the run did not live to record, so that they back off."""
        if not self._failed:
            return
        notes: dict[str, StageFailure | None] = {}
        for unit in view.model.all_units():
            failure = self._failed.get(unit.id)
            if failure is not None and self._counts(unit, view, failure[1]):
                notes[unit.id] = self._runs.failure(unit, view, failure[0], failure[1].id)
        self._failed.clear()
        self._runs.note(notes, view)
        view.model.touch(
            [path for unit in view.model.all_units() if unit.id in notes for path in unit.outputs.values()]
        )

    def _counts(self, unit: Unit, view: View, run: Run) -> bool:
        """Whether it would fail again: nobody recorded it, and neither its code nor its inputs have changed since."""
        began = run.row.created_at / SECOND
        known = view.snapshot.failures.get(unit.id)
        if known is not None and (known.run_id == run.id or known.last_failed_at >= began):
            return False
        if (
            view.model.standing(unit) is FRESH
            or dict(run.row.tags).get("code") != self._runs.tags(unit.stage.name)["code"]
        ):
            return False
        stamps = [view.model.stamp(path) for path in unit.input_paths()]
        return all(stamp is None or stamp[1] / 1e9 < began for stamp in stamps)
