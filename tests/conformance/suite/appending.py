"""A running attempt appends lines: in order, once each, and never after it has ended."""

from __future__ import annotations

from typing import Any

from stepwell.base.clock import ManualClock
from stepwell.base.ids import AttemptId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def line(attempt: AttemptId, index: int, data: bytes = b'"hello"', kind: str = "log") -> Append:
    return Append(attempt, index, kind, data)


def test_lines_are_kept_in_the_order_of_attempts_and_numbers(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(**{f"n{i}": "" for i in range(12)}))
    grants = claim(store, claim="c1")
    assert len(grants) == len(of)
    ops = [line(grant.attempt, number) for number in (1, 0) for grant in reversed(grants)]
    assert store.commit(ops) == [Appended()] * 24
    found = reader.list_lines(store, RUN)
    assert [(row.attempt, row.index) for row in found] == [(g.attempt, number) for g in grants for number in (0, 1)]
    assert found[0] == LineRow(grants[0].attempt, 0, clock.now(), "log", b'"hello"', grants[0].index, 1)
    assert [row.attempt for row in reader.list_lines(store, RUN, grants[11].index)] == [grants[11].attempt] * 2


def test_a_line_is_appended_once(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    first, second = twice(store, [line(grant.attempt, 0, b"1"), line(grant.attempt, 0, b"2", "progress")])
    assert first == second == [Appended(), Appended()]
    (row,) = reader.list_lines(store, RUN)
    assert (row.data, row.kind) == (b"1", "log")


def test_a_late_worker_cannot_append(store: Store, clock: ManualClock) -> None:
    done, lost = claim_roots(store, graph(a="", b=""), seconds=10)
    store.commit([line(lost.attempt, 0), line(done.attempt, 0), completed(done)])
    sweep_after(store, clock, 10)
    for attempt in (done.attempt, lost.attempt, AttemptId("unknown.0"), AttemptId("rubbish")):
        assert store.commit([line(attempt, 1)]) == [Refused(Refusal.FENCED)]
    assert len(reader.list_lines(store, RUN)) == 2


def test_lines_and_refusals_may_share_a_batch(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    lines = [line(grant.attempt, 0), line(AttemptId("unknown.0"), 0), line(grant.attempt, 1)]
    receipts = store.commit([*lines, completed(grant), line(grant.attempt, 2)])
    assert receipts[:3] == [Appended(), Refused(Refusal.FENCED), Appended()]
    assert receipts[4] == Refused(Refusal.FENCED)
    assert [row.index for row in reader.list_lines(store, RUN)] == [0, 1]


def test_lines_are_read_page_by_page(store: Store) -> None:
    grants = claim_roots(store, graph(a="", b=""))
    store.commit([line(grant.attempt, number, b"%d" % number) for grant in grants for number in range(13)])
    whole = reader.list_lines(store, RUN)
    assert len(whole) == 26
    assert tuple(reader.rows(store, ListLines(RUN, limit=4))) == tuple(whole)
    assert store.read([ListLines(RUN, grants[1].index, 3, (grants[1].attempt, 9))])[0] == whole[-3:]


def test_lines_that_come_with_a_settlement_are_the_last_of_their_attempt(store: Store, clock: ManualClock) -> None:
    """Whether it comes alone or with others, and whatever they hold."""
    grants = claim_roots(store, graph(a="", b="", c="", d=""))
    recorded = (
        ("effect", b'{"a":1}\nno JSON 7\n'),
        ("payload", b"x" * 20_000),
        ("checkpoint", b""),
        ("effect", b"\x00"),
    )
    store.commit([line(grants[0].attempt, 3)])
    clock.advance(1)
    small = recorded[:1] + recorded[2:]
    store.commit([completed(grants[0], lines=small)])
    store.commit([completed(grants[1], lines=recorded)])
    twice(store, [completed(grants[2], lines=recorded), completed(grants[3], lines=small)])
    found = reader.list_lines(store, RUN)
    assert found[1] == LineRow(grants[0].attempt, RECORDED, clock.now(), *small[0], grants[0].index, 1)
    assert [(row.kind, row.data) for row in found] == [("log", b'"hello"'), *small, *recorded, *recorded, *small]
    assert [row.index for row in found[1:4]] == [RECORDED, RECORDED + 1, RECORDED + 2]
    for after in range(len(found)):
        (page,) = store.read([ListLines(RUN, limit=2, after=(found[after].attempt, found[after].index))])
        assert page == tuple(found[after + 1 : after + 3])
    (effects,) = store.read([ListLines(RUN, kind="effect", since=found[1].at)])
    assert effects == tuple(row for row in found if row.kind == "effect")
    (of_one,) = store.read([ListLines(RUN, index=grants[2].index, number=1, kind="payload")])
    assert [row.data for row in of_one] == [recorded[1][1]]


def test_a_settlement_that_is_refused_brings_no_lines(store: Store, clock: ManualClock) -> None:
    a, b = claim_roots(store, graph(a="", b=""), seconds=10)
    effect = (("effect", b"1"),)
    store.commit([completed(a, lines=effect)])
    assert store.commit([completed(a, b"another", lines=(("effect", b"2"), ("effect", b"3")))]) == [
        Refused(Refusal.FENCED)
    ]
    sweep_after(store, clock, 10)
    assert store.commit([completed(b, lines=effect)]) == [Refused(Refusal.FENCED)]
    illegal = Settle(a.attempt, AttemptStatus.COMPLETED, NodeStatus.READY, lines=effect)
    assert isinstance(store.commit([illegal])[0], Refused)
    assert [row.data for row in reader.list_lines(store, RUN)] == [b"1"]


def test_large_lines_come_back_whole(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    texts = [b"x" * 20_000, b"", b"y" * 100_000, b"\x00small", b"x" * 20_000]
    twice(store, [line(grant.attempt, number, text) for number, text in enumerate(texts)])
    assert [row.data for row in reader.list_lines(store, RUN)] == texts


def test_lines_are_chosen_by_node_attempt_and_kind(store: Store) -> None:
    a, b = claim_roots(store, graph(a="", b=""))
    store.commit([line(a.attempt, 0), line(a.attempt, 1, kind="effect"), line(b.attempt, 0), retried(a, 0)])
    sweep(store)
    (again,) = claim(store, claim="c2")
    store.commit([line(again.attempt, 0), line(again.attempt, 1)])
    assert [(row.node, row.number, row.index) for row in reader.list_lines(store, RUN, a.index)] == [
        (a.index, 1, 0),
        (a.index, 1, 1),
        (a.index, 2, 0),
        (a.index, 2, 1),
    ]
    assert [row.attempt for row in reader.list_lines(store, RUN, number=2)] == [again.attempt] * 2
    assert [row.attempt for row in reader.list_lines(store, RUN, number=1, kind="log")] == [a.attempt, b.attempt]
    assert [row.index for row in reader.list_lines(store, RUN, a.index, number=1, kind="effect")] == [1]
    assert reader.list_lines(store, RUN, number=3) == reader.list_lines(store, RUN, kind="none") == ()
    assert reader.list_lines(store, "other") == ()


def test_lines_are_followed_by_the_time_they_were_stored(store: Store, clock: ManualClock) -> None:
    """Attempts append side by side: what an early one says late is found, and so is the last line of an ended one."""
    a, b = claim_roots(store, graph(a="", b=""))
    store.commit([line(a.attempt, 0), line(b.attempt, 0)])
    clock.advance(1)
    store.commit([line(b.attempt, 1)])
    clock.advance(1)
    store.commit([line(a.attempt, 1), completed(a)])
    seen, last = sorted({row.at for row in reader.list_lines(store, RUN)})[1:]

    def since(at: int, **options: Any) -> list[tuple[AttemptId, int]]:
        return [(row.attempt, row.index) for row in store.read([ListLines(RUN, since=at, **options)])[0]]

    assert since(seen) == [(a.attempt, 1), (b.attempt, 1)]
    assert since(seen + 1) == since(last) == [(a.attempt, 1)]
    assert since(last + 1) == []
    assert since(seen, limit=1) == [(a.attempt, 1)]
    assert since(seen, index=b.index) == [(b.attempt, 1)]


def test_of_marks_only_the_latest_is_kept(store: Store, clock: ManualClock) -> None:
    a, b = claim_roots(store, graph(a="", b=""))
    first = [line(a.attempt, MARK, b"1", "progress"), line(a.attempt, 0), line(b.attempt, MARK, b"7", "progress")]
    assert twice(store, first) == ([Appended()] * 3, [Appended()] * 3)
    clock.advance(1)
    store.commit([line(a.attempt, MARK, b"2", "progress"), line(a.attempt, MARK, b"x" * 20_000, "progress")])
    assert store.commit([line(a.attempt, MARK, b"3", "progress")]) == [Appended()]
    rows = reader.list_marks(store, RUN)
    assert rows[0] == LineRow(a.attempt, MARK, clock.now(), "progress", b"3", a.index, 1)
    assert [(row.attempt, row.data) for row in rows] == [(a.attempt, b"3"), (b.attempt, b"7")]
    assert store.read([ListMarks(RUN, (b.index, b.index))])[0] == rows[1:]
    assert store.read([ListMarks(RUN, ()), ListMarks(RUN, (99,))]) == [(), ()]
    assert [row.index for row in reader.list_lines(store, RUN)] == [0]
    store.commit([completed(a), completed(b)])
    assert store.commit([line(a.attempt, MARK, b"4", "progress")]) == [Refused(Refusal.FENCED)]
    assert reader.list_marks(store, RUN, (a.index,)) == rows[:1]


def test_lines_are_read_from_the_end(store: Store) -> None:
    """Page by page, and with what comes with settlements."""
    grants = claim_roots(store, graph(a="", b="", c=""))
    store.commit([line(grant.attempt, number, b"%d" % number) for grant in grants for number in range(7)])
    store.commit([line(grants[0].attempt, MARK, b"1", "progress")])
    store.commit([completed(grants[1], lines=(("effect", b"1"), ("log", b"8")))])
    whole = reader.list_lines(store, RUN)[::-1]
    assert len(whole) == 23
    for limit in (1, 4, 23, 100):
        assert tuple(reader.rows(store, ListLines(RUN, limit=limit, newest_first=True))) == whole
    (last,) = store.read([ListLines(RUN, index=grants[1].index, kind="log", limit=3, newest_first=True)])
    assert [row.data for row in last] == [b"8", b"6", b"5"]
    unknown = AttemptId("01JCZZZZZZZZZZZZZZZZZZZZZZ.0"), 3
    for forwards, backwards in [(None, None), (unknown, unknown)]:
        pages = store.read([ListLines(RUN, after=forwards), ListLines(RUN, after=backwards, newest_first=True)])
        assert pages == [whole[::-1], whole]
