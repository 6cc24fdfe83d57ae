"""A node may say which ids it had before; each of them leads to exactly one node."""

from __future__ import annotations

from stepwell.core.graph import Graph, NodeSpec, check


def messages(*specs: NodeSpec) -> list[str]:
    return [str(problem) for problem in check(specs)]


def test_former_names_are_part_of_the_document_only_when_there_are_some() -> None:
    assert Graph([NodeSpec("pay", "pay", was=())]).document == b'[{"id":"pay"}]'
    assert Graph([NodeSpec("pay", "pay", was=("charge", "bill"))]).document == b'[{"id":"pay","was":["bill","charge"]}]'


def test_former_names_survive_the_round_trip() -> None:
    graph = Graph([NodeSpec("pay", "pay", was=("bill", "charge"))])
    assert Graph.load(graph.document).nodes["pay"].was == ("bill", "charge")
    assert Graph.load(graph.document) == graph


def test_former_names_are_a_set_and_change_the_digest_but_not_the_signature() -> None:
    plain = Graph([NodeSpec("pay", "pay")])
    renamed = Graph([NodeSpec("pay", "pay", was=("charge", "bill"))])
    assert renamed == Graph([NodeSpec("pay", "pay", was=("bill", "charge"))])
    assert renamed.digest != plain.digest
    assert renamed.signature == plain.signature


def test_a_former_name_that_could_mean_several_nodes_is_refused() -> None:
    assert messages(
        NodeSpec("a", "a", was=("a",)),
        NodeSpec("b", "b", was=("c", "old")),
        NodeSpec("c", "c", was=("old", "older")),
        NodeSpec("d", "d", was=("",)),
    ) == [
        "d: was=('',): expected the name this node had in an earlier version, or a list of such names",
        "a: was='a': that is its name now; was= takes names it had before",
        "b: was='c': a node has this name now, so it is not a former one",
        "c: was='old': 'b' says this too; only one can be right",
    ]
