"""`stepwell workers`: who is alive, and what they hold."""

from __future__ import annotations

import typer

from ...runner.reports.workers import describe_workers, worker_record
from ..connect import Connection
from ..show.words import ago, count, duration, plain
from ..streams import json_text, say


def workers(connection: Connection, *, as_json: bool) -> None:
    with connection.store() as store:
        found, now = describe_workers(store), store.now()
    if as_json:
        say(json_text([worker_record(each, now) for each in found]))
        return
    if not found:
        typer.echo(f"no workers in {connection.settings.store}", err=True)
        return
    from ..show.screen import console, table

    made = table("worker", "where", "queues", "serves", "lease", "renewed", "holds", wrapped=("serves", "holds"))
    for each in found:
        where = each.celery or each.host or "?"
        left = each.lease_until - now
        lease = duration(left / 1_000_000) if left > 0 and each.may_live else "dead" if not each.may_live else "run out"
        serves = ", ".join(f"{name}@{digest[:8]}" for name, digest in each.serves) or "-"
        held = ", ".join(f"{hold.node} of {hold.run_id[:12]}" for hold in each.holds[:3])
        more = f" and {len(each.holds) - 3} more" if len(each.holds) > 3 else ""
        made.add_row(
            plain(each.id[:12]),
            plain(f"{where} ({each.pid})"),
            plain(", ".join(each.queues) if each.queues is not None else "all"),
            plain(serves),
            lease,
            ago(each.renewed_at, now),
            "hears of nothing, though there is work" if each.idle else plain(held + more) or "-",
        )
    console().print(made)
    typer.echo(count(len(found), "worker"), err=True)
