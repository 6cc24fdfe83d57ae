"""What can be done with a run in each status."""

from __future__ import annotations

from ...core.model import RunRow, RunStatus
from ...history.why.pauses import pause_of


def next_steps(row: RunRow, *, possible_rename: bool = False) -> dict[str, str]:
    """Commands and what they do; `possible_rename`: a heal was refused because it might be a rename."""
    match row.status:
        case RunStatus.FAILED | RunStatus.CANCELLED if possible_rename:
            return {
                f"retry {row.id} --accept": "goes on with the new nodes",
                f"freeze {row.id}": "keeps the graph it has",
            }
        case RunStatus.PENDING | RunStatus.RUNNING:
            return {
                f"resume {row.id}": "works on it to its end",
                f"pause {row.id}": "starts nothing more of it for now",
                f"cancel {row.id}": "ends it",
            }
        case RunStatus.PAUSED:
            return {step.command: step.effect for step in pause_of(row).steps} | {f"cancel {row.id}": "ends it"}
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
