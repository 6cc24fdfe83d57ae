"""The recorded effects of a run, page by page: a page costs what is on it, however much was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.codec import decode
from ...base.ids import AttemptId, RunId
from ...core.model import LineRow, ListLines
from ...core.model.lines import EFFECT, PAYLOAD
from ...core.store import Store
from ...history.effects.record import Effect, effects_of

Place = tuple[AttemptId, int]
"""Attempt and index of a line."""


def page_of_effects(
    store: Store,
    run_id: RunId,
    order: Sequence[str],
    *,
    index: int | None = None,
    number: int | None = None,
    after: Place | None = None,
    limit: int,
) -> tuple[list[Effect], Place | None]:
    """A page of effects, by attempt in the order of claims and then by index, and where the next page begins.

    Pages follow the order of storing: for each attempt durable effects first, then the others as they ended.
    """
    (rows,) = store.read([ListLines(run_id, index, limit, after, number, EFFECT)])
    payloads = _payloads(store, run_id, rows)
    return effects_of([*payloads, *rows], tuple(order)), rows.cursor


def _payloads(store: Store, run_id: RunId, rows: Sequence[LineRow]) -> list[LineRow]:
    """The large requests and responses of these effects: at most two lines before each."""
    large: dict[AttemptId, list[LineRow]] = {}
    for row in rows:
        if _lacks(row):
            large.setdefault(row.attempt, []).append(row)
    asked = [
        ListLines(
            run_id, first.node, 2 * (1 + len(others)), (first.attempt, max(-1, first.index - 3)), first.number, PAYLOAD
        )
        for first, *others in large.values()
    ]
    return [line for page in store.read(asked) for line in page] if asked else []


def _lacks(row: LineRow) -> bool:
    record = decode(row.data)
    answered = "response" in record or "raised" in record or record.get("open", False)
    return "request" not in record or not answered
