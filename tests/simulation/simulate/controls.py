"""What people ask of runs, as procedures that take hold of the gate."""

from __future__ import annotations

from stepwell.base.ids import RunId
from stepwell.core.model import RunNews
from stepwell.engine.procedures.gates import ask, ask_to_reattempt, enact
from stepwell.engine.procedures.procedure import Procedure

Asked = Procedure[RunNews | None]


def cancel(run_id: RunId, *, grace: int = 0) -> Asked:
    return enact(ask(run_id, "cancel", grace=grace))


def retry(run_id: RunId) -> Asked:
    return enact(ask(run_id, "retry"))


def reattempt(run_id: RunId, index: int, *, cascade: bool = False) -> Asked:
    return enact(ask_to_reattempt(run_id, index, cascade=cascade))


def pause(run_id: RunId) -> Asked:
    return enact(ask(run_id, "pause"))


def resume(run_id: RunId) -> Asked:
    return enact(ask(run_id, "resume"))
