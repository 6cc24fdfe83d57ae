"""Replays and folded states need the code of a run: a worker that has it makes them, in a run of Stepwell's own workflow."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Path, Query, Response

from ...answers.runs import RunRecord
from ...engine.internal_runs import delete_old, internal_definition, queue_with_code
from ...engine.starting import create_op
from ..problems import HttpProblem
from ..routes import Routes
from ..service import Given, ServerProcess
from .runs import IdempotencyKey, listed

routes = Routes("replay")

MAX_CASSETTE = 64 * 1024 * 1024
"""Bytes of a cassette that is sent."""
_NO_CODE: dict[int | str, dict[str, Any]] = {
    409: {
        "description": "No live worker has the code. `missing` says what is missing, `command` what to type where it is."
    }
}


def _result_is(schema: str) -> dict[str, Any]:
    """Says in the OpenAPI document what the result of the started run is."""
    return {"x-result": {"$ref": f"#/components/schemas/{schema}"}}


@routes.post(
    "/runs/{run_id}/replay", "run", status_code=202, responses=_NO_CODE, openapi_extra=_result_is("ReplayOutcome")
)
def replay_run(run_id: str, service: Given, response: Response, idempotency_key: IdempotencyKey = None) -> RunRecord:
    """Have a worker run the bodies of a run again that may be repeated, with its code and without the outside world. Nothing is
    stored in that run. The answer is another run, whose result is what the replay found, or the first difference."""
    return _start(service, response, run_id, "replay", f"replay {run_id}", idempotency_key)


@routes.post(
    "/runs/{run_id}/checkpoints/{at}/state",
    "run",
    status_code=202,
    responses=_NO_CODE,
    openapi_extra=_result_is("CheckpointRecord"),
)
def fold_state(
    run_id: str,
    at: Annotated[str, Path(max_length=500)],
    service: Given,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> RunRecord:
    """Have a worker fold the state of a run at a checkpoint, for a workflow that declares one. The answer is another run, whose
    result is what `GET /runs/{run_id}/checkpoints/{at}` gives where the code is."""
    from ...engine.reports.checkpoints import check_number

    run = service.run(run_id)
    step = service.step_of(run, at)
    if isinstance(step, int):
        check_number(run.row, step)
    return _start(service, response, run_id, "state", f"checkpoints {run_id} {at}", idempotency_key, at=step)


def _start(
    service: ServerProcess, response: Response, run_id: str, kind: str, words: str, key: str | None, **arguments: Any
) -> RunRecord:
    row = service.row(run_id)
    queue = queue_with_code(service.store, row, service.graph(row.digest, row.id))
    if queue is None:
        missing, command = row.target or row.workflow, f"stepwell {words}"
        raise HttpProblem(
            409,
            f"no worker is alive that has the code of run {row.id}: {missing} is missing. Start one that has it, "
            f"`stepwell work MODULE`, or type `{command}` where the code is",
            run_id=row.id,
            missing=missing,
            command=command,
        )
    delete_old(service.store)
    definition = internal_definition(row, kind, queue, **arguments)
    create = create_op(definition, idempotency_key=key)
    started = service.row(service.engine.parts.starting.start(definition, create, fresh=key is None))
    response.headers["Location"] = f"/api/v1/runs/{started.id}"
    return listed(service, started)


@routes.get(
    "/runs/{run_id}/cassette",
    "read",
    threads="view",
    response_class=Response,
    responses={
        200: {
            "description": "The cassette.",
            "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
        },
        413: {"description": "It is too large to be sent."},
    },
)
def get_cassette(
    run_id: str,
    service: Given,
    missing_code_ok: Annotated[
        bool,
        Query(description="Also if this server does not have the code: what only it marks as secret is not masked."),
    ] = False,
) -> Response:
    """What is recorded of a run, as a file that `stepwell replay`, or a test, replays anywhere. Secrets are masked, for which
    the server must have the code of the run, unless the request says `missing_code_ok`."""
    from ...engine.reports.cassettes import exported

    row = service.row(run_id)
    engine = service.worker or service.engine
    text = exported(service.store, engine.parts.code, row.id, missing_code_ok=missing_code_ok).encode()
    if len(text) > MAX_CASSETTE:
        raise HttpProblem(
            413,
            f"the cassette of run {row.id} has {len(text):,} bytes, more than the {MAX_CASSETTE:,} that are sent: "
            f"`stepwell export {row.id} FILE` writes it where the store is",
            run_id=row.id,
        )
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", row.id)[:100]
    headers = {"Content-Disposition": f'attachment; filename="{name}.cassette.json"'}
    return Response(text, headers=headers, media_type="application/json")
