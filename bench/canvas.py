"""What the fleet is measured against: the same work as Celery's own canvas, in a worker of the same size on the same broker."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery, chain, chord, group

BROKER = os.environ.get("BENCH_BROKER", "redis://127.0.0.1:6379/1")
app = Celery("canvas", broker=BROKER, backend=BROKER)
app.conf.update(
    task_serializer="json", accept_content=["json"], worker_prefetch_multiplier=4, task_default_queue="canvas"
)


@app.task  # type: ignore[untyped-decorator]
def nothing(*_: object) -> int:
    return 1


@app.task  # type: ignore[untyped-decorator]
def stamp(*_: object) -> float:
    return time.time()


@app.task  # type: ignore[untyped-decorator]
def since(began: float) -> float:
    return time.time() - began


@app.task  # type: ignore[untyped-decorator]
def pass_on(value: float) -> float:
    return value


def fan(width: int) -> float:
    """Seconds from the call to the end of a chord. A task before it would only make it slower: it would carry them all."""
    began = time.perf_counter()
    chord([nothing.si() for _ in range(width)])(nothing.si()).get(timeout=600)
    return time.perf_counter() - began


def chained(length: int) -> float:
    """Seconds from the first body to the last."""
    middle: list[Any] = [pass_on.s() for _ in range(length - 2)]
    return float(chain(stamp.si(), *middle, since.s()).apply_async().get(timeout=600))


def diamonds(count: int) -> float:
    began = time.perf_counter()
    results = [
        chain(nothing.si(), chord(group(nothing.si(), nothing.si()), nothing.si())).apply_async() for _ in range(count)
    ]
    for result in results:
        result.get(timeout=600)
    return time.perf_counter() - began
