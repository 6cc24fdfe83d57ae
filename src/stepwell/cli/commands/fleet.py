"""The commands that are services of a fleet: worker, orchestrator."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Sequence
from types import FrameType

import typer

from ...errors import InputError
from ...store import Store, open_store, public
from ..connect import Connection
from .run import import_all, served_modules

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
        from ...runner.celery.checks import check_pool

        check_pool(pool)
    _check_level(log_level)
    workflows = import_all(modules or ())
    from ...runner.celery.app import make_app
    from ...runner.celery.command import run_worker
    from ...runner.celery.install import install

    app = make_app(_broker(connection, broker))
    options = connection.settings.for_workers | {"jobs": (*connection.settings.jobs, *served_modules(modules or ()))}
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
    code = run_worker(
        installed, concurrency=concurrency or os.cpu_count() or 1, pool=pool, name=name, log_level=log_level
    )
    raise typer.Exit(code)


def orchestrator(connection: Connection, *, broker: str | None, log_level: str) -> None:
    _check_level(log_level)
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    from ...runner.orchestrator import Orchestrator

    asked: list[int] = []  # not an Event: a signal that comes while its lock is held would wait for it for ever

    def end(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    store = told_store(connection, broker)
    typer.echo(f"looking after {store.url}", err=True)
    try:
        Orchestrator(store, connection.engine(store)).run(lambda: bool(asked))
    finally:
        store.close()


def told_store(connection: Connection, broker: str | None = None) -> Store:
    """The store, whose hints about work go to the broker if there is one."""
    url, broker = connection.settings.store, broker or connection.settings.broker
    if broker is None:
        return open_store(url)
    from ...runner.celery.app import make_app
    from ...runner.celery.brokered import BrokeredStore
    from ...runner.celery.sender import HintSender

    return BrokeredStore(lambda: open_store(url), HintSender(make_app(broker)), patient=True)


def _broker(connection: Connection, given: str | None) -> str:
    broker = given or connection.settings.broker
    if broker is None:
        raise InputError(
            "a Celery worker needs a broker: --broker redis://localhost:6379/1, STEPWELL_BROKER, or `broker` in stepwell.toml. "
            "Without one, `stepwell work` works on runs, too"
        )
    return broker


def _check_level(level: str) -> None:
    if level.upper() not in LEVELS:
        raise InputError(f"--log-level {level}: there are {', '.join(LEVELS)}")
