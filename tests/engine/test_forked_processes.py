"""A process that is forked from one with a busy engine: it is told so at once, whatever other threads held during the fork."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine, StepwellError, Workflow, step
from tests.postgres_server import PostgresServer
from tests.servers.redis_server import RedisServer

FORKS = 10
LONGEST = 20
"""Seconds after which a child that hangs is ended."""


class Quick(Workflow):
    @step
    def only(self) -> int:
        return 1


def fork(act: Callable[[], str]) -> str:
    """What a forked child said, or that it was ended because it hung."""
    heard, said = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(LONGEST)
            os.write(said, act().encode())
        finally:
            os._exit(0)
    os.close(said)
    with os.fdopen(heard, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 else f"it ended with {status}"


def told(use: Callable[[], object]) -> str:
    try:
        return f"it gave {use()!r}"
    except StepwellError as error:
        return str(error)


def call_on_a_loop(make: Callable[[], Any]) -> object:
    async def call() -> object:
        return await make()

    return asyncio.run(call())


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody has used."""
    if request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        return postgres.new_url()
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        return f"{server.url}?namespace=forked-{tmp_path.name}"
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_of_a_busy_engine_is_told_at_once(url: str) -> None:
    ended = threading.Event()

    async def fork_from_a_loop() -> None:
        async with Engine("memory://") as aio:
            fork_all(aio)

    def fork_all(aio: Any) -> None:
        uses: list[Callable[[], object]] = [
            lambda: engine.start(Quick()),
            lambda: engine.start_many([Quick()]),
            lambda: engine.run(Quick()),
            engine.runs,
            lambda: engine.adopt(run.id),
            lambda: engine.work([Quick], wait=0),
            lambda: engine.metrics,
            lambda: engine.on("run", print),
            lambda: run.status,
            lambda: run.wait(LONGEST),
            run.cancel,
            lambda: call_on_a_loop(lambda: aio.start(Quick())),
        ]
        for _ in range(FORKS):
            answers = fork(lambda: "\n".join(map(told, uses)))
            assert answers.count("which was forked from it; open a new one here") == len(uses), answers
            assert fork(lambda: repr(engine.close())) == "None"

    with Engine(url) as engine:
        run = engine.run(Quick())

        def keep_busy() -> None:
            while not ended.is_set():
                engine.start_many([Quick() for _ in range(20)])
                engine.runs(limit=1)

        busy = [threading.Thread(target=keep_busy) for _ in range(2)]
        for thread in busy:
            thread.start()
        try:
            asyncio.run(fork_from_a_loop())
        finally:
            ended.set()
            for thread in busy:
                thread.join()
        engine.parts.work.warns_unfinished = False
        assert engine.run(Quick()).status == "COMPLETED", "the parent goes on"
