"""Outputs that counted once: from the completion that brought them to whatever took them away."""

from __future__ import annotations

from stepwell.base.ids import AttemptId, WorkerId
from stepwell.core.model import AttemptRow, AttemptStatus, JournalRow
from stepwell.history.replay.recorded import Superseded
from tests.core.kernel.facts import graph

GRAPH = graph(a="", b="a", c="b", beside="")
A, B, C, BESIDE = (GRAPH.index[name] for name in ("a", "b", "c", "beside"))


def attempt(index: int, number: int, output: bytes | None, status: str = "SUPERSEDED") -> AttemptRow:
    name = AttemptId(f"c.{index}.{number}")
    return AttemptRow(name, index, number, AttemptStatus(status), WorkerId("w"), 0, 1, output, None, None)


def entry(seq: int, kind: str, index: int | None, number: int | None = None) -> JournalRow:
    return JournalRow(seq, seq, kind, index, number, None)


def test_it_counts_from_its_completion_until_it_is_asked_for_again() -> None:
    found = Superseded(
        [attempt(A, 1, b"1"), attempt(A, 2, b"2", "COMPLETED")],
        [entry(3, "completed", A, 1), entry(4, "run", None), entry(7, "rewrote", A), entry(9, "completed", A, 2)],
    )
    assert [found.above(GRAPH, B, seq) for seq in (2, 3, 6, 7, 9, 20)] == [(), ((A, b"1"),), ((A, b"1"),), (), (), ()]


def test_it_is_that_of_the_attempt_that_completed_and_each_has_its_time() -> None:
    found = Superseded(
        [attempt(A, 2, b"second"), attempt(A, 4, b"fourth"), attempt(A, 3, None)],
        [
            entry(2, "failed", A, 1),
            entry(3, "woken", A),
            entry(5, "completed", A, 2),
            entry(6, "rewrote", A),
            entry(8, "completed", A, 4),
            entry(10, "woken", A),
            entry(11, "rewrote", A),
        ],
    )
    assert [found.above(GRAPH, C, seq) for seq in (5, 6, 8, 9, 10)] == [
        ((A, b"second"),),
        (),
        ((A, b"fourth"),),
        ((A, b"fourth"),),
        (),
    ]


def test_what_a_fork_shares_is_its_first_attempt() -> None:
    found = Superseded([attempt(A, 1, b"1")], [entry(2, "shared", A), entry(5, "rewrote", A)])
    assert found.above(GRAPH, B, 4) == ((A, b"1"),)


def test_it_is_given_only_to_those_below_in_the_order_of_their_numbers() -> None:
    found = Superseded(
        [attempt(B, 1, b"b"), attempt(A, 1, b"a"), attempt(BESIDE, 1, b"x")],
        [entry(place, "completed", index, 1) for place, index in enumerate((B, A, BESIDE), 1)]
        + [entry(place, "rewrote", index) for place, index in enumerate((A, B, BESIDE), 8)],
    )
    assert found.above(GRAPH, C, 5) == ((A, b"a"), (B, b"b"))
    assert found.above(GRAPH, B, 5) == ((A, b"a"),)
    assert found.above(GRAPH, A, 5) == found.above(GRAPH, BESIDE, 5) == ()


def test_what_completed_and_still_counts_is_not_among_them() -> None:
    found = Superseded([attempt(A, 1, b"1", "COMPLETED")], [entry(1, "completed", A, 1), entry(2, "rewrote", A)])
    assert found.above(GRAPH, B, 1) == ()
