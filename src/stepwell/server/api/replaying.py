"""Replaying runs with the code that this process has."""

from __future__ import annotations

from ...answers.reports import MismatchRecord, ReplayOutcome
from ...engine import Run
from ...errors import DefinitionError, ReplayMismatch
from ..problems import HttpProblem
from ..routes import Routes
from ..service import Given

routes = Routes("replay")


@routes.post("/runs/{run_id}/replay", "run", threads="replay")
def replay_run(run_id: str, service: Given) -> ReplayOutcome:
    """Run the bodies of a run again that may be repeated, with the code of this server and without the outside world. Nothing
    is stored, and the run stays as it is. 409: this server does not have the code."""
    return _replay((service.worker or service.engine).get(service.row(run_id).id))


def _replay(run: Run) -> ReplayOutcome:
    try:
        return {"run": run.id, "replay": run.replay().to_dict(), "mismatch": None}
    except ReplayMismatch as error:
        return {"run": run.id, "replay": None, "mismatch": _mismatch(error)}
    except DefinitionError as error:
        advice = f"where its code is, `stepwell replay {run.id}` replays it"
        raise HttpProblem(
            409, f"this server does not have the code of the run: {error}; {advice}", run_id=run.id
        ) from None


def _mismatch(error: ReplayMismatch) -> MismatchRecord:
    return {
        "what": error.what,
        "node": error.node,
        "attempt": error.attempt,
        "effect": error.effect,
        "diff": list(error.diff),
    }
