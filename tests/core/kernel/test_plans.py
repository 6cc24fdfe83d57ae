"""What everything with wide consequences does to the nodes of a run."""

from __future__ import annotations

from stepwell.core.kernel.plans import NotNow, Plan, cancel, failed, pause, reattempt, resume, retry, unchanged
from stepwell.core.model import NODE_FAILED, NodeRow, NodeStatus, RunStatus
from tests.core.kernel.facts import graph, run_row

OF = graph(a="", b="a", c="b", d="c", x="", y="x", z="y", w="")
STATUSES = {
    "a": "COMPLETED",
    "b": "FAILED",
    "c": "PENDING",
    "d": "PENDING",
    "x": "RUNNING",
    "y": "PENDING",
    "z": "SKIPPED",
    "w": "WAITING",
}


def rows(**changes: str) -> list[NodeRow]:
    return [
        NodeRow(
            number, node, NodeStatus(changes.get(node, STATUSES[node])), 1, 0, 0, 0, 0, "default/thread", None, None
        )
        for number, node in enumerate(OF.order)
    ]


def becomes(plan: Plan) -> dict[str, tuple[str, str | None, bool]]:
    for change in plan.changes:
        assert (change.was, change.was_attempt) == (rows()[change.index].status, 1)
    return {OF.order[change.index]: (str(change.status), change.reason, change.fresh) for change in plan.changes}


def test_a_failure_takes_what_is_below_it_and_nothing_else_starts() -> None:
    plan = failed(run_row(OF), rows(), OF.children)
    assert becomes(plan) == {
        "c": ("UPSTREAM_FAILED", "upstream: b", False),
        "d": ("UPSTREAM_FAILED", "upstream: b", False),
        "y": ("CANCELLED", "run_failed", False),
        "w": ("CANCELLED", "run_failed", False),
    }
    assert (plan.finish.status, plan.finish.open_gate, plan.finish.reason) == (RunStatus.FAILED, False, None)
    late = failed(run_row(OF, reason="deadline"), rows(), OF.children)
    assert becomes(late)["w"] == ("CANCELLED", "deadline", False)
    assert late.finish.reason == "deadline"


def test_a_cancel_takes_what_has_not_started_and_leaves_the_rest() -> None:
    plan = cancel(rows(), grace=5)
    assert becomes(plan) == dict.fromkeys(("c", "d", "y", "w"), ("CANCELLED", "run_cancelled", False))
    assert (plan.finish.status, plan.finish.open_gate, plan.finish.grace) == (RunStatus.CANCELLING, False, 5)


def test_a_retry_runs_what_did_not_complete_and_depends_on_what_still_runs() -> None:
    ended = {"c": "UPSTREAM_FAILED", "d": "UPSTREAM_FAILED", "y": "CANCELLED", "w": "INTERRUPTED"}
    plan = retry(rows(**ended))
    assert {OF.order[change.index] for change in plan.changes} == {"b", "c", "d", "y", "w"}
    assert {(change.status, change.fresh) for change in plan.changes} == {(NodeStatus.PENDING, True)}
    assert (plan.finish.status, plan.finish.open_gate) == (RunStatus.RUNNING, True)
    (still,) = plan.holds_while
    assert (OF.order[still.index], still.was, still.status) == ("x", NodeStatus.RUNNING, NodeStatus.RUNNING)
    removed = frozenset({OF.index["b"], OF.index["w"]})
    assert {OF.order[change.index] for change in retry(rows(**ended), removed).changes} == {"c", "d", "y"}


def test_a_pause_and_what_ends_it_change_no_node_and_depend_on_what_still_runs() -> None:
    stop = pause(rows())
    assert (stop.changes, stop.finish.status, stop.finish.open_gate) == ([], RunStatus.PAUSED, False)
    assert (stop.finish.reason, pause(rows(), "for a doubt").finish.reason) == ("paused", "for a doubt")
    on = resume(run_row(OF, "PAUSED", reason="paused"), rows())
    assert (on.changes, on.finish.status, on.finish.open_gate, on.finish.tolerate) == (
        [],
        RunStatus.RUNNING,
        True,
        False,
    )
    assert resume(run_row(OF, "PAUSED", reason=NODE_FAILED), rows()).finish.tolerate
    for plan in (stop, on):  # a body that hands its node over to a child run is noticed
        assert [(OF.order[still.index], still.was, still.status) for still in plan.holds_while] == [
            ("x", NodeStatus.RUNNING, NodeStatus.RUNNING)
        ]


def parked(*names: str) -> list[NodeRow]:
    return [row._replace(wakes=1) if row.id in names else row for row in rows(w="WAITING")]


def test_a_cancel_leaves_what_child_runs_perform_until_they_have_ended_and_a_failure_does_not() -> None:
    assert set(becomes(cancel(parked("w"), grace=5))) == {"c", "d", "y"}
    assert "w" in becomes(failed(run_row(OF), parked("w"), OF.children))
    woken = [row._replace(due_at=1) for row in parked("w")]
    assert "w" in becomes(cancel(woken, grace=5)), "its child run has ended, and the gate was closed"


def test_nothing_is_attempted_again_above_a_child_run_that_goes_on() -> None:
    below = [row._replace(wakes=1, status=NodeStatus.WAITING) if row.id == "b" else row for row in rows(c="PENDING")]
    refused = reattempt(OF.index["a"], below, OF, cascade=True)
    assert isinstance(refused, NotNow)
    assert "while what is below it is running ('b')" in refused.message


def test_what_is_attempted_again_is_performed_anew_and_the_rest_keeps_its_child_run() -> None:
    ended = rows(b="FAILED", c="UPSTREAM_FAILED", d="UPSTREAM_FAILED", x="COMPLETED", y="CANCELLED", w="CANCELLED")
    plan = reattempt(OF.index["b"], ended, OF)
    assert isinstance(plan, Plan)
    assert {OF.order[change.index]: change.anew for change in plan.changes} == {
        "b": True,
        "c": True,
        "d": True,
        "y": False,
        "w": False,
    }
    assert not any(change.anew for change in retry(ended).changes)


def test_a_run_that_stays_what_it_was_opens_its_gate_only_if_it_was_open() -> None:
    for status, opens in [
        ("PENDING", True),
        ("RUNNING", True),
        ("PAUSED", False),
        ("FAILED", False),
        ("COMPLETED", False),
    ]:
        finish = unchanged(run_row(OF, status, reason="why"))
        assert (finish.status, finish.open_gate, finish.reason) == (RunStatus(status), opens, "why")
