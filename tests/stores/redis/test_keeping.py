"""Ended runs are removed after a while, and nothing of them is left."""

from stepwell.base.clock import SECOND
from stepwell.core.model import Append, DeleteGraph, Dismiss, Refused
from stepwell.core.store import reader
from stepwell.stores.redis.store import RedisStore
from tests.conformance.ops import (
    WORKER,
    claim,
    claim_first,
    completed,
    enlist,
    graph,
    hand_over,
    serve,
    start,
    sweep,
    wake,
    work,
)
from tests.servers.redis_server import RedisServer

DAY = 86_400 * SECOND


def test_old_runs_are_removed_by_sweeps_and_leave_nothing(server: RedisServer, url: str) -> None:
    shift = 0
    store = RedisStore(f"{url}&keep_days=7", offset=lambda: shift)
    keys = lambda: _keys(server, url)  # noqa: E731
    of = serve(store, graph(a="", b="a", c="a", d="b c"), "old", seconds=100 * 86_400, idempotency_key="k")
    (a,) = claim(store, runs=("old",))
    store.commit([Append(a.attempt, 0, "log", b"1"), completed(a, b"x" * 20_000, lines=(("effect", b"{}"),))])
    work(store, runs=("old",))
    start(store, of, "unfinished")
    shift = 6 * DAY
    start(store, of, "young")
    work(store, runs=("young",))
    sweep(store)
    assert {row.id for row in reader.all_runs(store)} == {"old", "unfinished", "young"}
    shift = 8 * DAY
    for _ in range(3):
        sweep(store)
    assert {row.id for row in reader.all_runs(store)} == {"unfinished", "young"}
    assert not [key for key in keys() if key.startswith("run:") and key.endswith(":1")]
    shift = 400 * DAY
    enlist(store)
    assert work(store, runs=("unfinished",)) == 4
    shift = 500 * DAY
    for _ in range(5):
        sweep(store)
    assert not any(isinstance(receipt, Refused) for receipt in store.commit([DeleteGraph(of.digest), Dismiss(WORKER)]))
    left = set(keys())
    assert left <= {"marker", "lane_texts"}, left
    store.close()


def test_a_child_run_is_kept_until_its_end_is_handed_on_and_leaves_nothing(server: RedisServer, url: str) -> None:
    shift = 0
    store = RedisStore(f"{url}&keep_days=7", offset=lambda: shift)
    hand_over(store, claim_first(store, graph(a=""), seconds=100 * 86_400))
    work(store, runs=("child-1",))
    shift = 8 * DAY
    sweep(store)
    assert {row.id for row in reader.all_runs(store)} == {"run-1", "child-1"}
    wake(store, 0, ended="child-1")
    sweep(store)
    assert {row.id for row in reader.all_runs(store)} == {"run-1"}
    assert not [key for key in _keys(server, url) if key.startswith("runs:parent:") or key.endswith(":2")]
    assert work(store) == 1
    store.close()


def test_all_are_kept_if_that_is_asked_for(server: RedisServer, url: str) -> None:
    shift = 0
    store = RedisStore(f"{url}&keep_days=forever", offset=lambda: shift)
    serve(store, graph(a=""))
    work(store)
    shift = 1_000 * DAY
    sweep(store)
    assert reader.get_run(store, "run-1") is not None
    store.close()


def _keys(server: RedisServer, url: str) -> list[str]:
    prefix = "{" + url.partition("namespace=")[2] + "}:"
    with server.client() as client:
        return [key.decode(errors="replace")[len(prefix) :] for key in client.scan_iter(match=f"{prefix}*", count=1000)]
