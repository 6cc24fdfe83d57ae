"""What is ready begins in the order (level, order key, id), and whatever is listed is listed in it."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from stepwell import Builder, Context
from stepwell.core.graph import Graph
from stepwell.stores import open_store
from tests.conformance import ops
from tests.conformance.ops import CHUNK
from tests.engine.conftest import OpenEngine

begun: list[str] = []


def begin(ctx: Context) -> None:
    begun.append(ctx.node_id)


def in_order(graph: Graph) -> list[str]:
    return sorted(graph.nodes, key=lambda node: (graph.level(node), graph.order_key(node), node))


def many(count: int, *, below_one: bool) -> Builder:
    names = [f"item {number}" for number in range(count)]
    random.Random(7).shuffle(names)
    w = Builder("many")
    if below_one:
        w.node("first", job=begin)
    parents = "first" if below_one else None
    w.fan_out(names, job=begin, name=lambda name: name, args=lambda name: {}, depends_on=parents)
    return w


@pytest.mark.parametrize("below_one", [False, True], ids=["entry points", "one fan"])
def test_ten_thousand_ready_nodes_begin_in_order(open_engine: OpenEngine, below_one: bool, url: str) -> None:
    # A claim looks at every node of a run in memory, which is the specification and not fast.
    count = 2_000 if url == "memory://" else 10_000
    begun.clear()
    run = open_engine(max_concurrent_nodes=1).run(many(count, below_one=below_one), wait=600)
    assert begun == in_order(run.graph)
    assert begun != list(run.graph.nodes)


def test_ten_thousand_nodes_leave_the_frontier_in_order(url: str) -> None:
    """Whatever the portions they are claimed in."""
    graph = many(10_000, below_one=False).graph()
    with closing(open_store(url)) as store:
        ops.start(store, graph)
        ops.enlist(store)
        left: list[str] = []
        for portion in (1, 7, 1_500, 2, *[CHUNK] * 4, 490):
            left += [graph.order[grant.index] for grant in ops.claim(store, limit=portion)]
    assert left == in_order(graph)


def test_levels_come_first_also_when_later_ones_are_ready(open_engine: OpenEngine) -> None:
    """A node that becomes ready by the way stands behind all that are above it."""
    w = Builder("levels")
    roots = w.fan_out(range(50), job=begin, args=lambda number: {}, depends_on=None)
    for root in roots:
        w.node(f"below {root}", job=begin, depends_on=root)
    begun.clear()
    run = open_engine(max_concurrent_nodes=1, queue_depth=1).run(w, wait=120)
    above, below = begun[:50], begun[50:]
    assert above == list(run.graph.order[:50])
    assert sorted(below) == sorted(run.graph.order[50:])
