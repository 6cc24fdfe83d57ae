"""An edited graph may change what a run has not done, and nothing that it has done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.core.graph import Graph, NodeSpec, Retry, from_frozen, to_frozen
from stepwell.core.kernel.importing import import_problems
from stepwell.core.model import NodeRow, NodeStatus
from tests.core.graph.dags import dags

S = NodeStatus

ORDER = Graph(
    [
        NodeSpec("v", "validate", job="shop:validate", args={"order": 7}),
        NodeSpec("e", "enrich", ("v",), "shop:enrich"),
        NodeSpec("c", "charge", ("e",), "shop:charge", {"amount": 3}, needs=("v",)),
        NodeSpec("m", "mail", ("e",), "shop:mail"),
        NodeSpec("s", "ship", ("c", "m"), "shop:ship"),
    ]
)
HALFWAY = {"v": S.COMPLETED, "e": S.COMPLETED, "c": S.FAILED, "m": S.RUNNING}
KEPT = (S.COMPLETED, S.SKIPPED, S.RUNNING)


def rows(graph: Graph, statuses: Mapping[str, NodeStatus]) -> list[NodeRow]:
    return [
        NodeRow(index, node, statuses.get(node, S.PENDING), 0, 0, 0, 0, 0, "default/thread", None, None)
        for index, node in enumerate(graph.order)
    ]


def edited(*changes: NodeSpec, without: str = "", **fields: Mapping[str, Any]) -> Graph:
    """ORDER with some nodes added, removed, or changed in some fields."""
    kept = [spec._replace(**fields.get(spec.id, {})) for spec in ORDER if spec.id != without]
    return Graph([*kept, *changes])


def messages(new: Graph, statuses: Mapping[str, NodeStatus] = HALFWAY) -> list[str]:
    return [str(problem) for problem in import_problems(ORDER, rows(ORDER, statuses), new)]


def test_the_same_graph_may_be_imported() -> None:
    assert messages(ORDER) == []
    assert messages(from_frozen(to_frozen(ORDER, 0))) == []


@pytest.mark.parametrize(
    "status", [S.PENDING, S.READY, S.WAITING, S.FAILED, S.UPSTREAM_FAILED, S.CANCELLED, S.INTERRUPTED]
)
def test_what_did_not_complete_may_be_changed_and_removed(status: NodeStatus) -> None:
    statuses = {**HALFWAY, "c": status}
    changed = edited(c={"name": "pay", "job": "shop:pay", "args": {}, "needs": (), "depends_on": ("v",)})
    assert messages(changed, statuses) == []
    assert messages(edited(without="c", s={"depends_on": ("m",)}), statuses) == []


def test_nodes_may_be_added_after_what_was_done_and_before_what_was_not() -> None:
    audit = NodeSpec("a", "audit", ("v",), "shop:audit")
    assert messages(edited(audit, c={"depends_on": ("e", "a")}, s={"depends_on": ("a",)})) == []
    assert messages(edited(audit._replace(depends_on=()))) == []


def test_the_options_of_a_completed_node_may_change() -> None:
    options = {"timeout": 9.0, "retry": Retry(3), "queue": "slow", "body": "process", "kind": "task"}
    assert messages(edited(v=options)) == []


@pytest.mark.parametrize("status", KEPT)
def test_what_was_done_cannot_be_removed(status: NodeStatus) -> None:
    (message,) = messages(edited(without="m", s={"depends_on": ("c",)}), {**HALFWAY, "m": status})
    words = {S.COMPLETED: "has completed", S.SKIPPED: "was skipped", S.RUNNING: "is running"}
    assert message.startswith(f"$.nodes.m: node 'mail' {words[status]} and cannot be removed; put it back as it was")


@pytest.mark.parametrize("status", KEPT)
@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "post"), ("job", "shop:post"), ("args", {"x": 1}), ("needs", ("v",)), ("depends_on", ("v",))],
)
def test_what_was_done_cannot_be_changed(status: NodeStatus, field: str, value: Any) -> None:
    (problem,) = import_problems(ORDER, rows(ORDER, {**HALFWAY, "m": status}), edited(m={field: value}))
    assert (problem.where, problem.field, problem.path) == ("m", f".{field}", f"$.nodes.m.{field}")
    assert f", so its {field} cannot change; put it back as it was, or " in problem.message


def test_nothing_of_a_running_node_can_be_changed() -> None:
    assert messages(edited(m={"timeout": 3.0})) == [
        "$.nodes.m.timeout: node 'mail' is running, so its timeout cannot change; put it back as it was, or wait until it "
        "has ended"
    ]


def test_a_new_node_before_one_that_has_begun_is_refused_and_both_are_named() -> None:
    check = NodeSpec("k", "check", ("v",), "shop:check")
    assert messages(edited(check, e={"depends_on": ("v", "k")})) == [
        "$.nodes.k: node 'check' is new and stands before 'enrich' (e), which has completed: it would come too late; let "
        "only nodes depend on it that have not begun"
    ]
    assert messages(edited(check._replace(depends_on=()), m={"depends_on": ("e", "k")})) == [
        "$.nodes.k: node 'check' is new and stands before 'mail' (m), which is running: it would come too late; let only "
        "nodes depend on it that have not begun"
    ]


def test_all_new_nodes_above_are_told() -> None:
    first, second = NodeSpec("k", "one", (), "shop:x"), NodeSpec("l", "two", ("k",), "shop:x")
    found = messages(edited(first, second, v={"depends_on": ("l",)}))
    assert [message.split(" is new")[0] for message in found] == ["$.nodes.k: node 'one'", "$.nodes.l: node 'two'"]


def test_every_problem_is_reported_at_once() -> None:
    new = Graph(
        [
            NodeSpec("k", "check", (), "shop:check"),
            NodeSpec("e", "enrich", ("k",), "shop:enrich", {"more": True}),
            NodeSpec("m", "mail", ("e",), None),
        ]
    )
    assert [problem.path for problem in import_problems(ORDER, rows(ORDER, HALFWAY), new)] == [
        "$.nodes.v",
        "$.nodes.e.args",
        "$.nodes.e.depends_on",
        "$.nodes.m.job",
        "$.nodes.k",
        "$.nodes.m.job",
    ]


def test_a_node_without_a_job_needs_a_class() -> None:
    method = NodeSpec("a", "audit", ("v",))
    assert messages(edited(method)) == [
        "$.nodes.a.job: node 'audit' has no job, and this run has no class whose method it could be; give it a job"
    ]
    of_a_class = Graph([NodeSpec("v", "validate"), NodeSpec("s", "ship", ("v",), "shop:ship")])
    assert import_problems(of_a_class, rows(of_a_class, {}), Graph([*of_a_class, method])) == []


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ({"x": 1.0}, {"x": 1}, True),
        ({"x": (1, [2])}, {"x": [1, [2]]}, True),
        ({"x": True, "y": [False]}, {"x": True, "y": [False]}, True),
        ({"x": True}, {"x": 1}, False),
        ({"x": 0}, {"x": False}, False),
        ({"x": None}, {}, False),
        ({"x": [1]}, {"x": [1, 2]}, False),
        ({"x": {"y": 1}}, {"x": {"y": 2}}, False),
        ({"x": "1"}, {"x": 1}, False),
    ],
)
def test_args_are_compared_as_json(was: Any, now: Any, same: bool) -> None:
    old, new = (Graph([NodeSpec("a", "a", job="shop:a", args=args)]) for args in (was, now))
    assert (import_problems(old, rows(old, {"a": S.COMPLETED}), new) == []) is same


@settings(deadline=None)  # busy machines are slow
@given(dags(), st.data())
def test_whatever_is_allowed_leaves_what_was_done_and_what_it_stands_on(
    specs: list[NodeSpec], data: st.DataObject
) -> None:
    """Against the rule itself: everything above a kept node is what it was."""
    old = Graph([spec._replace(job="shop:x") for spec in specs])
    done = dict.fromkeys(old.order[: data.draw(st.integers(1, len(old)))], S.COMPLETED)  # parents first
    merged = {spec.id: spec for spec in old}
    for number in range(data.draw(st.integers(1, 2))):
        trial = _edited_somehow(merged, f"new {number}", data)
        merged = trial if _sound(trial) else merged
    new = Graph(list(merged.values()))
    allowed = not import_problems(old, rows(old, done), new)

    def above(graph: Graph, node: str) -> set[tuple[str, frozenset[str]]]:
        found: set[tuple[str, frozenset[str]]] = set()
        waiting = [node]
        while waiting:
            each = waiting.pop()
            parents = graph.nodes[each].depends_on if each in graph.nodes else ()
            found.add((each, frozenset(parents)))
            waiting += parents
        return found

    assert allowed == all(node in new.nodes and above(old, node) == above(new, node) for node in done)


def _edited_somehow(specs: dict[str, NodeSpec], new: str, data: st.DataObject) -> dict[str, NodeSpec]:
    edit = data.draw(st.sampled_from(["insert", "change", "remove"]))
    node = data.draw(st.sampled_from(sorted(specs)))
    some = tuple(data.draw(st.lists(st.sampled_from(sorted(specs)), unique=True, max_size=2)))
    if edit == "remove":
        return {
            spec.id: spec._replace(depends_on=tuple(parent for parent in spec.depends_on if parent != node))
            for spec in specs.values()
            if spec.id != node
        }
    if edit == "change":
        return {**specs, node: specs[node]._replace(depends_on=some)}
    above = specs[node]._replace(depends_on=(*specs[node].depends_on, new))
    return {**specs, node: above, new: NodeSpec(new, new, some, "shop:x")}


def _sound(specs: Mapping[str, NodeSpec]) -> bool:
    try:
        Graph(list(specs.values()))
    except Exception:
        return False
    return True
