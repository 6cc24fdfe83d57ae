"""A running attempt appends lines: in order, once each, and never after it has ended."""

from __future__ import annotations

from ...clock import ManualClock
from ...ids import AttemptId
from ...model import Append, Appended, LineRow, ListLines, Refusal, Refused
from ...store import Store, reader
from ..ops import RUN, claim, completed, enlist, graph, start, sweep, twice


def line(attempt: AttemptId, index: int, data: bytes = b'"hello"', kind: str = "log") -> Append:
    return Append(attempt, index, kind, data)


def test_lines_are_kept_in_the_order_of_attempts_and_numbers(store: Store, clock: ManualClock) -> None:
    of = start(store, graph(**{f"n{i}": "" for i in range(12)}))
    enlist(store)
    grants = claim(store, claim="c1")
    assert len(grants) == len(of)
    ops = [line(grant.attempt, number) for number in (1, 0) for grant in reversed(grants)]
    assert store.commit(ops) == [Appended()] * 24
    found = reader.list_lines(store, RUN)
    assert [(row.attempt, row.index) for row in found] == [(g.attempt, number) for g in grants for number in (0, 1)]
    assert found[0] == LineRow(grants[0].attempt, 0, clock.now(), "log", b'"hello"')
    assert [row.attempt for row in reader.list_lines(store, RUN, grants[11].index)] == [grants[11].attempt] * 2


def test_a_line_is_appended_once(store: Store) -> None:
    start(store, graph(a=""))
    enlist(store)
    (grant,) = claim(store)
    first, second = twice(store, [line(grant.attempt, 0, b"1"), line(grant.attempt, 0, b"2", "progress")])
    assert first == second == [Appended(), Appended()]
    (row,) = reader.list_lines(store, RUN)
    assert (row.data, row.kind) == (b"1", "log")


def test_a_late_worker_cannot_append(store: Store, clock: ManualClock) -> None:
    start(store, graph(a="", b=""))
    enlist(store, seconds=10)
    done, lost = claim(store)
    store.commit([line(lost.attempt, 0), line(done.attempt, 0), completed(done)])
    clock.advance(10)
    sweep(store)
    for attempt in (done.attempt, lost.attempt, AttemptId("unknown.0"), AttemptId("rubbish")):
        assert store.commit([line(attempt, 1)]) == [Refused(Refusal.FENCED)]
    assert len(reader.list_lines(store, RUN)) == 2


def test_lines_and_refusals_may_share_a_batch(store: Store) -> None:
    start(store, graph(a=""))
    enlist(store)
    (grant,) = claim(store)
    lines = [line(grant.attempt, 0), line(AttemptId("unknown.0"), 0), line(grant.attempt, 1)]
    receipts = store.commit([*lines, completed(grant), line(grant.attempt, 2)])
    assert receipts[:3] == [Appended(), Refused(Refusal.FENCED), Appended()]
    assert receipts[4] == Refused(Refusal.FENCED)
    assert [row.index for row in reader.list_lines(store, RUN)] == [0, 1]


def test_lines_are_read_page_by_page(store: Store) -> None:
    start(store, graph(a="", b=""))
    enlist(store)
    grants = claim(store)
    store.commit([line(grant.attempt, number, b"%d" % number) for grant in grants for number in range(13)])
    whole = reader.list_lines(store, RUN)
    assert len(whole) == 26
    pages: list[LineRow] = []
    while True:
        after = (pages[-1].attempt, pages[-1].index) if pages else None
        (page,) = store.read([ListLines(RUN, limit=4, after=after)])
        pages += page
        if len(page) < 4:
            break
    assert tuple(pages) == tuple(whole)
    assert store.read([ListLines(RUN, grants[1].index, 3, (grants[1].attempt, 9))])[0] == whole[-3:]


def test_large_lines_come_back_whole(store: Store) -> None:
    start(store, graph(a=""))
    enlist(store)
    (grant,) = claim(store)
    texts = [b"x" * 20_000, b"", b"y" * 100_000, b"\x00small", b"x" * 20_000]
    twice(store, [line(grant.attempt, number, text) for number, text in enumerate(texts)])
    assert [row.data for row in reader.list_lines(store, RUN)] == texts
