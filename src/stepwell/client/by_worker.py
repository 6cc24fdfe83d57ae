"""What needs the code of a run, asked of a server: one of its workers replays the run; the server writes the cassette."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..base.ids import RunId
from ..engine import Run
from ..engine.parts import Parts
from ..engine.reports.cassettes import write_cassette
from ..engine.reports.replay import Replayed
from ..errors import ReplayMismatch
from .transport import Transport, path_of


def replay_by_worker(parts: Parts, transport: Transport, run_id: RunId) -> Replayed:
    """The replay of a run by a worker of the server; the first difference raises ReplayMismatch."""
    # A key makes it safe to ask again when the answer is lost.
    key = {"Idempotency-Key": f"replay-{os.urandom(10).hex()}"}
    path = path_of("runs", run_id, "replay")
    started = transport.ask("POST", path, headers=key, repeatable=True)
    outcome: dict[str, Any] = Run(parts, RunId(started["id"])).wait().check().result
    if outcome["mismatch"] is not None:
        raise ReplayMismatch(**outcome["mismatch"], run_id=run_id)
    fields = outcome["replay"]
    return Replayed(**fields | {"executed": tuple(fields["executed"])})


def export_by_server(transport: Transport, run_id: RunId, file: str | Path, *, missing_code_ok: bool) -> Path:
    """Write the cassette that the server makes."""
    text = transport.ask(
        "GET", path_of("runs", run_id, "cassette"), params={"missing_code_ok": missing_code_ok}, as_text=True
    )
    return write_cassette(file, text)
