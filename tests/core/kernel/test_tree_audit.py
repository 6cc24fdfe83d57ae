"""The auditor of trees notices what would leave a node parked for ever."""

from __future__ import annotations

from typing import Any

from stepwell.base.ids import RunId
from stepwell.core.kernel.tree_audit import Tree, audit_tree
from stepwell.core.model import ENDED, GateState, NodeRow, RunRow
from tests.core.kernel.facts import NOW, ago, graph, known, run_row

OF = graph(find="", imported="find")
PARENT = run_row(OF)
PARKED = known(OF, "imported", "WAITING", wakes=1).row


def child(status: str = "RUNNING", **changes: Any) -> RunRow:
    return run_row(OF, status, id=RunId("r-1.0123456789abcdef"), parent=PARENT.id, parent_node=1, depth=1, **changes)


def problems(*children: RunRow, run: RunRow = PARENT, node: NodeRow = PARKED, has_parent: bool = False) -> list[str]:
    return audit_tree(Tree(run, [known(OF, "find", "COMPLETED").row, node], children, has_parent, NOW))


def test_a_node_may_wait_for_a_run_that_goes_on_or_whose_end_is_being_handed_on() -> None:
    assert problems(child()) == problems(child("PAUSED")) == []
    assert problems(child("COMPLETED", gate=GateState.HELD, purpose=ENDED)) == []
    assert problems(node=known(OF, "imported", "READY", wakes=2).row) == []


def test_a_parked_node_that_no_run_performs_is_noticed() -> None:
    assert problems() == ["imported: it is parked and no run performs it"]
    assert problems(child()._replace(parent_node=0)) == ["imported: it is parked and no run performs it"]


def test_a_parked_node_whose_child_run_wakes_it_no_more_is_noticed() -> None:
    ended = "imported: it is parked, and run r-1.0123456789abcdef, which performs it, has ended and wakes it no more"
    assert problems(child("FAILED")) == [ended]
    beside = child("COMPLETED", gate=GateState.HELD, purpose=ENDED)._replace(parent_node=0)
    assert problems(child("FAILED"), beside) == [ended], "that of another node says nothing about it"
    earlier = child("COMPLETED")._replace(id=RunId("r-1.fedcba9876543210"))
    assert problems(child(), earlier) == []


def test_a_child_run_whose_parent_is_gone_is_noticed() -> None:
    row = known(OF, "imported", "PENDING").row
    assert problems(run=child(), node=row) == ["the run is a child run, and its parent run r-1 is gone"]
    assert problems(run=child(), node=row, has_parent=True) == []


def test_an_end_that_nobody_hands_on_is_noticed() -> None:
    late = child("COMPLETED", gate=GateState.HELD, purpose=ENDED, ended_at=ago(90))
    told = "run r-1.0123456789abcdef ended 90 s ago, and the node that it performs has not been woken"
    assert problems(late) == [told]
    assert problems(run=late, node=known(OF, "imported", "PENDING").row, has_parent=True) == [told]


def test_what_is_deleted_or_restored_in_part_is_left_alone() -> None:
    for purpose in ("delete", "restore"):
        assert problems(run=PARENT._replace(gate=GateState.HELD, purpose=purpose)) == []
