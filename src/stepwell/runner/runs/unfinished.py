"""The warning about runs that an engine started and leaves unfinished."""

from __future__ import annotations

from ...commands import command
from ...model import GetRun, RunRow
from ...store import Store
from ...words import count
from ..scheduling.scheduler import Scheduler

LOOKED_AT = 100
NAMED = 5


def unfinished_here(store: Store, scheduler: Scheduler) -> list[RunRow]:
    """The unfinished ones among the first hundred runs that the engine started, oldest first."""
    known = [facts.run_id for facts in scheduler.facts.values() if facts.started_here][:LOOKED_AT]
    try:
        rows = store.read([GetRun(run_id) for run_id in known])
    except Exception:  # the store is away, which is reported elsewhere
        return []
    return [row for row in rows if row is not None and not row.status.terminal]


def told_of_unfinished(rows: list[RunRow], store: str) -> str:
    named = ", ".join(f"{row.id} ({row.status})" for row in rows[:NAMED])
    number = count(len(rows), "run") if len(rows) < LOOKED_AT else f"at least {LOOKED_AT} runs"
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    typed = command(f"resume {rows[0].id}", store)
    if typed is None:
        rest = "they are gone with it, because its store was in memory; run.wait() before the end waits for them"
    else:
        others = "" if len(rows) == 1 else f", `{command('work MODULE', store)}` with all of them"
        rest = f"nothing is lost: `{typed}` goes on with it{others}; run.wait() before the end waits for it"
    return f"the engine was left with {number} unfinished that it started: {named}{more}; {rest}"
