"""What a node sees is a function of the graph and of what its ancestors returned: held against a naive fold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.base.codec import decode, encode
from stepwell.base.ids import RunId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.core.kernel.healing import arrange
from stepwell.core.model.outputs import Completion, with_delta
from stepwell.define.types.state import StateType, checked_state
from stepwell.engine.bodies import visible_state
from stepwell.engine.bodies.visible_state import VisibleState, final_state
from stepwell.errors import StateError
from stepwell.reducers import add, append, extend, maximum, merge, minimum, union
from tests.core.graph.dags import dags

RUN = RunId("r-1")


def remember_all(current: list[Any], new: int) -> list[Any]:
    """Neither associative nor commutative, and it changes what it is given: any other order or sharing would show."""
    current.append([len(current), new])
    return current


class Everything:
    appended: Annotated[list[int], append] = [0]  # noqa: RUF012
    extended: Annotated[list[list[int]], extend]
    added: Annotated[float, add] = 1.5
    largest: Annotated[int | None, maximum] = None
    smallest: Annotated[int | None, minimum] = None
    merged: Annotated[dict[str, int], merge] = {"start": 0}  # noqa: RUF012
    joined: Annotated[list[int], union] = [5]  # noqa: RUF012
    latest: str = ""
    own: Annotated[list[list[int]], remember_all] = []  # noqa: RUF012


STATE = checked_state(Everything, "Everything")


def naive(values: dict[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    """One delta more, as people would explain it: nothing shared, nothing changed."""
    new = decode(encode(values))
    for name, value in delta.items():
        old = new[name]
        match name:
            case "appended":
                new[name] = [*old, *(value if isinstance(value, list) else [value])]
            case "extended":
                new[name] = [*old, *value]
            case "added":
                new[name] = old + value
            case "largest":
                new[name] = max(each for each in (old, value) if each is not None)
            case "smallest":
                new[name] = min(each for each in (old, value) if each is not None)
            case "merged":
                new[name] = {**old, **value}
            case "joined":
                new[name] = sorted({*old, *value})
            case "latest":
                new[name] = value
            case "own":
                new[name] = [*old, [len(old), value]]
    return new


def naive_fold(graph: Graph, nodes: set[str], deltas: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Any]:
    values = {name: field.default for name, field in STATE.fields.items()}
    for node in sorted(nodes, key=lambda node: (graph.level(node), graph.order_key(node), node)):
        values = naive(values, deltas[node] or {})
    return values


def above(graph: Graph, node: str) -> set[str]:
    parents = graph.nodes[node].depends_on
    return {*parents}.union(*(above(graph, parent) for parent in parents))


numbers = st.integers(-9, 9)
some_delta = st.fixed_dictionaries(
    {},
    optional={
        "appended": numbers | st.lists(numbers, max_size=3),
        "extended": st.lists(st.lists(numbers, max_size=2), max_size=2),
        "added": numbers | st.floats(-9, 9),
        "largest": numbers,
        "smallest": numbers,
        "merged": st.dictionaries(st.sampled_from("abc"), numbers, max_size=2),
        "joined": st.lists(numbers, max_size=3),
        "latest": st.text("xyz", max_size=2),
        "own": numbers,
    },
)


class Stored:
    """The outputs of a run, and which of them were read."""

    def __init__(self, graph: Graph, deltas: Mapping[str, Mapping[str, Any] | None]) -> None:
        self.outputs = {
            graph.index[node]: b"null" if delta is None else with_delta(b'"a\\nb"', encode(dict(delta)))
            for node, delta in deltas.items()
        }
        self.reads: list[tuple[int, ...]] = []

        self.numbers = dict.fromkeys(self.outputs, 1)

    def __call__(self, run_id: RunId, indexes: tuple[int, ...]) -> Mapping[int, Completion]:
        self.reads.append(indexes)
        return {
            index: Completion(self.numbers[index], self.outputs[index]) for index in indexes if index in self.outputs
        }


@given(dags(), st.data())
def test_what_nodes_see_and_the_final_state_are_the_naive_folds(specs: list[NodeSpec], data: st.DataObject) -> None:
    graph = Graph(specs)
    deltas = {node: data.draw(some_delta | st.none(), label=node) for node in graph.nodes}
    stored = Stored(graph, deltas)
    visible = VisibleState(RUN, graph, STATE, stored)
    for node in data.draw(st.lists(st.sampled_from(sorted(graph.nodes)), max_size=20), label="asked"):
        found = visible.by(graph.index[node], 1)
        assert encode(dict(found)) == encode(naive_fold(graph, above(graph, node), deltas))
    final = final_state(RUN, graph, STATE, stored.outputs)
    assert encode(final) == encode(naive_fold(graph, set(graph.nodes), deltas))


@given(dags(), st.data())
def test_nothing_but_the_ancestors_is_even_read(specs: list[NodeSpec], data: st.DataObject) -> None:
    graph = Graph(specs)
    stored = Stored(graph, {key: {"own": 1} for key in graph.nodes})
    node = data.draw(st.sampled_from(sorted(graph.nodes)))
    VisibleState(RUN, graph, STATE, stored).by(graph.index[node], 1)
    assert {graph.order[index] for read in stored.reads for index in read} == above(graph, node)


def chain(length: int) -> Graph:
    return Graph([NodeSpec(f"n{i}", f"n{i}", depends_on=(f"n{i - 1}",) if i else ()) for i in range(length)])


def test_in_a_chain_every_node_folds_one_delta() -> None:
    graph = chain(2_000)
    stored = Stored(graph, {key: {"added": 1} for key in graph.nodes})
    visible = VisibleState(RUN, graph, STATE, stored)
    for index in range(len(graph)):
        assert visible.by(index, 1)["added"] == 1.5 + index
    assert sum(map(len, stored.reads)) == len(graph) - 1


def test_below_each_of_many_joins_only_what_is_new_is_folded() -> None:
    nodes = [NodeSpec("first", "first"), NodeSpec("j0", "j0", depends_on=("first",))]
    for i in range(1, 300):
        nodes += [NodeSpec(f"{side}{i}", "side", depends_on=(f"j{i - 1}",)) for side in "ab"]
        nodes.append(NodeSpec(f"j{i}", "join", depends_on=(f"a{i}", "first", f"b{i}")))
    graph = Graph(nodes)
    stored = Stored(graph, {key: {"added": 1} for key in graph.nodes})
    visible = VisibleState(RUN, graph, STATE, stored)
    for i in range(300):
        assert visible.by(graph.index[f"j{i}"], 1)["added"] == 1.5 + 3 * i + 1
    assert sum(map(len, stored.reads)) == 1 + 3 * 299


def test_a_join_folds_its_ancestors_once_whoever_is_below() -> None:
    branches = [NodeSpec(f"b{i}", f"b{i}") for i in range(100)]
    join = NodeSpec("join", "join", depends_on=tuple(spec.id for spec in branches))
    below = [NodeSpec(f"c{i}", f"c{i}", depends_on=("join",)) for i in range(100)]
    graph = Graph([*branches, join, *below])
    stored = Stored(graph, {key: {"own": 1} for key in graph.nodes})
    visible = VisibleState(RUN, graph, STATE, stored)
    for spec in below:
        assert len(visible.by(graph.index[spec.id], 1)["own"]) == 101
    assert sum(map(len, stored.reads)) == 100 + 100


def test_the_children_of_a_node_that_did_not_look_share_what_it_would_have_seen() -> None:
    graph = Graph([*chain(50), *(NodeSpec(f"c{i}", f"c{i}", depends_on=("n49",)) for i in range(50))])
    stored = Stored(graph, {key: {"own": 1} for key in graph.nodes})
    visible = VisibleState(RUN, graph, STATE, stored)
    for i in range(50):
        assert len(visible.by(graph.index[f"c{i}"], 1)["own"]) == 50
    assert sum(map(len, stored.reads)) == 50 + 49


def test_a_bounded_number_of_states_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_state, "REMEMBERED", 4)
    graph = chain(100)
    stored = Stored(graph, {key: {"added": 1} for key in graph.nodes})
    visible = VisibleState(RUN, graph, STATE, stored)
    for index in [*range(100), *reversed(range(100))]:
        assert visible.by(index, 1)["added"] == 1.5 + index
    assert len(visible._known) <= 4


def test_an_attempt_sees_what_it_stands_on_whatever_was_remembered_of_those_before() -> None:
    """Everything from `n1` on goes again, in another process, and here only what comes after."""
    graph = chain(5)
    stored = Stored(graph, {f"n{i}": {"own": i} for i in range(4)})
    visible = VisibleState(RUN, graph, STATE, stored)
    assert visible.by(3, 1)["own"] == [[0, 0], [1, 1], [2, 2]]
    anew = Stored(graph, {f"n{i}": {"own": 10 * i} for i in range(4)})
    stored.outputs |= {index: anew.outputs[index] for index in (1, 2, 3)}
    stored.numbers |= dict.fromkeys((1, 2, 3), 2)
    assert visible.by(4, 1)["own"] == [[0, 0], [1, 10], [2, 20], [3, 30]]
    assert visible.by(3, 2)["own"] == [[0, 0], [1, 10], [2, 20]]


def test_below_a_skipped_node_nothing_that_was_superseded_is_remembered() -> None:
    graph = chain(4)
    stored = Stored(graph, {"n0": {"own": 1}, "n2": {"own": 3}})
    visible = VisibleState(RUN, graph, STATE, stored)
    assert visible.by(2, 1)["own"] == [[0, 1]]
    stored.outputs[0], stored.numbers[0] = Stored(graph, {"n0": {"own": 5}}).outputs[0], 2
    assert visible.by(2, 2)["own"] == [[0, 5]]


def test_a_skipped_node_contributes_nothing() -> None:
    graph = chain(3)
    visible = VisibleState(RUN, graph, STATE, Stored(graph, {"n0": {"own": 1}, "n2": {"own": 3}}))
    assert visible.by(2, 1)["own"] == [[0, 1]]


def test_a_node_that_was_removed_contributes_nothing_and_the_new_order_counts() -> None:
    old = Graph([NodeSpec("a", "a"), NodeSpec("b", "b", depends_on=("a",)), NodeSpec("c", "c", depends_on=("b",))])
    new = Graph([NodeSpec("c", "c"), NodeSpec("a", "a", depends_on=("c",)), NodeSpec("d", "d", depends_on=("a",))])
    healed = arrange(old, new)
    stored = Stored(healed, {"a": {"own": 1}, "b": {"own": 2}, "c": {"own": 3}})
    assert VisibleState(RUN, healed, STATE, stored).by(healed.index["d"], 1)["own"] == [[0, 3], [1, 1]]
    assert final_state(RUN, healed, STATE, stored.outputs)["own"] == [[0, 3], [1, 1]]


def test_a_field_that_the_class_no_longer_has_is_passed_over() -> None:
    graph = chain(1)
    assert final_state(RUN, graph, STATE, Stored(graph, {"n0": {"gone": 1, "own": 2}}).outputs)["own"] == [[0, 2]]


def test_what_is_given_out_is_nobody_elses() -> None:
    final_state(RUN, chain(1), STATE, {})["appended"].append(9)
    assert final_state(RUN, chain(1), STATE, {})["appended"] == [0]


def fussy(current: int, new: int) -> int:
    if new == 3:
        raise ValueError("three is too many")
    return current + new


def forgetful(current: int, new: int) -> Any:
    return None if new == 3 else current + new


class Fragile:
    fussy: Annotated[int, fussy] = 0
    forgetful: Annotated[int, forgetful] = 0


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("fussy", r"raised ValueError: three is too many \(.*test_visible_state.py:\d+\)"),
        ("forgetful", r"gave what the field cannot be: forgetful: expected int, got None \(NoneType\)"),
    ],
)
def test_a_reducer_that_breaks_is_named_with_the_delta_it_broke_on(field: str, problem: str) -> None:
    graph = chain(5)
    fragile: StateType = checked_state(Fragile, "Fragile")
    stored = Stored(graph, {f"n{i}": {field: i} for i in range(5)})
    with pytest.raises(StateError, match=problem) as caught:
        VisibleState(RUN, graph, fragile, stored).by(4, 1)
    message = str(caught.value)
    assert f"the reducer of Fragile.{field}, tests.engine.test_visible_state:{field}, " in message
    assert f"at the delta of node 'n3': {field}=3\n" in message
    assert "run r-1" in message
    assert "run.retry()" in message
    assert (caught.value.field, caught.value.node) == (field, "n3")
