"""Lists of runs: what is asked for is found in the smallest set that holds it, however many other runs there are."""

import random
from contextlib import closing

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import RunId
from stepwell.core.model import Append, Create, Delete, ListLines, ListRuns, NodeStatus, RunStatus
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from stepwell.stores.redis.library import SCANNED
from stepwell.stores.redis.store import RedisStore
from tests.conformance.ops import RUN, add_graph, claim_roots, create, end_run, enlist, graph, serve, work
from tests.servers.redis_server import RedisServer

ONE, OTHER = graph(a=""), graph(b="")
ENDED = (RunStatus.COMPLETED, RunStatus.FAILED)


def test_a_list_of_runs_takes_as_long_as_what_it_returns(server: RedisServer, url: str) -> None:
    store = RedisStore(url)
    enlist(store)
    store.commit([*add_graph(ONE), *add_graph(OTHER, workflow="rare")])
    many = [create(ONE, f"run-{number:04}") for number in range(1_500)]
    special = create(OTHER, "special-1", workflow="rare", tags=(("customer", "7"), ("empty", "")))
    for batch in (many[:500], [special], many[500:1_000], many[1_000:]):
        store.commit(batch)
    assert work(store, runs=("special-1",), failing=("b",)) == 1
    end_run(store, "special-1", RunStatus.FAILED)
    created_at = reader.require_run(store, RunId("special-1")).created_at
    queries = (
        ListRuns(statuses=ENDED),
        ListRuns(digest=OTHER.digest),
        ListRuns(limit=1, until=created_at + 1),
        ListRuns(workflow="rare", statuses=(RunStatus.PENDING, *ENDED)),
        ListRuns(tags=(("empty", ""),)),
        ListRuns(tags=(("customer", "7"),), since=0),
        ListRuns(prefix="special-"),
        ListRuns(ended_since=0),
        ListRuns(order="ended"),
        ListRuns(order="duration", workflow="rare"),
        ListRuns(error="ValueError"),
    )
    with server.client() as client:
        for query in queries:
            before = client.info("commandstats")["cmdstat_hmget"]["calls"]
            assert [row.id for row in reader.list_runs(store, query).runs] == ["special-1"], query
            assert client.info("commandstats")["cmdstat_hmget"]["calls"] - before < 20, query
    store.close()


def test_lists_are_those_of_the_memory_store_whatever_is_asked_for(url: str) -> None:
    chance, clock = random.Random(11), ManualClock()
    memory, store = MemoryStore(clock), RedisStore(url, clock=clock)
    began = clock.now()
    runs = [f"{chance.choice(('a', 'b', 'ab'))}-{number}" for number in range(250)]
    ops: list[Create] = [
        create(
            ONE,
            run,
            workflow=chance.choice(("orders", "bills")),
            tags=tuple((name, chance.choice(("x", "y", ""))) for name in ("p", "q") if chance.random() < 0.4),
        )
        for run in runs
    ]
    for each in (memory, store):
        enlist(each, seconds=10_000)
        each.commit(add_graph(ONE))
    for first in range(0, len(ops), 10):
        clock.advance(1)
        done, gone = chance.sample(runs[: first + 10], 4), chance.choice(runs[: first + 10])
        for each in (memory, store):
            each.commit(ops[first : first + 10])
            work(each, runs=tuple(done), failing=("a",) if first % 3 else ())
            each.commit([Delete(RunId(gone))])

    def some_time() -> int | None:
        return began + chance.randrange(30) * SECOND if chance.random() < 0.3 else None

    for _ in range(150):
        query = ListRuns(
            limit=chance.choice((1, 7, 300)),
            workflow=chance.choice((None, None, "orders", "none")),
            statuses=tuple(chance.sample(sorted(RunStatus), chance.choice((0, 0, 1, 3)))),
            prefix=chance.choice((None, None, "a", "ab-1", "")),
            tags=(("p", chance.choice(("x", ""))),) if chance.random() < 0.3 else (),
            since=some_time(),
            until=some_time(),
            ended_since=some_time(),
            ended_before=some_time(),
            error=chance.choice((None, None, None, "ValueError", "none")),
            order=chance.choice(("created", "created", "ended", "duration")),
        )
        found, expected = reader.list_runs(store, query), reader.list_runs(memory, query)
        for _ in range(20):
            assert [row.id for row in found.runs] == [row.id for row in expected.runs], query
            assert (found.cursor is None) == (expected.cursor is None), query
            if found.cursor is None:
                break
            found = reader.list_runs(store, query._replace(before=found.cursor))
            expected = reader.list_runs(memory, query._replace(before=expected.cursor))
    store.close()


def test_a_page_of_ended_runs_may_be_empty_and_the_next_one_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell.stores.redis.store.SEARCHING_CALLS", 1)
    with closing(RedisStore(url)) as store:
        enlist(store)
        store.commit(add_graph(ONE))
        runs = [f"run-{number:04}" for number in range(1_200)]
        for first in range(0, len(runs), 400):
            store.commit([create(ONE, run) for run in runs[first : first + 400]])
            work(store, runs=runs[first : first + 400])
        query = ListRuns(2, order="ended", prefix=runs[0])
        first_page = reader.list_runs(store, query)
        assert first_page.runs == ()
        assert first_page.cursor is not None
        last_page = reader.list_runs(store, query._replace(before=first_page.cursor))
        assert ([row.id for row in last_page.runs], last_page.cursor) == ([runs[0]], None)


def test_a_span_of_time_is_found_although_the_clock_was_set_back(url: str) -> None:
    ahead = [0]
    store = RedisStore(url, offset=lambda: ahead[0])
    store.commit(add_graph(ONE))
    began = store.now()
    for run, offset in (("first", 0), ("later", 3_600 * SECOND), ("back", 60 * SECOND), ("last", 7_200 * SECOND)):
        ahead[0] = offset
        store.commit([create(ONE, run)])

    def found(**asked: int) -> list[str]:
        return [row.id for row in reader.list_runs(store, ListRuns(**asked)).runs]  # type: ignore[arg-type]

    assert found(until=began + 1_800 * SECOND) == ["back", "first"]
    assert found(since=began + 30 * SECOND) == ["last", "back", "later"]
    assert found(since=began + 30 * SECOND, until=began + 1_800 * SECOND) == ["back"]
    store.close()


def test_nodes_that_are_chosen_among_more_than_one_answer_holds_are_all_found(url: str) -> None:
    with closing(RedisStore(url)) as store:
        serve(store, graph(**{f"n{number}": "" if number < 10_000 else "n0" for number in range(10_002)}))
        assert [row.index for row in reader.all_nodes(store, RUN, NodeStatus.PENDING)] == [10_000, 10_001]


def test_the_last_of_more_lines_than_one_call_looks_at_are_read_from_the_end(url: str) -> None:
    store = RedisStore(url)
    (grant,) = claim_roots(store, graph(a=""))
    for first in range(0, SCANNED + 500, 500):
        store.commit([Append(grant.attempt, number, "log", b"%d" % number) for number in range(first, first + 500)])
    (last,) = store.read([ListLines(RUN, limit=3, newest_first=True)])
    assert [row.data for row in last] == [b"%d" % number for number in range(SCANNED + 499, SCANNED + 496, -1)]
    whole = list(reader.rows(store, ListLines(RUN)))
    assert len(whole) == SCANNED + 500
    assert list(reader.rows(store, ListLines(RUN, newest_first=True))) == whole[::-1]
    store.close()
