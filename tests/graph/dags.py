"""Random graphs for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from stepwell.graph import NodeSpec

NAMES = st.text("abcdefgh_é0", min_size=1, max_size=4)


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 12) -> list[NodeSpec]:
    """The nodes of an acyclic graph, declared in any order."""
    ids = draw(st.lists(NAMES, min_size=1, max_size=max_nodes, unique=True))
    specs = []
    for position, node in enumerate(ids):
        parents = draw(st.lists(st.sampled_from(ids[:position]), unique=True)) if position else []
        specs.append(NodeSpec(node, node, depends_on=tuple(parents)))
    return draw(st.permutations(specs))
