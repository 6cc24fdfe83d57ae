"""What can be done with a run in each status."""

from __future__ import annotations

from ...core.kernel.healing import POSSIBLE_RENAME, UNFIT, UNFIT_DATA, way_on
from ...core.model import NODE_FAILED, RunRow, RunStatus

_ACCEPTED = "goes on: what is new is no other under a new name"


def next_steps(row: RunRow, *, possible_rename: bool = False) -> dict[str, str]:
    """Commands and what they do; `possible_rename`: a heal was refused because it might be a rename."""
    match row.status:
        case RunStatus.FAILED | RunStatus.CANCELLED if possible_rename:
            return {f"retry {row.id} --accept": _ACCEPTED, f"freeze {row.id}": "keeps the graph it has"}
        case RunStatus.PENDING | RunStatus.RUNNING:
            return {
                f"resume {row.id}": "works on it to its end",
                f"pause {row.id}": "starts nothing more of it for now",
                f"cancel {row.id}": "ends it",
            }
        case RunStatus.PAUSED:
            return {**_out_of_a_pause(row), f"cancel {row.id}": "ends it"}
        case RunStatus.CANCELLING:
            return {f"show {row.id}": "shows what has not stopped yet; then it can be retried"}
        case RunStatus.COMPLETED:
            return {
                f"reattempt {row.id} NODE --cascade": "runs a node again, and all that is below it",
                f"fork {row.id} --at NODE": "does so in a new run, and keeps this one",
            }
        case RunStatus.FAILED | RunStatus.CANCELLED:
            return {
                f"retry {row.id}": "runs what did not complete",
                f"reattempt {row.id} NODE": "runs one node again, and what waits for it",
            }


def _out_of_a_pause(row: RunRow) -> dict[str, str]:
    if row.reason == NODE_FAILED:
        return {f"retry {row.id}": "runs again what failed", f"resume {row.id}": "goes on without it"}
    go_on = f"{way_on(row)} {row.id}"
    if (row.reason or "").startswith(POSSIBLE_RENAME):
        return {f"{go_on} --accept": _ACCEPTED, f"freeze {row.id}": "keeps the graph it has"}
    if (row.reason or "").startswith(UNFIT):
        return {f"{go_on} --input NAME=VALUE": "gives what its class asks for, and goes on"}
    if (row.reason or "").startswith(UNFIT_DATA):
        return {go_on: "goes on, once the code takes what is stored"}
    return {go_on: "goes on with it"}
