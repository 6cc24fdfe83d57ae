"""A run of another store, or a part of it, as the function that restores it takes it."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any

from ...core.model import JournalRow, Restore
from ...core.store.rules.codes import ATTEMPT_CODE, GATE_CODE, KIND_CODE, NODE_CODE, RUN_CODE
from ...core.store.rules.verdicts import refuse_restore
from .payloads import storable

_PAST = attrgetter("attempt", "failures", "losses", "due_at", "reason", "generation", "postponed", "wakes")


def restored_rows(op: Restore) -> dict[str, Any]:
    """Everything of it but ids of attempts and payloads."""
    row = op.run
    refused = refuse_restore(op, graph_complete=True, restoring=None)
    given: dict[str, Any] = {
        name: getattr(row, name)
        for name in (
            *("workflow", "target", "digest", "on_failure", "timeout", "stopping", "seq", "created_at", "started_at"),
            *("ended_at", "deadline_at", "reason", "heals", "tolerated", "origin", "error", "parent"),
            *("parent_node", "depth"),
        )
    }
    return given | {
        "run": storable(row.id),
        "status": RUN_CODE[row.status],
        "gate": GATE_CODE[row.gate],
        "seed": str(row.seed),
        "urgency": -row.priority,
        "key": row.idempotency_key,
        "tags": json.dumps(row.tags) if row.tags else None,
        "nodes": [
            (each.index, NODE_CODE[each.status], each.waiting, each.skipped, *each.lane, *_PAST(each))
            for each in op.nodes
        ],
        "attempts": [
            (each.index, each.number, ATTEMPT_CODE[each.status], each.worker, each.started_at, each.ended_at)
            for each in op.attempts
        ],
        "journal": [_entry(entry) for entry in op.journal],
        "lines": [(line.index, line.at, line.kind) for line in op.lines],
        "former": op.former_graphs,
        "finish": op.finish,
        **({} if refused is None else {"refusal": {"refused": refused.reason, "detail": refused.detail}}),
    }


def _entry(entry: JournalRow) -> tuple[object, ...]:
    """As the table has it: a status as a number, anything else as it was."""
    codes: dict[str, int] = {
        str(status): code for status, code in (RUN_CODE if entry.kind == "run" else NODE_CODE).items()
    }
    code = None if entry.kind in ("gate", "healed") or entry.status is None else codes.get(entry.status)
    detail = entry.status if code is None else None
    return entry.seq, entry.at, KIND_CODE[entry.kind], entry.index, entry.attempt, code, detail
