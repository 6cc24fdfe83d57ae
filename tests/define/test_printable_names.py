"""Names are shown on terminals, so they are made of printable characters."""

from __future__ import annotations

import pytest

from stepwell import Builder, DefinitionError, Workflow, step
from stepwell.core.graph import from_frozen
from stepwell.errors import GraphError

WRONG = ["esc\x1b[31m", "two\nlines", "bell\x07", "c1\x9b", "x" * 501]


@pytest.mark.parametrize("name", WRONG)
def test_a_workflow_is_not_named_so(name: str) -> None:
    with pytest.raises(DefinitionError, match="expected 1 to 500 printable characters"):
        Builder(name)
    with pytest.raises(DefinitionError, match="expected 1 to 500 printable characters"):

        class Named(Workflow, name=name):
            @step
            def only(self) -> None: ...


@pytest.mark.parametrize("name", WRONG)
def test_a_node_is_not_named_so(name: str) -> None:
    with pytest.raises(DefinitionError, match="expected 1 to 500 printable characters"):
        Builder("fine").node(name, job="a:b")
    with pytest.raises(DefinitionError, match="expected 1 to 500 printable characters"):
        Builder("fine").fan_out([1], job="a:b", name=lambda _: name)


@pytest.mark.parametrize("name", WRONG)
def test_a_node_of_an_imported_graph_is_not_named_so(name: str) -> None:
    with pytest.raises(GraphError, match=r"\$\.nodes\.n\.name: expected a name of 1 to 500 printable characters"):
        from_frozen({"version": 1, "nodes": {"n": {"name": name, "job": "a:b", "depends_on": []}}})


def test_spaces_and_other_scripts_are_welcome() -> None:
    builder = Builder("Bestellung prüfen 注文")
    builder.node("ship it — 😀", job="a:b")
    builder.node("y" * 500, job="a:b")
