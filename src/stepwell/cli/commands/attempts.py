"""`stepwell attempts`: every attempt of a run, when it waited and ran, by whom it was run, and what it raised."""

from __future__ import annotations

from ...base.clock import SECOND
from ...engine.code.graphs import load_outline
from ...engine.reports.grouping import Grouping
from ...engine.runs.attempt_table import attempt_table
from ...engine.runs.stored import StoredRun
from ..connect import Connection
from ..find import find_run
from ..show.words import duration, plain
from ..streams import json_text, say

_ALL = 2**40


def attempts(connection: Connection, text: str, *, as_json: bool) -> None:
    with connection.store() as store:
        run = StoredRun(store, find_run(store, text))
        table, _ = attempt_table(run, lambda digest, run: Grouping(load_outline(store, digest, run)), limit=_ALL)
    if as_json:
        return say(json_text(table))
    from ..show.screen import coloured, console
    from ..show.screen import table as made_table

    shown = made_table("node", "attempt", "status", "waited", "took", "error", "worker", wrapped=("node", "error"))
    columns = (table["node"], table["number"], table["status"], table["waiting_us"], table["started_us"])
    for node, number, status, waiting, started, ended, error, worker in zip(
        *columns, table["ended_us"], table["error"], table["worker"], strict=True
    ):
        took = None if ended is None else (ended - started) / SECOND
        shown.add_row(
            plain(table["nodes"]["names"][node]),
            str(number),
            coloured(status),
            duration((started - waiting) / SECOND),
            duration(took) or "",
            plain(error or ""),
            plain(table["workers"][worker]),
        )
    console().print(shown)
