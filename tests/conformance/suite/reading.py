"""What can be read: all from one moment, page by page, and nothing of what is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import Digest, RunId, WorkerId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from stepwell.errors import RunNotFound
from tests.conformance.ops import *


def listed(store: Store, **options: Any) -> list[str]:
    """The ids of the runs that a query finds."""
    return [run.id for run in reader.list_runs(store, ListRuns(**options)).runs]


def test_runs_are_found_by_when_they_ended(store: Store, clock: ManualClock) -> None:
    worked(store, graph(a=""), "first")
    clock.advance(10 * SECOND)
    moment = store.now()
    worked(store, graph(a=""), "second")
    assert listed(store, ended_since=moment) == ["second"]
    assert listed(store, ended_since=0) == ["second", "first"]
    assert listed(store, ended_since=moment + 3_600 * SECOND) == []
    assert listed(store, ended_since=0, ended_before=moment) == ["first"]
    assert listed(store, ended_since=0, statuses=(RunStatus.RUNNING,)) == []


def test_an_empty_store_answers_every_question(store: Store) -> None:
    assert store.read([]) == []
    assert store.read(
        [
            GetRun(RUN),
            ListRuns(),
            ListRuns(text="x"),
            CountRuns(ListRuns(), "workflow"),
            ListNodes(RUN),
            ListAttempts(RUN),
            GetNodeColumns(RUN),
            GetAttemptColumns(RUN),
            GetOutputs(RUN),
            GetGraph(Digest("0" * 64)),
            ListJournal(RUN),
            ListLines(RUN),
            ListMarks(RUN),
            ListStops(WorkerId("nobody")),
            ListWorkers(),
            CountNodes(RUN),
            ListReady((LANE,), (RUN,)),
            ListUnfinished(),
            ListUnusedGraphs(),
        ]
    ) == [
        None,
        RunPage((), None),
        RunPage((), None),
        CountedRuns(),
        (),
        (),
        NodeColumns(),
        AttemptColumns(),
        (),
        None,
        (),
        (),
        (),
        (),
        (),
        {},
        (),
        (),
        (),
    ]


def test_runs_are_found_by_how_their_ids_begin(store: Store) -> None:
    start(store, graph(a=""), "order-1", "order-2", "Order-3", "order_4", "order-\N{SNOWMAN}", "orde", "order-")
    assert listed(store, prefix="order-") == ["order-", "order-\N{SNOWMAN}", "order-2", "order-1"]
    assert listed(store, prefix="order-\N{SNOWMAN}") == ["order-\N{SNOWMAN}"]
    assert listed(store, prefix="orde%") == listed(store, prefix="order-11") == []
    assert len(listed(store, prefix="")) == 7
    first = reader.list_runs(store, ListRuns(2, prefix="order-"))
    assert listed(store, prefix="order-", before=first.cursor) == ["order-2", "order-1"]
    assert listed(store, prefix="order-", statuses=(RunStatus.COMPLETED,)) == []


def test_runs_are_listed_newest_first_page_by_page(store: Store) -> None:
    start(store, graph(a=""), *(f"run-{i}" for i in range(5)))
    seen: list[str] = []
    before: int | None = None
    for expected in (2, 2, 1):
        page = reader.list_runs(store, ListRuns(limit=2, before=before))
        assert len(page.runs) == expected
        seen += [run.id for run in page.runs]
        before = page.cursor
    assert before is None
    assert seen == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert reader.list_runs(store, ListRuns(limit=5)).cursor is None


def test_a_page_stays_where_it_was_when_runs_come_and_go(store: Store) -> None:
    of = start(store, graph(a=""), *(f"run-{i}" for i in range(4)))
    first = reader.list_runs(store, ListRuns(limit=2))
    start(store, of, "newest")
    second = reader.list_runs(store, ListRuns(limit=2, before=first.cursor))
    assert [run.id for run in first.runs + second.runs] == ["run-3", "run-2", "run-1", "run-0"]


def test_runs_are_listed_by_workflow_status_and_end(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(a=""), "done early", seconds=600)
    start(store, of, "done late", workflow="returns")
    start(store, of, "not done")
    work(store, runs=("done early",))
    clock.advance(10)
    work(store, runs=("done late",))
    assert listed(store, workflow="returns") == ["done late"]
    assert listed(store, workflow="nothing") == []
    assert listed(store, statuses=(RunStatus.COMPLETED,)) == ["done late", "done early"]
    assert listed(store, statuses=(RunStatus.PENDING, RunStatus.FAILED)) == ["not done"]
    late = reader.require_run(store, "done late").ended_at or 0
    assert listed(store, ended_before=late) == ["done early"]
    assert listed(store, ended_before=late + 1) == ["done late", "done early"]
    assert listed(store, workflow="orders", statuses=(RunStatus.COMPLETED,), ended_before=late + 1) == ["done early"]
    start(store, graph(a="", b="a"), "another graph")
    assert listed(store, digest=of.digest) == ["not done", "done late", "done early"]
    assert listed(store, digest=of.digest, statuses=(RunStatus.PENDING, RunStatus.RUNNING)) == ["not done"]
    assert listed(store, digest=of.digest, workflow="returns", statuses=(RunStatus.PENDING,)) == []
    assert listed(store, digest=of.digest, statuses=(RunStatus.PENDING, RunStatus.COMPLETED), limit=2) == [
        "not done",
        "done late",
    ]
    assert listed(store, digest=Digest("0" * 64)) == []


def test_ended_runs_are_listed_in_the_order_in_which_they_ended(store: Store, clock: ManualClock) -> None:
    of = graph(a="")
    for name, workflow in (("third", "orders"), ("second", "returns"), ("first", "orders"), ("never", "orders")):
        start(store, of, name, workflow=workflow)
    enlist(store)
    for name in ("first", "second", "third"):
        clock.advance(1)
        complete_next(store, runs=(name,))
    began, second = clock.now() - 10_000_000, reader.require_run(store, "second").ended_at or 0

    def found(since: int, workflow: str | None = None, *statuses: RunStatus, limit: int = 1_000) -> list[str]:
        return [row.id for row in reader.rows(store, ListEnded(since, workflow, statuses, limit=limit))]

    assert found(began) == ["first", "second", "third"]
    assert found(began, limit=1) == ["first", "second", "third"]
    assert found(began, limit=2) == ["first", "second", "third"]
    assert found(second) == ["second", "third"]
    assert found(second + 1) == ["third"]
    assert found(began, "orders") == ["first", "third"]
    assert found(began, "orders", limit=1) == ["first", "third"]
    assert found(began, "nobody") == []
    assert found(began, None, RunStatus.COMPLETED) == ["first", "second", "third"]
    assert found(began, None, RunStatus.FAILED, RunStatus.CANCELLED) == []
    (page,) = store.read([ListEnded(began, limit=2)])
    assert page[0] == reader.require_run(store, "first")
    store.commit([Delete(RunId("second"))])
    assert found(began) == ["first", "third"]


def test_nodes_are_listed_in_order_page_by_page(store: Store) -> None:
    of = serve(store, fan(9))
    store.commit([completed(grant) for grant in claim(store)])
    whole = tuple(reader.all_nodes(store, RUN))
    assert [row.id for row in whole] == list(of.order)
    assert [row.index for row in whole] == list(range(11))
    pages = store.read([ListNodes(RUN, limit=4), ListNodes(RUN, 3, 4), ListNodes(RUN, 7, 4), ListNodes(RUN, 10)])
    assert pages == [whole[:4], whole[4:8], whole[8:], ()]
    ready = reader.all_nodes(store, RUN, NodeStatus.READY)
    assert [row.index for row in ready] == list(range(1, 10))
    both = reader.all_nodes(store, RUN, NodeStatus.COMPLETED, NodeStatus.PENDING)
    assert [row.index for row in both] == [0, 10]
    assert store.read([ListNodes(RUN, 4, 2, (NodeStatus.READY,))])[0] == whole[5:7]


def test_attempts_are_listed_by_node_and_number(store: Store, clock: ManualClock) -> None:
    serve(store, patient("a", "b", "c"), seconds=600)
    for _ in range(3):
        store.commit([retried(grant, 1) for grant in reversed(claim(store))])
        sweep_after(store, clock, 1)
    whole = tuple(reader.list_attempts(store, RUN))
    assert [(row.index, row.number) for row in whole] == [(index, n) for index in range(3) for n in (1, 2, 3)]
    assert tuple(reader.list_attempts(store, RUN, 1)) == whole[3:6]
    assert reader.list_attempts(store, RUN, 7) == []
    pages = store.read([ListAttempts(RUN, limit=4), ListAttempts(RUN, None, (1, 1), 4), ListAttempts(RUN, 1, (1, 2))])
    assert pages == [whole[:4], whole[4:8], whole[5:6]]


def test_outputs_of_some_nodes_are_read(store: Store) -> None:
    grants = claim_roots(store, graph(a="", b="", c=""))
    store.commit([completed(grant, b"%d" % grant.index) for grant in grants[:2]])
    assert reader.get_outputs(store, RUN) == {0: b"0", 1: b"1"}
    assert reader.get_outputs(store, RUN, (1, 2, 99)) == {1: b"1"}
    assert reader.get_outputs(store, RUN, ()) == {}


def test_columns_say_what_rows_say(store: Store, clock: ManualClock) -> None:
    """Also where the pages begin and end, and at which entry of the journal they were read."""
    serve(store, graph(a="", b="", c="a", d="c", e="b"), seconds=600)
    one, other = claim(store, limit=2)
    clock.advance(1)
    store.commit([retried(one, 0), completed(other)])
    clock.advance(1)
    claim(store, limit=1)
    row, nodes, attempts = store.read([GetRun(RUN), ListNodes(RUN), ListAttempts(RUN)])
    columns, times = store.read([GetNodeColumns(RUN), GetAttemptColumns(RUN)])
    assert columns.seq == times.seq == row.seq
    assert [*zip(*columns[1:5], strict=True)] == [(node.index, node.id, node.status, node.reason) for node in nodes]
    assert [*zip(*times[1:6], strict=True)] == [(each[1], each[2], each[3], each[5], each[6]) for each in attempts]
    assert len(attempts) == 3
    for size in (1, 2, 3, 5, 10_000):
        pages: tuple[Any, ...] = reader.get_columns(store, RUN, size)
        assert pages[0] == row
        for whole, part in ((columns, pages[1]), (times, pages[2])):
            assert (part.seq, part.cursor) == (row.seq, None)
            assert [*map(list, part[1:-1])] == [*map(list, whole[1:-1])], "the pages make the whole"


def test_columns_of_some_attempts_say_who_ran_them_and_what_they_raised(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b="", c=""), seconds=600)
    first, second, third = claim(store)
    long = b'{"message":"%s","traceback":"","type":"KeyError"}' % (b"x" * 20_000)
    store.commit([retried(first, 0)._replace(error=long), retried(second, 9, b"anything"), completed(third)])
    sweep_after(store, clock, 1)
    claim(store)
    (columns,) = store.read([GetAttemptColumns(RUN, details=True)])
    assert [*zip(columns.indexes, columns.numbers, columns.workers, columns.errors, strict=True)] == [
        (0, 1, WORKER, "KeyError"),
        (0, 2, WORKER, None),
        (1, 1, WORKER, None),  # what it recorded is no record of an exception
        (2, 1, WORKER, None),
    ]
    for size in (1, 2, 10_000):
        query, numbers = GetAttemptColumns(RUN, limit=size, indexes=(2, 0, 99)), list[tuple[int, int]]()
        while True:
            (page,) = store.read([query])
            assert (page.workers, page.errors) == ((), ())
            numbers += zip(page.indexes, page.numbers, strict=True)
            if page.cursor is None:
                break
            query = query._replace(after=page.cursor)
        assert numbers == [(0, 1), (0, 2), (2, 1)]
    assert store.read([GetAttemptColumns(RUN, indexes=())])[0].indexes == ()


def test_runs_are_searched_for_a_text(store: Store) -> None:
    of = graph(a="")
    start(store, of, "order-1", workflow="Shop", tags=(("customer", "Ann%"), ("kind", "ORDER")))
    start(store, of, "Order-2", workflow="returns", tags=(("customer", "anne"),))
    start(store, of, "x_3", workflow="Käse", tags=(("shop", "r"),))
    assert listed(store, text="order") == ["Order-2", "order-1"]
    assert listed(store, text="SHOP") == ["x_3", "order-1"]
    assert listed(store, text="customer=ann") == ["Order-2", "order-1"]
    assert listed(store, text="nn%") == ["order-1"]
    assert listed(store, text="_") == ["x_3"]
    assert listed(store, text="käse") == ["x_3"]
    assert listed(store, text="KÄSE") == [], "only of ASCII letters the case is ignored, alike in all stores"
    assert listed(store, text="order", workflow="returns") == ["Order-2"]
    assert listed(store, text="order", statuses=(RunStatus.COMPLETED,)) == listed(store, text="nothing") == []
    first = reader.list_runs(store, ListRuns(1, text="order"))
    assert listed(store, text="order", before=first.cursor) == ["order-1"]


def test_runs_are_counted(store: Store, clock: ManualClock) -> None:
    def counts(by: Any, limit: int = 100, **options: Any) -> tuple[dict[str, int], bool]:
        (found,) = store.read([CountRuns(ListRuns(**options), by, limit)])
        return dict(found.counts), found.exact

    assert counts("status") == ({}, True)
    of = serve(store, graph(a=""), "done")
    work(store, runs=("done",))
    hour = clock.now() // (3_600 * SECOND) * 3_600 * SECOND
    clock.advance(3_600)
    start(store, of, "one", tags=(("kind", "test"),))
    start(store, of, "two", workflow="returns")
    assert counts("status") == ({"COMPLETED": 1, "PENDING": 2}, True)
    assert counts("status", statuses=(RunStatus.PENDING,)) == ({"PENDING": 2}, True)
    assert counts("status", tags=(("kind", "test"),)) == ({"PENDING": 1}, True)
    assert counts("status", before=(0, 1)) == ({"COMPLETED": 1, "PENDING": 2}, True)
    assert counts("workflow") == ({"orders": 2, "returns": 1}, True)
    assert counts("workflow", text="RETURN", statuses=(RunStatus.PENDING, RunStatus.FAILED)) == ({"returns": 1}, True)
    assert counts("hour") == ({str(hour): 1, str(hour + 3_600 * SECOND): 2}, True)
    assert sum(counts("day")[0].values()) == 3
    assert counts("workflow", limit=3)[1]
    some, exact = counts("workflow", limit=2, statuses=())
    assert not exact or sum(some.values()) == 3, (
        "a store may count more than it is asked to, and says whether these are all"
    )


def test_nodes_are_counted_by_status(store: Store) -> None:
    serve(store, fan(4))
    store.commit([completed(grant) for grant in claim(store)])
    claim(store, limit=1)
    assert reader.count_nodes(store, RUN) == {
        NodeStatus.COMPLETED: 1,
        NodeStatus.RUNNING: 1,
        NodeStatus.READY: 3,
        NodeStatus.PENDING: 1,
    }


def test_runs_with_something_to_claim_are_found(store: Store) -> None:
    of = graph(a="", b="a")
    for run in ("ready", "held", "busy", "done"):
        start(store, of, run, priority=len(run))
    enlist(store)
    work(store, runs=("done",))
    claim(store, runs=("busy",))
    hold(store, "held")
    assert ready_runs(store, "busy", "unknown", "ready", "held", "done", "ready") == ("ready",)
    assert ready_runs(store, "ready", lanes=[Lane("other", "thread")]) == ready_runs(store) == ()


def test_what_unfinished_runs_need_is_listed_once(store: Store) -> None:
    of, other = graph(a=""), graph(a="", b="")
    enlist(store)
    for run, shape, workflow, target in (
        ("one", of, "orders", None),
        ("two", of, "orders", None),
        ("three", other, "orders", "shop:Orders"),
        ("four", of, "returns", "shop:Returns"),
        ("five", of, "done", None),
        ("six", of, "orders", "shop:Orders"),
    ):
        start(store, shape, run, workflow=workflow, target=target)
    work(store, runs=("five",))
    expected = {
        ("orders", None, of.digest),
        ("orders", "shop:Orders", of.digest),
        ("orders", "shop:Orders", other.digest),
        ("returns", "shop:Returns", of.digest),
    }
    found = reader.list_unfinished(store)
    assert list(found) == sorted(expected, key=lambda item: (item[0], item[1] or "", item[2]))
    for limit in (1, 2, 3):
        paged: list[Any] = []
        (page,) = store.read([ListUnfinished(limit=limit)])
        while page:
            paged += page
            (page,) = store.read([ListUnfinished(page[-1], limit)])
        assert paged == list(found)
    for run in ("one", "two", "three", "four", "six"):
        end_run(store, run)
    assert reader.list_unfinished(store) == ()


def test_one_node_is_read_by_its_index(store: Store) -> None:
    start(store, graph(a="", b="a"))
    assert reader.get_node(store, RUN, 1).id == "b"
    with pytest.raises(RunNotFound):
        reader.get_node(store, RUN, 2)


def test_who_waits_hears_of_changes_and_of_nothing_else(store: Store) -> None:
    """Best effort: a hint may mean nothing. But where nothing has happened there should be silence."""

    def heard(seconds: float = 0) -> bool:
        return store.wait_for_hint(None, (RUN,), WORKER, seconds)

    serve(store, graph(a="", b=""))
    changes: list[Callable[[], object]] = [
        lambda: claim(store, limit=1),
        lambda: hold(store),
        lambda: store.commit([Rewrite(RUN, TOKEN, (*map(cancelled, reader.all_nodes(store, RUN)),))]),
        lambda: finish(store, RunStatus.CANCELLED),
        lambda: store.commit([Delete(RUN)]),
    ]
    for change in changes:
        while heard():
            pass
        store.read([ListRuns()])
        assert not heard()
        change()
        store.send_hint(Hint(("default",), (RUN,), (WORKER,)))
        assert heard(5)


def cancelled(row: NodeRow) -> NodeChange:
    return NodeChange(row.index, NodeStatus.READY, 0, NodeStatus.CANCELLED)


def test_the_store_tells_its_own_time(store: Store, clock: ManualClock) -> None:
    before = store.now()
    clock.advance(1.5)
    assert (before, store.now()) == (clock.now() - 1_500_000, clock.now())
    assert store.url
    assert list_stops(store) == ()


def test_runs_are_found_by_what_people_know_of_them(store: Store, clock: ManualClock) -> None:
    of = graph(a="")
    times = {}
    for number in range(6):
        tags = (("customer", str(number % 2)), ("kind", "test")) if number else ()
        start(store, of, f"run-{number}", tags=tags, workflow="orders" if number < 3 else "returns")
        times[number] = reader.require_run(store, f"run-{number}").created_at
        clock.advance(1)

    def found(**asked: Any) -> list[str]:
        runs, query = [], ListRuns(2, **asked)
        while True:
            page = reader.list_runs(store, query)
            runs += [row.id.removeprefix("run-") for row in page.runs]
            if page.cursor is None:
                return runs
            query = query._replace(before=page.cursor)

    assert found() == ["5", "4", "3", "2", "1", "0"]
    assert found(tags=(("customer", "1"),)) == ["5", "3", "1"]
    assert found(tags=(("customer", "1"), ("kind", "test")), workflow="orders") == ["1"]
    assert found(tags=(("customer", "7"),)) == found(tags=(("kind", "1"),)) == []
    assert found(since=times[4]) == ["5", "4"]
    assert found(until=times[2]) == ["1", "0"]
    assert found(since=times[1], until=times[3], tags=(("customer", "0"),)) == ["2"]
    assert found(workflow="returns", statuses=(RunStatus.PENDING,), prefix="run-4") == ["4"]
    assert reader.require_run(store, "run-1").tags == (("customer", "1"), ("kind", "test"))
    assert reader.require_run(store, "run-0").tags == ()
    end_run(store, "run-1")
    store.commit([Delete(RunId("run-1"))])
    assert found(tags=(("customer", "1"),)) == ["5", "3"]
    start(store, of, "run-1")
    assert found(tags=(("customer", "1"),)) == ["5", "3"], "its tags went with it"
