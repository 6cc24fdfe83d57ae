"""Large payloads are kept once, by their content, and as long as a row refers to them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.base.clock import ManualClock
from stepwell.core.model import Append, Delete, Deleted, Refused
from stepwell.core.store import reader
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.ops import RUN, add_graph, claim, completed, create, enlist, failed, graph, start, sweep, work

LARGE = b'"' + b"x" * 16_384 + b'"'
OTHER = b'"' + b"y" * 50_000 + b'"'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "runs.db", clock=clock)
    yield store
    store.close()


def kept(store: SqliteStore) -> dict[bytes, int]:
    """Each payload that is kept apart, with how many runs have it."""
    return dict(Counter(bytes(data) for (data,) in store._reader.execute("SELECT data FROM blob").fetchall()))


def test_a_large_payload_is_kept_once_however_many_rows_of_a_run_have_it(store: SqliteStore) -> None:
    start(store, graph(a="", b="", c="", d=""), input=LARGE)
    enlist(store)
    a, b, c, _ = claim(store)
    store.commit([completed(a, LARGE), completed(b, LARGE, outcome=LARGE)])
    store.commit([completed(c, LARGE[:-1] + b'."')])
    assert kept(store) == {LARGE: 1, LARGE[:-1] + b'."': 1}
    (size,) = store._reader.execute("SELECT max(length(output)) FROM attempt").fetchone()
    assert size < 100


def test_a_small_payload_stays_in_its_row(store: SqliteStore) -> None:
    start(store, graph(a=""), input=b'"' + b"x" * 16_000 + b'"')
    enlist(store)
    work(store)
    assert kept(store) == {}


def test_what_was_refused_or_repeated_keeps_nothing(store: SqliteStore, clock: ManualClock) -> None:
    of = start(store, graph(a="", b=""))
    enlist(store, seconds=10)
    late, other = claim(store)
    clock.advance(10)
    sweep(store)
    assert isinstance(store.commit([completed(late, LARGE)])[0], Refused)
    assert isinstance(store.commit([completed(late, LARGE), completed(other, OTHER)])[0], Refused)
    store.commit([create(of, input=LARGE)])
    store.commit([create(graph(x=""), "unknown graph", input=LARGE)])
    assert kept(store) == {}
    start(store, of, "second", input=LARGE)
    enlist(store)
    grant, *_ = claim(store, runs=("second",))
    for _ in range(3):
        store.commit([create(of, "second", input=LARGE), completed(grant, OTHER)])
    assert kept(store) == {LARGE: 1, OTHER: 1}


def test_a_line_that_is_appended_again_keeps_nothing_more(store: SqliteStore) -> None:
    start(store, graph(a=""))
    enlist(store)
    (grant,) = claim(store)
    for data in (LARGE, LARGE, OTHER):
        store.commit([Append(grant.attempt, 0, "log", data)])
    assert kept(store) == {LARGE: 1}
    store.commit([failed(grant, OTHER), Append(grant.attempt, 1, "log", OTHER)])
    assert kept(store) == {LARGE: 1, OTHER: 1}


def test_deleting_a_run_frees_what_it_kept(store: SqliteStore) -> None:
    of = graph(a="", b="")
    enlist(store)
    store.commit(add_graph(of))
    for run in ("first", "second"):
        store.commit([create(of, run, input=LARGE)])
        a, b = claim(store)
        store.commit([Append(a.attempt, 0, "log", LARGE), completed(a, LARGE), completed(b, run.encode() * 5_000)])
    assert kept(store) == {LARGE: 2, b"first" * 5_000: 1, b"second" * 5_000: 1}
    store.commit([Delete("first", 1)])
    assert kept(store)[LARGE] == 2, "as long as it has nodes"
    while store.commit([Delete("first", 1)]) != [Deleted(True)]:
        pass
    assert kept(store) == {LARGE: 1, b"second" * 5_000: 1}
    assert reader.get_outputs(store, "second")[0] in (LARGE, b"second" * 5_000)
    store.commit([Delete("second")])
    assert kept(store) == {}
    for table in ("run", "node", "attempt", "claim", "journal", "line"):
        assert store._reader.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    assert reader.get_run(store, RUN) is None
