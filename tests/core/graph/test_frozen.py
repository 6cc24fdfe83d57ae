"""Nothing in a graph can change."""

from __future__ import annotations

import pytest

from stepwell.core.graph import Graph, NodeSpec, Retry


def test_a_node_cannot_be_changed() -> None:
    graph = Graph([NodeSpec("a", "a", retry=Retry(3))])
    with pytest.raises(AttributeError):
        graph.nodes["a"].timeout = 3
    with pytest.raises(AttributeError):
        graph.nodes["a"].retry.max_attempts = 9


def test_a_node_cannot_be_added_or_removed() -> None:
    specs = [NodeSpec("a", "a")]
    graph = Graph(specs)
    with pytest.raises(TypeError):
        graph.nodes["b"] = NodeSpec("b", "b")
    with pytest.raises(TypeError):
        del graph.nodes["a"]
    specs.append(NodeSpec("b", "b"))
    assert list(graph.nodes) == ["a"]
    assert len(graph) == 1
