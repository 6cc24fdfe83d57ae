"""What becomes of a run whose class has changed: which node is which, what is done with each, and who does it."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.base.ids import Digest, NodeId
from stepwell.core.graph import Arranged, Graph, NodeSpec
from stepwell.core.kernel.healing import POSSIBLE_RENAME, arrange, heal, judge, possible_rename
from stepwell.core.model import CONDITION, HEALED_LATE, NodeRow, NodeStatus, RunStatus
from tests.core.kernel.facts import graph, known, run_row

P, R, W, X = NodeStatus.PENDING, NodeStatus.READY, NodeStatus.WAITING, NodeStatus.RUNNING
C, F, S, D = NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED, NodeStatus.CANCELLED


def was(name: str, *former: str, after: str = "") -> NodeSpec:
    return NodeSpec(NodeId(name), name, tuple(map(NodeId, after.split())), was=tuple(map(NodeId, former)))


def versions(*graphs: Graph) -> Arranged:
    """The last one, arranged for a run that has lived with all of them."""
    current = graphs[0]
    for new in graphs[1:]:
        current = arrange(current, new)
    assert isinstance(current, Arranged)
    return current


def rows(of: Graph, **statuses: NodeStatus) -> list[NodeRow]:
    """The rows of a run that has gone over to this graph, in the order of their numbers."""
    found = []
    for number, node in enumerate(of.order):
        status = statuses[node]
        attempts = int(status not in (P, R, D, S))
        found.append(NodeRow(number, node, status, attempts, 0, 0, 0, 0, "default/thread", None, None))
    return found


def healed(
    before: Graph, after: Graph, run: Any = None, **statuses: NodeStatus
) -> dict[str, tuple[NodeStatus, str | None, bool]]:
    """What a heal changes: the new status, the reason, and whether it begins anew."""
    plan = heal(run or run_row(after), rows(after, **statuses), before, after)
    for change in plan.changes:
        assert change.was is statuses[after.order[change.index]]
    return {after.order[change.index]: (change.status, change.reason, change.fresh) for change in plan.changes}


def test_every_node_keeps_its_number_and_new_ones_come_after() -> None:
    arranged = versions(graph(a="", b="a"), graph(first="", a="first", b="a"))
    assert arranged.index == {"a": 0, "b": 1, "first": 2}
    assert (arranged.removed, arranged.former_names) == (frozenset(), {})
    assert arranged.ranks == (1, 2, 0)


def test_a_node_that_comes_back_has_its_old_number_and_one_that_does_not_stays_removed() -> None:
    first, second, third = graph(a="", b="a", c="b"), graph(a=""), graph(a="", c="a")
    gone = versions(first, second)
    assert (gone.order, gone.removed) == (("a", "b", "c"), frozenset({1, 2}))
    back = versions(first, second, third)
    assert (back.order, back.removed) == (("a", "b", "c"), frozenset({1}))
    assert versions(first, second, third, second, first).removed == frozenset()


def test_a_renamed_node_is_the_same_also_after_a_second_renaming_and_back() -> None:
    first, second = graph(a="", pay="a"), graph(a="", charge=was("charge", "pay", after="a"))
    third = graph(a="", bill=was("bill", "charge", after="a"))
    assert versions(first, second).former_names == {"charge": ("pay",)}
    twice = versions(first, second, third)
    assert (twice.order, twice.former_names) == (("a", "bill"), {"bill": ("pay", "charge")})
    assert twice.identity(1) == "pay"
    # Rolled back, nothing says `was=`: but it is remembered what the node was called.
    back = versions(first, second, third, second)
    assert (back.order, back.removed) == (("a", "charge"), frozenset())
    assert back.identity(1) == "pay"
    assert versions(first, second, third, first).order == ("a", "pay")


def test_a_removed_node_comes_back_under_another_name() -> None:
    first, second = graph(a="", pay="a"), graph(a="")
    back = versions(first, second, graph(a="", charge=was("charge", "pay", after="a")))
    assert (back.order, back.removed, back.former_names) == (("a", "charge"), frozenset(), {"charge": ("pay",)})


def test_a_name_that_is_used_again_for_something_else_is_a_new_node() -> None:
    first, second = graph(a="", pay="a"), graph(a="", charge=was("charge", "pay", after="a"))
    both = versions(first, second, graph(a="", pay="a", bill=was("bill", "charge", after="a")))
    assert (both.order, both.former_names) == (("a", "bill", "pay"), {"bill": ("pay", "charge")})


def test_what_it_says_it_was_goes_before_what_had_its_name_long_ago() -> None:
    first, second = graph(a="", x="a", y="a"), graph(a="", y="a")
    again = versions(first, second, graph(a="", x=was("x", "y", after="a")))
    assert again.identity(again.index["x"]) == "y"
    assert len(again.removed) == 1


def test_a_pinned_graph_follows_nothing() -> None:
    first, second = graph(a=""), graph(a="", b="a")
    assert arrange(first, second, pinned=True).follows is None
    assert arrange(first, second).follows == second.digest


@pytest.mark.parametrize(
    ("status", "becomes"),
    [(P, D), (R, D), (W, D), (F, D), (NodeStatus.INTERRUPTED, D), (C, None), (S, None), (X, None)],
)
def test_what_is_gone_is_dropped_unless_it_is_done_or_runs(status: NodeStatus, becomes: NodeStatus | None) -> None:
    before = graph(a="", b="a")
    after = versions(before, graph(a=""))
    assert healed(before, after, a=C, b=status) == ({"b": (becomes, "removed", False)} if becomes else {})


def test_a_node_that_was_dropped_and_comes_back_begins_anew() -> None:
    first = graph(a="", b="a", c="b")
    gone = versions(first, graph(a="", c="a"))
    back = versions(first, graph(a="", c="a"), first)
    assert healed(gone, back, a=C, b=D, c=P) == {"b": (P, None, True)}


@pytest.mark.parametrize("status", [C, X, S])
def test_a_node_that_comes_back_after_it_was_done_stays_as_it_is(status: NodeStatus) -> None:
    first = graph(a="", b="a", c="b")
    gone = versions(first, graph(a="", c="a"))
    back = versions(first, graph(a="", c="a"), first)
    assert healed(gone, back, a=C, b=status, c=P) == {}


def test_a_node_that_was_cancelled_and_was_never_gone_does_not_run_because_another_comes_back() -> None:
    first = graph(a="", b="a", c="a")
    gone = versions(first, graph(a="", c="a"))
    back = versions(first, graph(a="", c="a"), first)
    assert healed(gone, back, a=C, b=D, c=D) == {"b": (P, None, True)}


@pytest.mark.parametrize(
    ("below", "late"), [(C, True), (X, True), (P, False), (R, False), (W, False), (F, False), (S, False)]
)
def test_a_node_is_late_when_something_below_it_runs_or_is_done(below: NodeStatus, late: bool) -> None:
    first = graph(a="", c="a")
    for before, after in [
        (first, versions(first, graph(a="", b="a", c="b"))),
        (
            versions(graph(a="", b="a", c="b"), first),
            versions(graph(a="", b="a", c="b"), first, graph(a="", b="a", c="b")),
        ),
    ]:
        joins = P if "b" not in before.index else D
        found = healed(before, after, a=C, b=joins, c=below)
        assert (found.get("b", (P,))[0] is S) is late
        if late:
            assert found["b"] == (S, "healed_late", "b" in before.index)


def test_late_is_told_from_far_below_and_not_from_beside() -> None:
    before = graph(a="", d="", e="d")
    after = versions(before, graph(a="", b="a", c="b", d="c", x="a", e="d"))
    found = healed(before, after, a=C, d=P, e=X, b=P, c=P, x=P)
    assert {node: status for node, (status, _, _) in found.items()} == {"b": S, "c": S}


def test_a_new_node_whose_parents_all_came_too_late_is_skipped_and_so_is_the_next() -> None:
    before = graph(a="", s="a")
    after = versions(before, graph(a="", s="a", n="s", m="n", k="s a", j=""))
    late = [
        row._replace(reason=HEALED_LATE if row.id == "s" else None) for row in rows(after, a=C, s=S, n=P, m=P, k=P, j=P)
    ]
    changes = heal(run_row(after), late, before, after).changes
    assert {after.order[change.index]: change.reason for change in changes} == {"n": HEALED_LATE, "m": HEALED_LATE}


def test_a_new_node_below_one_that_was_skipped_by_its_condition_joins_and_is_judged_when_it_is_claimed() -> None:
    before = graph(a="", s="a")
    after = versions(before, graph(a="", s="a", n="s", m="n"))
    skipped = [row._replace(reason=CONDITION if row.id == "s" else None) for row in rows(after, a=C, s=S, n=P, m=P)]
    assert heal(run_row(after), skipped, before, after).changes == []


def test_an_old_node_before_completed_ones_still_runs() -> None:
    before = graph(a="", b="a", c="a")
    after = versions(before, graph(a="", b="a", c="a b"))
    assert healed(before, after, a=C, b=R, c=C) == {}


def test_what_waited_for_its_next_attempt_waits_for_a_new_parent_first() -> None:
    before = graph(a="", c="a")
    after = versions(before, graph(a="", b="a", c="b"))
    assert healed(before, after, a=C, b=P, c=W) == {"c": (P, None, False)}
    assert healed(before, after, a=C, b=C, c=W) == {}
    assert healed(before, after, a=C, b=S, c=W) == {}


def test_what_a_child_run_performs_has_begun_so_a_new_parent_comes_too_late() -> None:
    before = graph(a="", c="a")
    after = versions(before, graph(a="", b="a", c="b"))
    parked = [row._replace(wakes=1) if row.id == "c" else row for row in rows(after, a=C, b=P, c=W)]
    (change,) = heal(run_row(after), parked, before, after).changes
    assert (after.order[change.index], change.status, change.reason) == ("b", S, "healed_late")


def test_in_a_run_that_has_ended_new_nodes_wait_for_a_retry() -> None:
    before = graph(a="", c="a")
    after = versions(before, graph(a="", b="a", c="b"))
    ended = run_row(after, "FAILED")
    assert healed(before, after, ended, a=F, b=P, c=NodeStatus.UPSTREAM_FAILED) == {"b": (D, "run_failed", False)}
    cancelled = run_row(after, "CANCELLED", reason="run_cancelled")
    assert healed(before, after, cancelled, a=C, b=P, c=D) == {"b": (D, "run_cancelled", False)}


def test_a_run_that_was_paused_for_the_doubt_goes_on_and_no_other_does() -> None:
    before = graph(a="", b="a")
    after = versions(before, graph(a="", c="a"))
    given = rows(after, a=C, b=D, c=P)
    finish = heal(run_row(after, "PAUSED", reason=f"{POSSIBLE_RENAME}gone"), given, before, after).finish
    assert (finish.status, finish.open_gate) == (RunStatus.RUNNING, True)
    finish = heal(run_row(after, "PAUSED", reason="by a person"), given, before, after).finish
    assert (finish.status, finish.open_gate) == (RunStatus.PAUSED, False)


@pytest.mark.parametrize(
    ("first", "second", "attempted", "doubtful"),
    [
        (graph(a="", b="a"), graph(a="", c="a"), "b", True),
        (graph(a="", b="a"), graph(a="", c="a"), "a", False),  # what is gone was never attempted
        (graph(a="", b="a"), graph(a=""), "b", False),  # nothing is new
        (graph(a=""), graph(a="", c="a"), "a", False),  # nothing is gone
        (graph(a="", b="a"), graph(a="", c=was("c", "b", after="a")), "b", False),
    ],
)
def test_the_doubt(first: Graph, second: Graph, attempted: str, doubtful: bool) -> None:
    nodes = [known(first, node, "PENDING", attempt=int(node == attempted)).row for node in first.order]
    found = possible_rename(first, arrange(first, second), nodes)
    assert (found is not None) is doubtful
    if found:
        assert found.startswith("is it a rename? gone after an attempt: 'b'; new: 'c'. ")
        assert '@step(was="b")' in found


def test_what_was_gone_before_is_no_doubt_again_nor_is_one_that_comes_back_unknown() -> None:
    first, second = graph(a="", b="a"), graph(a="")
    gone = versions(first, second)
    nodes = [known(first, node, "PENDING", attempt=1).row for node in ("a", "b")]
    assert possible_rename(gone, arrange(gone, graph(a="", c="a")), nodes) is None
    assert possible_rename(gone, arrange(gone, first), nodes) is None
    assert "gone after an attempt: 'a'; new: 'c'" in str(possible_rename(gone, arrange(gone, graph(b="", c="")), nodes))


@pytest.mark.parametrize(
    ("reason", "attempts", "doubtful"),
    [("parents_skipped", 1, False), ("parent_skipped", 1, False), ("parents_skipped", 2, True), (CONDITION, 1, True)],
)
def test_a_node_that_never_ran_because_of_its_parents_may_be_renamed(
    reason: str, attempts: int, doubtful: bool
) -> None:
    first, second = graph(a="", b="a"), graph(a="", c="a")
    nodes = [known(first, "a", "SKIPPED").row, known(first, "b", "SKIPPED", attempt=attempts, reason=reason).row]
    assert (possible_rename(first, arrange(first, second), nodes) is not None) is doubtful


def test_many_that_are_gone_are_counted() -> None:
    first = graph(**{f"n{number}": "" for number in range(5)})
    nodes = [known(first, node, "PENDING", attempt=1).row for node in first.order]
    told = str(possible_rename(first, arrange(first, graph(x="", y="", z="")), nodes))
    shown = ", ".join(map(repr, first.order[:3]))
    assert f"gone after an attempt: {shown} and 2 more; new: " in told
    assert told.count("more") == 1


OLD, NEW, NEWEST, UNKNOWN = (Digest(name) for name in ("old", "new", "newest", "unknown"))
AGES = {OLD: 1, NEW: 2, NEWEST: 3}


@pytest.mark.parametrize(
    ("follows", "mine", "others", "verdict"),
    [
        (None, NEW, {NEWEST}, "serve"),  # pinned
        (NEW, NEW, {NEWEST}, "serve"),
        (OLD, NEW, set(), "heal"),
        (OLD, NEW, {OLD}, "heal"),
        (OLD, NEW, {NEW}, "heal"),  # another with the same code is no reason to wait
        (OLD, NEW, {UNKNOWN}, "heal"),
        (OLD, NEW, {OLD, NEWEST}, "yield"),
        (NEW, OLD, set(), "roll back"),
        (NEW, OLD, {OLD}, "roll back"),
        (NEW, OLD, {NEW}, "yield"),
        (NEWEST, OLD, {NEW}, "yield"),
        (NEWEST, NEW, {OLD}, "roll back"),
        (NEWEST, UNKNOWN, {NEWEST}, "heal"),  # what was never stored is newer than everything
        (UNKNOWN, OLD, set(), "heal"),
    ],
)
def test_who_heals_and_who_yields(follows: Digest | None, mine: Digest, others: set[str], verdict: str) -> None:
    assert judge(follows, mine, AGES, others) == verdict
