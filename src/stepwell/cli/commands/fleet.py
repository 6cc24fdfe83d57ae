"""The commands for fleets: worker, orchestrator, workers."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from types import FrameType

import typer

from ...core.store import Store
from ...errors import InputError
from ...stores import open_store, public
from ..connect import Connection
from ..show.words import ago, count, duration, plain
from ..streams import json_text, say
from .run import NamedPipelines, import_all

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
POOLS = ("prefork", "threads", "solo")


def worker(
    connection: Connection,
    modules: Sequence[str] | None,
    *,
    queues: str,
    concurrency: int | None,
    pool: str,
    broker: str | None,
    name: str | None,
    when_idle: str,
    idle_seconds: float,
    log_level: str,
) -> None:
    if pool not in POOLS:
        from ...engine.broker_app import check_pool

        check_pool(pool)
    _check_level(log_level)
    workflows = import_all(modules or ())
    from ...celery.install import install, run_worker
    from ...engine.broker_app import make_app

    broker = broker or connection.settings.broker
    if broker is None:
        message = "--broker redis://localhost:6379/1, STEPWELL_BROKER, or `broker` in stepwell.toml"
        raise InputError(f"a Celery worker needs a broker: {message}. `stepwell work` needs none")
    app = make_app(broker)
    options = connection.settings.for_workers | {
        "jobs": (*connection.settings.jobs, *(modules or ())),
        "pipelines": NamedPipelines(connection),
    }
    installed = install(
        app,
        connection.settings.store,
        workflows=workflows,
        handlers=connection.handlers(),
        queues=[queue.strip() for queue in queues.split(",")],
        when_idle=when_idle,
        idle_seconds=idle_seconds,
        **options,
    )
    typer.echo(f"serving {public(connection.settings.store)}, queues {queues}, in a Celery worker ({pool})", err=True)
    sys.argv = sys.orig_argv[
        1:
    ]  # with which Celery starts it anew on SIGHUP, and which has the -m of `python -m stepwell`
    code = run_worker(
        installed, concurrency=concurrency or os.cpu_count() or 1, pool=pool, name=name, log_level=log_level
    )
    raise typer.Exit(code)


def orchestrator(connection: Connection, *, broker: str | None, log_level: str) -> None:
    _check_level(log_level)
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    from ...engine.orchestrator import Orchestrator

    asked: list[int] = []  # not an Event: a signal that comes while its lock is held would wait for it for ever

    def end(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with closing(hinting_store(connection, broker)) as store:
        typer.echo(f"looking after {store.url}", err=True)
        Orchestrator(store, connection.own_engine(store)).run(lambda: bool(asked))


def hinting_store(connection: Connection, broker: str | None = None) -> Store:
    """The store, whose hints about work go to the broker if there is one."""
    url, broker = connection.settings.store, broker or connection.settings.broker
    if broker is None:
        return open_store(url)
    from ...engine.broker_app import make_app
    from ...engine.hint_sender import BrokeredStore, HintSender

    return BrokeredStore(lambda: open_store(url), HintSender(make_app(broker)), patient=True)


def _check_level(level: str) -> None:
    if level.upper() not in LEVELS:
        raise InputError(f"--log-level {level}: there are {', '.join(LEVELS)}")


def workers(connection: Connection, *, as_json: bool) -> None:
    from ...engine.code.graphs import load_graph
    from ...engine.reports.unserved import unserved_report
    from ...engine.reports.workers import describe_workers, worker_record

    with connection.store() as store:
        views, now = describe_workers(store), store.now()
        unserved = unserved_report(store, partial(load_graph, store))
    if as_json:
        say(json_text([worker_record(each, now) for each in views]))
        return
    if not views:
        typer.echo(f"no workers in {connection.settings.store}", err=True)
    for item in unserved["items"]:
        what = item["workflow"] if item["queue"] is None else f"queue {item['queue']} of {item['workflow']}"
        typer.echo(f"{plain(what)} waits for a worker: {plain(item['because'])}", err=True)
    if not views:
        return
    from ..show.screen import console, table

    made = table("worker", "where", "queues", "serves", "lease", "renewed", "holds", wrapped=("serves", "holds"))
    for each in views:
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
    typer.echo(count(len(views), "worker"), err=True)
