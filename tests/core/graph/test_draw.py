"""A graph can be drawn, and no name can break the drawing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.graph import Graph, NodeSpec, to_dot, to_mermaid
from tests.core.graph.dags import dags

GRAPH = Graph(
    [
        NodeSpec("validate", "validate"),
        NodeSpec("check", "check", depends_on=("validate",), kind="task"),
        NodeSpec("ship", "ship", depends_on=("check",)),
    ]
)


def test_mermaid_shows_steps_tasks_and_arrows() -> None:
    assert to_mermaid(GRAPH) == (
        'flowchart TD\n    n0["validate"]\n    n1("check")\n    n2["ship"]\n    n0 --> n1\n    n1 --> n2\n'
    )


def test_dot_shows_steps_tasks_and_arrows() -> None:
    assert to_dot(GRAPH) == (
        "digraph {\n"
        '    node [shape=box, fontname="sans-serif"]\n'
        '    n0 [label="validate"]\n'
        '    n1 [label="check", style="rounded"]\n'
        '    n2 [label="ship"]\n'
        "    n0 -> n1\n"
        "    n1 -> n2\n"
        "}\n"
    )


def test_statuses_are_written_and_coloured() -> None:
    statuses = {"validate": "COMPLETED", "check": "FAILED", "ship": "UNHEARD_OF"}
    mermaid, dot = to_mermaid(GRAPH, statuses), to_dot(GRAPH, statuses)
    assert 'n0["validate<br/>COMPLETED"]' in mermaid
    assert "classDef COMPLETED fill:" in mermaid
    assert "class n1 FAILED" in mermaid
    assert "classDef UNHEARD_OF" not in mermaid
    assert re.search(r'n0 \[label="validate\\nCOMPLETED", style="filled", fillcolor="#\w+", color="#\w+"]', dot)
    assert 'n1 [label="check\\nFAILED", style="rounded,filled"' in dot
    assert 'n2 [label="ship\\nUNHEARD_OF"]' in dot


def test_names_that_mean_something_to_mermaid_are_escaped() -> None:
    assert 'n0["end#34;#93; #60;b#62; #35;"]' in to_mermaid(Graph([NodeSpec("x", 'end"] <b> #')]))


def test_names_that_mean_something_to_dot_are_escaped() -> None:
    assert r'n0 [label="say \"hi\" \\N twice"]' in to_dot(Graph([NodeSpec("x", 'say "hi" \\N\ntwice')]))


@given(st.text(min_size=1))
def test_no_name_leaves_its_label(name: str) -> None:
    graph = Graph([NodeSpec("x", name)])
    mermaid = to_mermaid(graph).removesuffix("\n").split("\n")
    assert len(mermaid) == 2
    assert re.fullmatch(r'    n0\["(?:[^"<>\[\]`]*)"\]', mermaid[1])
    dot = to_dot(graph).removesuffix("\n").split("\n")
    assert len(dot) == 4
    assert re.fullmatch(r'    n0 \[label="(?:[^"\\]|\\.)*"\]', dot[2])


@given(dags())
def test_every_edge_is_drawn_once(specs: list[NodeSpec]) -> None:
    edges = sum(len(spec.depends_on) for spec in specs)
    assert to_mermaid(Graph(specs)).count(" --> ") == edges
    assert to_dot(Graph(specs)).count(" -> ") == edges


def test_a_node_with_a_condition_is_a_hexagon() -> None:
    graph = Graph([NodeSpec("a", "a"), NodeSpec("b", "b", ("a",), when="is_large")])
    assert 'n1{{"b"}}' in to_mermaid(graph)
    assert 'n1 [label="b", shape=hexagon]' in to_dot(graph)
