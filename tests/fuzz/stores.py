"""A store that goes away: what was acknowledged is there, and nothing is acknowledged while it is away."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from stepwell import Builder, Engine
from stepwell.errors import StepwellError, StoreReplaced


def nothing() -> int:
    return 1


def lose_store(steps: list[str]) -> None:
    """The file of SQLite, or its log, is moved away and put back."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        away: dict[Path, Path] = {}
        kept: list[str] = []
        with Engine(f"sqlite:///{file}", runner=None) as engine:
            for step in steps:
                if step == "start":
                    _start(engine, kept, lambda: not away)
                elif step == "back":
                    _put_back(away)
                elif not away:
                    gone = file if step == "move" else file.with_name(file.name + "-wal")
                    if gone.exists():
                        away[gone] = gone.with_suffix(".away")
                        gone.replace(away[gone])
            _put_back(away)
        with Engine(f"sqlite:///{file}", runner=None) as engine:
            assert {run.id for run in engine.runs()} >= set(kept)


def _put_back(away: dict[Path, Path]) -> None:
    for place, moved in away.items():
        moved.replace(place)
    away.clear()


def lose_redis(steps: list[str]) -> None:
    """Redis is killed, started again, or flushed. One for each input: a process that is killed leaves no server of others."""
    from tests.servers.redis_server import RedisServer

    server = RedisServer(appendfsync="always")
    try:
        with Engine(server.url, runner=None) as engine:
            is_up, is_flushed, kept = True, False, list[str]()
            for step in steps:
                if step == "start":
                    _start(engine, kept, lambda: is_up and not is_flushed)  # noqa: B023
                elif step == "flush" and is_up:
                    with server.client() as client:
                        client.flushall()
                    is_flushed, kept = True, []
                elif step == "kill" and is_up:
                    server.kill()
                    is_up = False
                elif step == "back" and not is_up:
                    server.start()
                    is_up = True
            if not is_up:
                server.start()
            if is_flushed:
                with suppress(StoreReplaced):
                    list(engine.runs())
                    raise AssertionError("a store that was flushed was read as if nothing had happened")
        with Engine(server.url, runner=None) as engine:
            assert {run.id for run in engine.runs()} >= set(kept)
    finally:
        server.stop()


def lose_postgres(steps: list[str]) -> None:
    """PostgreSQL is killed as by a crash, or ended in order, and started again."""
    from stepwell.stores.postgres import store
    from tests.postgres_server import PostgresServer

    server = PostgresServer()
    try:
        url, is_up, kept = server.new_url(), True, list[str]()
        with patch.object(store, "RETRY_SECONDS", 0.2), Engine(url, runner=None) as engine:
            for step in steps:
                if step == "start":
                    _start(engine, kept, lambda: is_up)  # noqa: B023
                elif step in ("kill", "end") and is_up:
                    server.stop(signal.SIGQUIT if step == "kill" else signal.SIGINT)
                    is_up = False
                elif step == "back" and not is_up:
                    server.start()
                    is_up = True
            if not is_up:
                server.start()
        with Engine(url, runner=None) as engine:
            assert {run.id for run in engine.runs()} >= set(kept)
    finally:
        server.close()


def _start(engine: Engine, kept: list[str], may: Callable[[], bool]) -> None:
    """Start a run, which succeeds only if the store is there."""
    workflow = Builder("one")
    workflow.node("a", job=nothing)
    with suppress(StepwellError):
        kept.append(engine.start(workflow).id)
        assert may(), "a run was acknowledged while the store was away"
