"""The order of a graph is the one the definitions give, whatever the machine."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given

from stepwell import Builder, Engine
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.graph.order import ordered
from tests.core.graph.dags import dags


def fan() -> Graph:
    return Graph(
        [
            NodeSpec("split", "split"),
            NodeSpec("left", "left", depends_on=("split",)),
            NodeSpec("right", "right", depends_on=("split",)),
            NodeSpec("join", "join", depends_on=("right", "left")),
        ]
    )


def test_the_order_key_of_the_first_root_is_the_published_one() -> None:
    assert fan().order_key("split") == 0x00CA4E3A99613D93


def test_an_order_key_comes_from_the_path_of_the_smallest_parent_and_the_place_among_its_children() -> None:
    path = sha256(b"split\0__start__").digest()
    assert fan().order_key("left") == int.from_bytes(sha256(path + b"\0\0\0\0").digest()[:8], "big")
    assert fan().order_key("right") == int.from_bytes(sha256(path + b"\0\0\0\1").digest()[:8], "big")
    left = sha256(b"left\0" + path).digest()
    assert fan().order_key("join") == int.from_bytes(sha256(left + b"\0\0\0\0").digest()[:8], "big")


def test_the_order_keys_of_a_fan_do_not_change_between_versions() -> None:
    graph = fan()
    assert [(node, f"{graph.order_key(node):016x}") for node in graph.order] == [
        ("split", "00ca4e3a99613d93"),
        ("right", "32d2de70f1b0d27e"),
        ("left", "6c4e73b5ac6bfae7"),
        ("join", "de382544d44f5b16"),
    ]


def test_a_node_is_after_all_its_parents() -> None:
    assert fan().order[0] == "split"
    assert fan().order[-1] == "join"
    assert fan().level("join") == 2


@given(dags())
def test_levels_hashes_and_keys_follow_their_definitions(specs: list[NodeSpec]) -> None:
    graph = Graph(specs)
    nodes = {spec.id: spec for spec in specs}

    def level(node: str) -> int:
        return 1 + max((level(parent) for parent in nodes[node].depends_on), default=-1)

    def path_hash(node: str) -> bytes:
        below = sorted(path_hash(parent) for parent in nodes[node].depends_on)
        return sha256(node.encode() + b"\0" + (b"".join(below) or b"__start__")).digest()

    def order_key(node: str) -> int:
        parents = nodes[node].depends_on
        smallest = min(parents, default=None)
        siblings = [each.id for each in specs if (smallest in each.depends_on if parents else not each.depends_on)]
        start = b"__start__" if smallest is None else path_hash(smallest)
        return int.from_bytes(sha256(start + siblings.index(node).to_bytes(4, "big")).digest()[:8], "big")

    for node in nodes:
        assert graph.level(node) == level(node)
        assert graph.path_hash(node) == path_hash(node).hex()
        assert graph.order_key(node) == order_key(node)
    assert list(graph.order) == sorted(nodes, key=lambda node: (level(node), order_key(node), node))


@given(dags())
def test_edges_are_the_same_from_both_ends(specs: list[NodeSpec]) -> None:
    graph = Graph(specs)
    down = {(parent, child) for parent in graph.nodes for child in graph.dependents(parent)}
    up = {(parent, spec.id) for spec in graph for parent in spec.depends_on}
    assert down == up
    for place, spec in enumerate(graph.in_order):
        assert graph.index[spec.id] == place
        assert {graph.order[parent] for parent in graph.parents[place]} == set(spec.depends_on)
        assert all(parent < place for parent in graph.parents[place])


def test_what_was_found_out_about_an_equal_graph_is_taken_over_but_not_its_nodes() -> None:
    first, again, other = (Graph([NodeSpec("a", "a"), NodeSpec("b", "b", ("a",), args={"n": n})]) for n in (1, 1, 2))
    assert (first.order, first.parents, first.index) == (("a", "b"), ((), (0,)), {"a": 0, "b": 1})
    again.take_over(first)
    assert again.order is first.order
    assert again.in_order[0] is not first.in_order[0]
    assert (again.order, again.parents, again.children, again.lanes) == (
        first.order, first.parents, first.children, first.lanes,
    )  # fmt: skip
    other.take_over(first)
    assert other.order is not first.order


def test_a_graph_that_is_built_again_is_put_in_order_once(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_order = []

    def counted(*given: Any) -> Any:
        put_in_order.append(given)
        return ordered(*given)

    monkeypatch.setattr("stepwell.core.graph.graph.ordered", counted)
    with Engine("memory://") as engine:
        for _ in range(3):
            builder = Builder("again")
            builder.node("only", job=print, args={})
            engine.run(builder).check()
    assert len(put_in_order) == 1
