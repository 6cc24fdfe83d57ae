"""Why a run is paused, and what gets it going again: one table for lists, advice and explanations."""

from __future__ import annotations

from typing import NamedTuple

from ...core.kernel.healing import POSSIBLE_RENAME, UNFIT, UNFIT_DATA, way_on
from ...core.model import NODE_FAILED, PARENT_PAUSED, RunRow


class Step(NamedTuple):
    """What can be done with a run: a method call, the same as a command, and what it does."""

    call: str
    command: str
    effect: str


class Pause(NamedTuple):
    """Why a run is paused, in short, and the ways on. `hint`: what may have to be changed before."""

    reason: str
    steps: tuple[Step, ...]
    hint: str | None = None


PAUSE_REASONS = {"paused": "on request", NODE_FAILED: "a node failed"}
"""Other reasons are sentences."""


def pause_of(run: RunRow) -> Pause:
    """The pause of a PAUSED run."""
    verb, reason = way_on(run), run.reason or "paused"

    def step(effect: str, argument: str = "", option: str = "") -> Step:
        return Step(f"run.{verb}({argument})", f"{verb} {run.id}{option}", effect)

    if reason == "paused":
        return Pause(PAUSE_REASONS[reason], (step("goes on"),))
    if reason == NODE_FAILED:
        retry = Step("run.retry()", f"retry {run.id}", "runs again what failed")
        return Pause(PAUSE_REASONS[reason], (retry, Step("run.resume()", f"resume {run.id}", "goes on without it")))
    if reason == PARENT_PAUSED:
        return Pause(reason, (Step("run.parent.resume()", f"resume {run.parent}", "goes on with both"),))
    if reason.startswith(UNFIT):
        given = step("gives the missing input, and goes on", "input={...}", " --input NAME=VALUE")
        return Pause("its input does not fit", (given,))
    if reason.startswith(UNFIT_DATA):
        hint = "give the missing field a default, or correct the annotation"
        return Pause("stored data does not fit its code", (step("goes on after that"),), hint)
    hint = 'if a node was renamed, declare it with `@step(was="old_name")`; if not:'
    freeze = Step("run.freeze()", f"freeze {run.id}", "keeps the graph it has")
    renamed = Pause("a node renamed?", (step("goes on with the new nodes", "accept=True", " --accept"), freeze), hint)
    return renamed if reason.startswith(POSSIBLE_RENAME) else renamed._replace(reason=reason)
