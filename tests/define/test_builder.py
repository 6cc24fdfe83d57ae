"""A workflow can be built at run time, node by node."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.core.graph import NO_ARGS, Graph, Retry
from stepwell.define import PREVIOUS, Builder
from stepwell.errors import DefinitionError, GraphError, NotJson
from tests.define.lines import place
from tests.define.shop import charge


def edges(graph: Graph) -> dict[str, list[str]]:
    names = {spec.id: spec.name for spec in graph}
    return {spec.name: [names[parent] for parent in spec.depends_on] for spec in graph}


def test_a_node_follows_the_previous_one_unless_it_says_otherwise() -> None:
    w = Builder("w")
    a = w.node("a", job=charge)
    w.node("b", job=charge)
    w.node("c", job=charge, depends_on=None)
    w.node("d", job=charge, depends_on="a")
    w.node("e", job=charge, depends_on=["c", a, "a"])
    w.node("f", job=charge, depends_on=[PREVIOUS, "b"])
    w.node("g", job=charge, depends_on=[])
    assert edges(w.graph()) == {"a": [], "b": ["a"], "c": [], "d": ["a"], "e": ["c", "a"], "f": ["e", "b"], "g": []}


def test_options_and_args_reach_the_spec() -> None:
    w = Builder("w")
    node = w.node(
        "a",
        job=charge,
        args={"amount": 3},
        retry=Retry(2, retry_on=(OSError,)),
        timeout=5,
        on_lost="interrupt",
        isolation="process",
        queue="slow",
    )
    spec = w.graph().nodes[node]
    assert (spec.id, spec.name, spec.args, spec.kind) == (node, "a", {"amount": 3}, "step")
    assert (spec.retry, spec.timeout) == (Retry(2, retry_on=(OSError,)), 5.0)
    assert (spec.on_lost, spec.body, spec.queue) == ("interrupt", "process", "slow")


def test_a_node_without_args_has_none() -> None:
    w = Builder("w")
    w.node("a", job=charge)
    assert next(iter(w.graph())).args is NO_ARGS


def test_args_are_taken_as_they_are_now() -> None:
    w = Builder("w")
    args = {"amount": 3}
    w.node("a", job=charge, args=args)
    args["amount"] = 4
    assert next(iter(w.graph())).args == {"amount": 3}


def test_a_graph_taken_early_is_not_changed_by_later_nodes() -> None:
    w = Builder("w")
    w.node("a", job=charge)
    early = w.graph()
    assert w.graph() is early
    w.node("b", job=charge)
    assert (len(early), len(w.graph())) == (1, 2)


def test_unknown_and_ambiguous_names_are_refused_with_their_line() -> None:
    w = Builder("w")
    first = w.node("same", job=charge)
    w.node("same", job=charge)
    with pytest.raises(DefinitionError, match="no node of this name") as caught:
        w.node("b", job=charge, depends_on="later")  # unknown
    assert caught.value.where == place(__file__, "unknown")
    with pytest.raises(DefinitionError, match="2 nodes have this name; use the id") as caught:
        w.node("b", job=charge, depends_on=["same"])  # ambiguous
    assert caught.value.where == place(__file__, "ambiguous")
    w.node("b", job=charge, depends_on=first)
    assert [spec.depends_on for spec in w.graph()][2] == (first,)


@pytest.mark.parametrize("wrong", [7, ["a", None], [["a"], 3.5]])
def test_only_nodes_can_be_depended_on(wrong: Any) -> None:
    w = Builder("w")
    w.node("a", job=charge)
    with pytest.raises(DefinitionError, match="names, ids, what fan_out returned"):
        w.node("b", job=charge, depends_on=wrong)


@pytest.mark.parametrize("name", ["", " ", None, 3, "half \ud800"])
def test_a_node_has_a_name(name: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be a name"):
        Builder("w").node(name, job=charge)


@pytest.mark.parametrize("args", [[1], "x", 3])
def test_args_are_a_dict(args: Any) -> None:
    with pytest.raises(DefinitionError, match=r"the args of 'a': expected a dict, got"):
        Builder("w").node("a", job=charge, args=args)


def test_the_context_cannot_be_an_arg() -> None:
    with pytest.raises(DefinitionError, match="the args of 'a' contain 'ctx'"):
        Builder("w").node("a", job=charge, args={"ctx": 1})


def test_args_that_are_not_json_are_refused_by_name_and_line() -> None:
    w = Builder("w")  # builder
    w.node("fine", job=charge)
    node = w.node("late", job=charge, args={"day": 1j})  # not json
    with pytest.raises(GraphError) as caught:
        w.graph()
    (problem,) = caught.value.problems
    assert str(problem) == (
        f"late ({node}): args: a value of type builtins.complex cannot be kept as JSON (at $.day) "
        f"({place(__file__, 'not json')})"
    )
    assert caught.value.where == place(__file__, "builder")


def test_a_builder_without_nodes_has_no_graph() -> None:
    with pytest.raises(GraphError, match="it has no nodes"):
        Builder("w").graph()


def test_a_node_that_is_refused_leaves_no_trace() -> None:
    w = Builder("w")
    w.node("a", job=charge)
    for wrong in ({"timeout": -1}, {"depends_on": "x"}, {"args": 3}, {"job": "x"}):
        with pytest.raises(DefinitionError):
            w.node("b", **{"job": charge, **wrong})
    w.node("c", job=charge)
    assert edges(w.graph()) == {"a": [], "c": ["a"]}


def test_args_that_no_store_can_keep_are_refused() -> None:
    w = Builder("w")
    w.node("a", job=charge, args={"text": "half \ud800"})
    with pytest.raises(NotJson, match="half of a surrogate pair"):
        _ = w.graph().digest
