"""Jobs that tests find by address, in this process or in another."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stepwell import Context, RetryLater
from tests.engine.ledger import note
from tests.engine.waiting import eventually


def nothing() -> None:
    return None


def same(item: Any) -> Any:
    return item


def double(item: int) -> int:
    return 2 * item


async def double_later(item: int) -> int:
    await asyncio.sleep(0)
    return 2 * item


def total(ctx: Context) -> int:
    return sum(ctx.outputs.all().values())


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


async def nap_on_the_loop(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def fail(message: str = "broken") -> None:
    raise ValueError(message)


def tell(ledger: str, ctx: Context) -> str:
    note(ledger, ctx.node_name, ctx.attempt, os.getpid())
    return ctx.node_name


def hang(ledger: str) -> None:
    """Says that it began, and never ends by itself."""
    note(ledger, os.getpid())
    while True:
        time.sleep(60)


def leave(code: int) -> None:
    sys.exit(code)


def vanish(code: int) -> None:
    os._exit(code)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def later(seconds: Any) -> None:
    raise RetryLater(seconds)


def poll(ctx: Context) -> int:
    if ctx.attempt < 5:
        raise RetryLater(0)
    return ctx.attempt


def large(size: int) -> str:
    return "x" * size


def not_json() -> object:
    return {"made": [object()]}


def meet(folder: str, number: int) -> int:
    """Wait until so many processes were here."""
    (Path(folder) / str(os.getpid())).touch()
    eventually(lambda: len(os.listdir(folder)) >= number)
    return os.getpid()


def whoami() -> int:
    return os.getpid()


def describe(ctx: Context) -> dict[str, Any]:
    """What a body is told, wherever it runs."""
    return {
        "run_id": ctx.run_id,
        "workflow": ctx.workflow,
        "node_name": ctx.node_name,
        "attempt": ctx.attempt,
        "idempotency_key": ctx.idempotency_key,
        "stopping": ctx.stopping,
        "run": ctx.run._asdict(),
        "outputs": dict(ctx.outputs),
    }


def peek(ctx: Context) -> Any:
    return ctx.outputs["aside"]


def parents_in_order(ctx: Context) -> list[Any]:
    return [list(pair) for pair in ctx.outputs.parents().items()]


def all_in_order(ctx: Context) -> list[str]:
    return list(ctx.outputs.all())


def start_a_sleeper(ledger: str) -> None:
    """Has a program do the work, as bodies do that call ffmpeg or psql."""
    sleeper = subprocess.Popen(["sleep", "60"])
    note(ledger, sleeper.pid)
    sleeper.wait()


def fork_and_vanish(ledger: str) -> None:
    """Dies while a process it started keeps everything open that it had open."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    note(ledger, child)
    os._exit(7)


def use_processes() -> int:
    """Has processes of its own, as bodies do that load data with several workers."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(whoami_not, (os.getpid(),))


def whoami_not(parent: int) -> int:
    return int(os.getpid() != parent)
