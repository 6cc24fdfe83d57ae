"""The test vectors of docs/determinism.md are right, by the graph and by the definition written anew."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from stepwell.core.graph import Graph, NodeSpec

PAGE = (Path(__file__).parents[3] / "docs" / "determinism.md").read_text(encoding="utf-8")


class Row(NamedTuple):
    node: str
    level: int
    order_key: int
    path_hash: str


class Vector(NamedTuple):
    title: str
    parents: dict[str, list[str]]
    """By node, in the order of declaration."""
    rows: list[Row]


def vectors() -> list[Vector]:
    found = []
    for title, written, table in re.findall(r"### (.+)\n\n`(.+)`\n\n((?:\|.+\n)+)", PAGE):
        parents = {
            node: listed.split(",") if listed else [] for node, listed in re.findall(r"(\w+)(?:\(([^)]*)\))?", written)
        }
        rows = [
            Row(node, int(level), int(key), path)
            for node, level, key, path in re.findall(r"\| `(\w+)` \| (\d+) \| `(\d+)` \| `(\w+)` \|", table)
        ]
        found.append(Vector(title, parents, rows))
    return found


def naive(parents: dict[str, list[str]]) -> list[Row]:
    """The definition of the page, word by word."""

    def level(node: str) -> int:
        return max((level(parent) + 1 for parent in parents[node]), default=0)

    def path_hash(node: str) -> bytes:
        above = b"".join(sorted(path_hash(parent) for parent in parents[node])) if parents[node] else b"__start__"
        return sha256(node.encode("utf-8") + b"\0" + above).digest()

    def order_key(node: str) -> int:
        smallest = min(parents[node], default=None)
        siblings = [each for each, own in parents.items() if (smallest in own if own else smallest is None)]
        above = b"__start__" if smallest is None else path_hash(smallest)
        place = siblings.index(node).to_bytes(4, "big")
        return int.from_bytes(sha256(above + place).digest()[:8], "big")

    rows = [Row(node, level(node), order_key(node), path_hash(node).hex()) for node in parents]
    return sorted(rows, key=lambda row: (row.level, row.order_key, row.node))


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.title)
def test_a_vector_is_what_the_graph_computes(vector: Vector) -> None:
    graph = Graph([NodeSpec(node, node, depends_on=tuple(own)) for node, own in vector.parents.items()])
    computed = [Row(node, graph.level(node), graph.order_key(node), graph.path_hash(node)) for node in graph.order]
    assert computed == vector.rows


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.title)
def test_a_vector_is_what_the_definition_says(vector: Vector) -> None:
    assert naive(vector.parents) == vector.rows


def test_the_page_is_read_whole() -> None:
    assert len(vectors()) == PAGE.count("\n### ") == 6
    assert sum(len(vector.rows) for vector in vectors()) == PAGE.count("\n| `") - PAGE.count("\n| `run.nodes()`")
    assert all(len(vector.rows) == len(vector.parents) for vector in vectors())


def test_the_numbers_do_not_change_between_versions() -> None:
    """Fixed here too: the page could be written anew together with a mistake."""
    known = {(vector.title, row.node): (row.level, row.order_key) for vector in vectors() for row in vector.rows}
    assert known["One node", "a"] == (0, 0x00CA4E3A99613D93)
    assert known["A fan and a join", "right"] == (1, 0x32D2DE70F1B0D27E)
    assert known["A fan and a join", "left"] == (1, 0x6C4E73B5AC6BFAE7)
    assert known["A fan and a join", "join"] == (2, 0xDE382544D44F5B16)
