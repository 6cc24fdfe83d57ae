"""Any number of parents that end at one instant release their child once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from stepwell import Builder, Context, Engine
from tests.engine.conftest import OpenEngine

barriers: dict[str, threading.Barrier] = {}
arrived: dict[str, int] = {}
released: dict[str, asyncio.Event] = {}
entries: Counter[str] = Counter()


def meet(name: str) -> int:
    barriers[name].wait(20)
    return 1


async def meet_on_the_loop(name: str, parents: int) -> int:
    event = released.setdefault(name, asyncio.Event())
    arrived[name] = arrived.get(name, 0) + 1
    if arrived[name] == parents:
        event.set()
    await event.wait()
    return 1


def join(name: str, ctx: Context) -> int:
    entries[name] += 1
    return sum(ctx.outputs.all().values())


@pytest.mark.parametrize("parents", [2, 3, 8, 16])
def test_parents_in_threads_release_the_join_once(open_sqlite: OpenEngine, parents: int) -> None:
    engine = open_sqlite(max_concurrent_nodes=16)
    for turn in range(15):
        name = f"{parents}-{turn}"
        barriers[name] = threading.Barrier(parents)
        w = Builder(name)
        w.fan_out(range(parents), job=meet, args=lambda _, name=name: {"name": name}, depends_on=None)
        w.node("join", job=join, args={"name": name})
        run = engine.run(w, wait=20)
        assert run.output("join") == parents
        assert entries[name] == 1
        assert [attempt.number for attempt in run.node("join").attempts] == [1]


@pytest.mark.parametrize("parents", [2, 50, 1_000])
def test_parents_on_the_loop_release_the_join_once(engine: Engine, parents: int) -> None:
    for turn in range(3):
        name = f"loop-{id(engine)}-{parents}-{turn}"
        w = Builder("loop")
        w.fan_out(
            range(parents),
            job=meet_on_the_loop,
            args=lambda _, name=name: {"name": name, "parents": parents},
            depends_on=None,
        )
        w.node("join", job=join, args={"name": name})
        run = engine.run(w, wait=30)
        assert run.output("join") == parents
        assert entries[name] == 1


def test_parents_of_two_engines_release_the_join_once(open_sqlite: OpenEngine) -> None:
    """Eight parents, four slots in each of two engines: they can only meet when both work on the run."""
    first, second = (open_sqlite(max_concurrent_nodes=4, queue_depth=0) for _ in range(2))
    for turn in range(10):
        name = f"two-{turn}"
        barriers[name] = threading.Barrier(8)
        w = Builder(name)
        w.fan_out(range(8), job=meet, args=lambda _, name=name: {"name": name}, depends_on=None)
        w.node("join", job=join, args={"name": name})
        run = first.start(w)
        second.adopt(run.id)
        assert run.wait(20).output("join") == 8
        assert entries[name] == 1
