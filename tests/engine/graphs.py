"""Random graphs whose bodies compute something that depends on everything above them, and what it must be."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from hashlib import sha256
from typing import Any, NamedTuple

from stepwell import Builder, Context


class Drawn(NamedTuple):
    builder: Builder
    expected: dict[str, str]
    """The output of every node, computed without an engine."""


class World:
    """What really happened, whatever the engine believes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended: set[tuple[str, str]] = set()
        self.entries: Counter[tuple[str, str]] = Counter()


worlds: dict[str, World] = {}


def random_graph(seed: int, world: str = "", *, delays: bool = True, most: int = 30) -> Drawn:
    rng = random.Random(seed)
    w = Builder(f"random-{seed}")
    expected: dict[str, str] = {}
    ids: list[str] = []
    for number in range(rng.randint(1, most)):
        parents = rng.sample(ids, min(len(ids), rng.choice([0, 1, 1, 2, 3, 8])))
        args = {
            "world": world,
            "number": number,
            "parents": parents,
            "delay": rng.choice([0, 0, 0.001, 0.004]) if delays else 0,
        }
        job = rng.choice([visit, visit, visit_on_the_loop])
        node = w.node(f"node {number}", job=job, args=args, depends_on=parents or None)
        ids.append(node)
        expected[node] = mixed(number, [expected[parent] for parent in parents])
    return Drawn(w, expected)


def mixed(number: int, above: list[Any]) -> str:
    return sha256(f"{number}:{','.join(map(str, sorted(above)))}".encode()).hexdigest()[:16]


def visit(world: str, number: int, parents: list[str], delay: float, ctx: Context) -> str:
    result = _enter(world, number, parents, ctx)
    if delay:
        time.sleep(delay)
    return _leave(world, ctx, result)


async def visit_on_the_loop(world: str, number: int, parents: list[str], delay: float, ctx: Context) -> str:
    result = _enter(world, number, parents, ctx)
    await asyncio.sleep(delay)
    return _leave(world, ctx, result)


def _enter(world: str, number: int, parents: list[str], ctx: Context) -> str:
    seen = worlds.setdefault(world, World())
    with seen.lock:
        seen.entries[ctx.run_id, ctx.node_id] += 1
        open_parents = [parent for parent in parents if (ctx.run_id, parent) not in seen.ended]
    assert not open_parents, f"{ctx.node_name} began before {open_parents} ended"
    # Read from the store: a parent whose completion is not durable yet has no output there.
    return mixed(number, [ctx.outputs[parent] for parent in parents])


def _leave(world: str, ctx: Context, result: str) -> str:
    with worlds[world].lock:
        worlds[world].ended.add((ctx.run_id, ctx.node_id))
    return result
