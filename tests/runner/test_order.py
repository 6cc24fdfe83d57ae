"""What is ready begins in the order (level, order key, id), and whatever is listed is listed in it."""

from __future__ import annotations

import random

import pytest

from stepwell import Builder, Context
from stepwell.graph import Graph
from tests.runner.conftest import OpenEngine

begun: list[str] = []


def begin(ctx: Context) -> None:
    begun.append(ctx.node_id)


def in_order(graph: Graph) -> list[str]:
    return sorted(graph.nodes, key=lambda node: (graph.level(node), graph.order_key(node), node))


@pytest.mark.parametrize("depends_on_one", [False, True], ids=["entry points", "one fan"])
def test_ten_thousand_ready_nodes_begin_in_order(open_engine: OpenEngine, depends_on_one: bool) -> None:
    names = [f"item {number}" for number in range(10_000)]
    random.Random(7).shuffle(names)
    w = Builder("many")
    if depends_on_one:
        w.node("first", job=begin)
    w.fan_out(
        names, job=begin, name=lambda name: name, args=lambda name: {}, depends_on="first" if depends_on_one else None
    )
    begun.clear()
    run = open_engine(max_concurrent_nodes=1).run(w, timeout=600)
    assert begun == in_order(run.graph)
    assert begun != list(run.graph.nodes)


def test_levels_come_first_also_when_later_ones_are_ready(open_engine: OpenEngine) -> None:
    """A node that becomes ready by the way stands behind all that are above it."""
    w = Builder("levels")
    roots = w.fan_out(range(50), job=begin, args=lambda number: {}, depends_on=None)
    for root in roots:
        w.node(f"below {root}", job=begin, depends_on=root)
    begun.clear()
    run = open_engine(max_concurrent_nodes=1, queue_depth=1).run(w, timeout=120)
    above, below = begun[:50], begun[50:]
    assert above == list(run.graph.order[:50])
    assert sorted(below) == sorted(run.graph.order[50:])
