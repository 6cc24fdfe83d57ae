"""Which runs a query is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ....base.clock import SECOND
from ...model import CountedRuns, CountRuns, ListRuns, RunOrder, RunRow

SEARCHED = 50_000
"""So many runs are searched for a text, or in another order than that of creation, before a page is given, full or not."""
SECONDS_OF = {"hour": 3_600, "day": 86_400}


def folded(text: str) -> str:
    """With small ASCII letters: a search ignores their case, and no other, as all stores do.

    >>> folded("Käse-ÄB")
    'käse-Äb'
    """
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def place_of(row: RunRow, order: RunOrder) -> int | None:
    """What a run is ordered by; None if it is not in this order."""
    if order == "created":
        return 0  # its number decides
    if row.ended_at is None:
        return None
    began = row.created_at if row.started_at is None else row.started_at
    return row.ended_at if order == "ended" else max(0, row.ended_at - began)


def chooses(query: ListRuns) -> bool:
    """Whether a query leaves out some of the runs that its order has."""
    return query._replace(limit=0, before=None) != ListRuns(0, order=query.order)


def run_matches(row: RunRow, query: ListRuns) -> bool:
    """Whether a run is asked for, wherever the page begins."""
    return (
        (query.workflow is None or row.workflow == query.workflow)
        and (not query.statuses or row.status in query.statuses)
        and (query.digest is None or row.digest == query.digest)
        and (query.origin is None or row.origin == query.origin)
        and (query.parent is None or row.parent == query.parent)
        and not (query.roots and row.parent is not None)
        and set(query.tags) <= set(row.tags)
        and (query.since is None or row.created_at >= query.since)
        and (query.until is None or row.created_at < query.until)
        and (query.ended_before is None or (row.ended_at is not None and row.ended_at < query.ended_before))
        and (query.ended_since is None or (row.ended_at is not None and row.ended_at >= query.ended_since))
        and (query.prefix is None or row.id.startswith(query.prefix))
        and (query.error is None or row.error == query.error)
        and place_of(row, query.order) is not None
        and (query.text is None or _has_text(row, folded(query.text)))
    )


def _has_text(row: RunRow, text: str) -> bool:
    return any(text in folded(each) for each in (row.id, row.workflow, row.error or "", *map("=".join, row.tags)))


def counted(rows: Iterable[RunRow], query: CountRuns) -> CountedRuns:
    """The counts of all the runs that a query is about."""
    found = [row for row in rows if run_matches(row, query.runs)]
    counts = Counter(key_of(row, query.by) for row in found[: query.limit + 1])
    return CountedRuns(tuple(sorted(counts.items())), len(found) <= query.limit)


def key_of(row: RunRow, by: str) -> str:
    if by in SECONDS_OF:
        unit = SECONDS_OF[by] * SECOND
        return str(row.created_at // unit * unit)
    return str(row.status) if by == "status" else row.workflow
