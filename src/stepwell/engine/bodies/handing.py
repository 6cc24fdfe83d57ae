"""Settlements of nodes that runs perform: handing a node over, and settling it once the run has ended."""

from __future__ import annotations

from collections.abc import Callable

from ...base.codec import decode, encode
from ...base.ids import RunId
from ...core.kernel import settling
from ...core.kernel.children import root_id
from ...core.model import Create, RunRow, RunStatus, Settle
from ...errors import StoreError
from ..procedures.children import ChildEnd
from .attempt import Attempt, completed, settle
from .held import Held
from .host import Services


class LookAttempt(Attempt):
    """Instead of its body, looks at the run that performs a node."""

    __slots__ = ("_look",)

    def __init__(self, held: Held, services: Services, look: Callable[[Held], ChildEnd]) -> None:
        super().__init__(held, services)
        self._look = look

    def perform(self) -> Settle:
        try:
            return after_look(self.held, self._look(self.held))
        except StoreError:  # this worker closes
            return settle(self.held, settling.RELEASED)


def handed_over(held: Held, child: Create) -> Settle:
    """The node is performed by this run from now on. What was requested is the output of the attempt."""
    request = {
        "run": child.run_id,
        "workflow": child.workflow,
        "digest": child.digest,
        "input": decode(child.input),
    }
    return settle(held, settling.PARKED)._replace(output=encode(request), child=child)


def after_look(held: Held, end: ChildEnd) -> Settle:
    """The node gets the result of the run that performs it, fails with it, or waits on."""
    run_id, run, output = end
    if run_id is None:
        return _failed(held, "ChildMissing", f"no attempt of node {held.spec.name!r} says which run performs it", None)
    if run is None:
        return _failed(held, "ChildMissing", f"child run {run_id} is gone: it was deleted; {_anew(held)}", run_id)
    if not run.status.terminal:
        return settle(held, settling.PARKED)
    if run.status.completed:
        return completed(held, output)
    return _failed(held, *_ended_badly(run), run_id)


def _ended_badly(run: RunRow) -> tuple[str, str]:
    root, what = root_id(run.id, run.depth), f"child run {run.id} of {run.workflow} is {run.status}"
    if run.status is RunStatus.CANCELLED:
        return "ChildCancelled", f"{what}; retry {root} to go on with it"
    why = run.error or run.reason or "it could not go on"
    return "ChildFailed", f"{what} ({why}); retry {root} runs again what failed in it"


def _anew(held: Held) -> str:
    return f"reattempt node {held.spec.name!r} to have it performed anew"


def _failed(held: Held, kind: str, message: str, child: RunId | None) -> Settle:
    return settle(held, settling.FAILED, error=encode({"type": kind, "message": message, "child": child}))
