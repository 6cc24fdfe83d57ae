"""What people see of a graph is read from its document without making the graph, and says the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.core.graph import Graph, Outline
from stepwell.core.kernel.healing import arrange
from tests.core.graph.dags import graphs


@settings(max_examples=25)
@given(st.lists(graphs(5), min_size=1, max_size=2), st.booleans())
def test_an_outline_says_what_the_graph_says(versions: list[Graph], pinned: bool) -> None:
    graph = versions[0]
    for version in versions[1:]:
        graph = arrange(graph, version, pinned=pinned)
    outline, loaded = Outline(graph.document.decode()), Graph.load(graph.document)
    specs = list(loaded)
    assert outline.ids == [spec.id for spec in specs]
    assert outline.names == [spec.name for spec in specs]
    assert outline.jobs == loaded.jobs
    assert [[outline.ids[place] for place in own] for own in outline.parents] == [[*spec.depends_on] for spec in specs]
    assert outline.levels == [loaded.level(spec.id) for spec in specs]
    assert dict(outline.nodes) == dict(loaded.nodes)
    assert outline.nodes.get("no such node") is None
    assert (outline.removed, outline.source, outline.follows) == (loaded.removed, loaded.source, loaded.follows)
    assert [outline.former(index) for index in outline.removed] == [
        loaded.in_order[index].name for index in outline.removed
    ]
    assert [outline.alike(spec.name) for spec in specs] == [loaded.alike(spec.name) for spec in specs]
