"""The graphs that are measured, and their bodies, which do nothing."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

from stepwell import Builder, Context, Workflow, step, task
from stepwell.core.graph.spec import SideEffects


def nothing() -> None:
    return None


def one(item: int) -> int:
    return item


def moment(item: int) -> int:
    """Of so many that about 500 end in a second."""
    time.sleep(0.014)
    return item


def pause() -> None:
    time.sleep(0.7)


async def wait_ten_milliseconds(item: int) -> None:
    await asyncio.sleep(0.01)


KILOBYTE = {"id": 7, "text": "x" * 1_000}


def kilobyte(key: str) -> dict[str, object]:
    """What an outside service would answer."""
    return KILOBYTE


def ask_unrecorded(ctx: Context) -> None:
    kilobyte(ctx.node_name)


def name_it(ctx: Context) -> None:
    ctx.checkpoint(ctx.node_name)


def do_not_name_it(ctx: Context) -> None:
    ctx.node_name  # noqa: B018


def ask_recorded(ctx: Context) -> None:
    ctx.effect("kilobyte", kilobyte, ctx.node_name)


@cache
def client() -> httpx.Client:
    import httpx  # others of these shapes are measured by what they load

    return httpx.Client(base_url=os.environ["BENCH_SERVICE"], trust_env=False)


def fetch(key: str) -> Any:
    """A kilobyte from a service."""
    return client().get(f"/{key}").json()


def fetch_unrecorded(ctx: Context) -> None:
    fetch(ctx.node_name)


def fetch_recorded(ctx: Context) -> None:
    ctx.effect("fetch", fetch, ctx.node_name)


def chain(nodes: int, job: Callable[..., None] = nothing, side_effects: SideEffects = "opaque") -> Builder:
    builder = Builder("chain")
    for number in range(nodes):
        builder.node(f"node_{number}", job=job, side_effects=side_effects)
    return builder


def fan(width: int) -> Builder:
    builder = Builder("fan")
    builder.node("first", job=nothing)
    builder.fan_out(range(width), job=one)
    builder.node("last", job=nothing)
    return builder


def waiting(width: int) -> Builder:
    builder = Builder("waiting")
    builder.fan_out(range(width), job=wait_ten_milliseconds)
    return builder


class Diamond(Workflow):
    @step
    def top(self) -> None: ...

    @task(depends_on=top)
    def left(self) -> None: ...

    @task(depends_on=top)
    def right(self) -> None: ...

    @step(depends_on=[left, right])
    def bottom(self) -> None: ...
