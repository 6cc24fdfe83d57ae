"""Whether one node is an ancestor of another is found out without walking through the graph between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.graph.ancestry import Ancestry
from stepwell.core.graph.order import reachable
from stepwell.core.kernel.healing import arrange
from tests.core.graph.dags import dags


class Counted(Sequence[Any]):
    """Parents of nodes, and how often anybody asked for them."""

    def __init__(self, parents: Sequence[Any]) -> None:
        self.parents = parents
        self.asked = 0

    def __len__(self) -> int:
        return len(self.parents)

    def __getitem__(self, index: Any) -> Any:
        self.asked += 1
        return self.parents[index]


@given(dags(max_nodes=14))
def test_it_knows_the_ancestors_of_every_node(specs: list[NodeSpec]) -> None:
    graph = Graph(specs)
    nodes = range(len(graph))
    for below in nodes:
        found = {above for above in nodes if graph.ancestry.is_ancestor(above, below)}
        assert found == reachable([below], graph.parents)


@given(dags(), dags())
def test_it_knows_them_after_a_heal_too(before: list[NodeSpec], after: list[NodeSpec]) -> None:
    healed = arrange(Graph(before), Graph(after))
    nodes = range(len(healed.order))
    for below in nodes:
        found = {above for above in nodes if healed.ancestry.is_ancestor(above, below)}
        assert found == reachable([below], healed.parents)


def chain(length: int) -> list[NodeSpec]:
    return [NodeSpec(f"s{i}", "s", depends_on=(f"s{i - 1}",) if i else ()) for i in range(length)]


def ladder(length: int) -> list[NodeSpec]:
    """Diamonds one after the other."""
    nodes = [NodeSpec("j0", "j")]
    for i in range(1, length // 3 + 1):
        nodes += [NodeSpec(f"{side}{i}", side, depends_on=(f"j{i - 1}",)) for side in "ab"]
        nodes.append(NodeSpec(f"j{i}", "j", depends_on=(f"a{i}", f"b{i}")))
    return nodes


def chain_below_a_fan(length: int) -> list[NodeSpec]:
    fan = [NodeSpec(f"f{i}", "f") for i in range(50)]
    rest = chain(length)
    return [*fan, rest[0]._replace(depends_on=tuple(spec.id for spec in fan)), *rest[1:]]


@pytest.mark.parametrize("shape", [chain, ladder, chain_below_a_fan])
def test_the_question_costs_the_same_at_the_end_of_a_large_graph(shape: Any) -> None:
    asked = []
    for length in (300, 6_000):
        graph = Graph(shape(length))
        parents = Counted(graph.parents)
        ancestry = Ancestry(parents, graph.children, graph.ranks)
        last, step = len(graph) - 1, len(graph) // 50
        parents.asked = 0
        assert all(ancestry.is_ancestor(above, last) for above in range(0, last, step))
        assert not any(ancestry.is_ancestor(last, above) for above in range(0, last, step))
        asked.append(parents.asked / len(range(0, last, step)))
    assert asked[1] <= asked[0] + 2
