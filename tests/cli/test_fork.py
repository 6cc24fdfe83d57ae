"""`fork` and `diff`: a run begun anew from where another was, and both side by side."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shop


@pytest.fixture
def ordered(shop: Shop) -> Shop:
    """A shop with an ended run `order-7`."""
    shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "order-7")
    return shop


def test_a_fork_does_what_comes_from_the_node_on(ordered: Shop) -> None:
    ended = ordered("fork", "order-7", "--at", "ship", "-i", "express=yes", "--run-id", "f")
    assert ended.json["shipped"]["express"] is False  # validate, which says so, is shared
    assert "forked from order-7 at 6: 1 of 2 nodes shared\n" in ended.err
    assert ordered.ledger() == ["validate", "ship", "ship"]
    shown = ordered("show", "f", "--json").json
    assert shown["origin"] == {"run": "order-7", "seq": 6, "node": "ship"}
    assert shown["input"]["express"] is True
    assert "forked    from order-7 at 6\n" in ordered("show", "f").out
    assert ordered("show", "order-7", "--json").json["forks"] == ["f"]
    assert "forks     f\n" in ordered("show", "order-7").out
    assert [run["origin"] and run["origin"]["run"] for run in ordered("ls", "--json").json] == ["order-7", None]


def test_a_fork_at_a_point_of_the_history_is_left_to_others(ordered: Shop) -> None:
    ended = ordered("fork", "order-7", "--at", "1", "--run-id", "f", "--no-wait")
    assert "run f is PENDING: 2 nodes to run, when somebody works on it\n  stepwell resume f\n" in ended.out
    assert ordered.ledger() == ["validate", "ship"]
    ordered("resume", "f")
    assert ordered.ledger() == ["validate", "ship", "validate", "ship"]
    assert "every invariant holds" in ordered("audit", "f").out


def test_who_only_records_a_fork_needs_no_code_of_it(ordered: Shop) -> None:
    """Unless the input changes: then the class says what it may be."""
    (ordered.folder / "shop.py").unlink()
    assert "is PENDING: " in ordered("fork", "order-7", "--at", "1", "--no-wait").out
    ordered("fork", "order-7", "--at", "1", "--no-wait", "--input", "express=true", code=2)


def test_a_failed_run_goes_on_with_other_input(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "bad", code=1)
    assert shop("fork", "bad", "-i", "order_id=1").json["shipped"]["order_id"] == 1


def test_what_cannot_be_forked_is_told(ordered: Shop) -> None:
    assert "has no node 'boat'; " in ordered("fork", "order-7", "--at", "boat", code=2).err.replace(":", ";")
    assert "has no checkpoint 99; there are 1 to 6" in ordered("fork", "order-7", "--at", "99", code=2).err
    assert "order_id: expected int" in ordered("fork", "order-7", "-i", "order_id=x", code=2).err
    assert "there is no such input" in ordered("fork", "order-7", "-i", "nothing=1", code=2).err
    assert "expected NAME=VALUE" in ordered("fork", "order-7", "-i", "order_id", code=2).err
    assert "is no fork" in ordered("fork", "order-7", "--run-id", "order-7", code=6).err
    ordered("fork", "nobody", code=3)
    assert len(ordered("ls", "--json").json) == 1
    ordered("run", "shop:fan", "-i", "width=2", "--run-id", "fan")
    assert "takes no input" in ordered("fork", "fan", "-i", "width=3", code=2).err


def test_runs_side_by_side(ordered: Shop) -> None:
    ordered("fork", "order-7", "--run-id", "same")
    ordered("run", "shop:Order", "-i", "order_id=9", "--run-id", "order-9")
    assert "the same outputs; 0 nodes with a difference, 2 without" in ordered("diff", "order-7", "same").out
    ended = ordered("diff", "order-7", "order-9", code=1)
    assert "input:\n  $.order_id: 7 / 9\n" in ended.out
    assert "output of ship:\n  $.shipped.order_id: 7 / 9\n" in ended.out
    assert "2 outputs differ; 2 nodes with a difference, 0 without" in ended.out
    record = ordered("diff", "order-7", "order-9", "--json", code=1).json
    assert record["same_outputs"] is False
    assert [(node["id"], node["differs"]) for node in record["nodes"]] == [
        ("validate", ["output"]),
        ("ship", ["output"]),
    ]
    assert record["nodes"][1]["output"] == [{"path": "$.shipped.order_id", "first": "7", "second": "9"}]
    ordered("diff", "order-7", "nobody", code=3)


COUNTED = """
from typing import Annotated
from stepwell import Delta, Workflow, step
from stepwell.reducers import add

class Counted(Workflow):
    amount: int

    class State:
        total: Annotated[int, add]

    @step
    def count(self) -> Delta:
        return Delta(7, total=self.amount)
"""


def test_a_difference_in_the_state_is_told_as_such(shop: Shop) -> None:
    shop.write("counted.py", COUNTED)
    for amount in (1, 2):
        shop("run", "counted:Counted", "-i", f"amount={amount}", "--run-id", f"run-{amount}")
    ended = shop("diff", "run-1", "run-2", code=1)
    assert "delta of count:\n  $.total: 1 / 2\n" in ended.out
    assert "the same outputs, 1 delta differs; 1 node with a difference, 0 without" in ended.out
    record = shop("diff", "run-1", "run-2", "--json", code=1).json
    assert (record["same_outputs"], record["same_deltas"]) == (True, False)
    assert record["nodes"][0]["differs"] == ["delta"]


def test_of_many_differences_some_are_shown(shop: Shop) -> None:
    shop("run", "shop:fan", "-i", "width=60", "--run-id", "wide")
    shop("run", "shop:fan", "-i", "width=2", "--run-id", "narrow")
    ended = shop("diff", "wide", "narrow", code=1)
    assert "--all and --json show more than 40" in ended.out
    assert len(ended.out.splitlines()) < 200
    assert "more than" not in shop("diff", "wide", "narrow", "--all", code=1).out
