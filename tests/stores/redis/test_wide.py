"""Graphs that are wider than one call may add, derive or release, and graphs that come and go within one batch."""

import pytest

from stepwell.base.ids import RunId
from stepwell.core.kernel.healing import arrange
from stepwell.core.model import (
    AddGraph,
    AddNodes,
    DeleteGraph,
    Finish,
    GetGraph,
    GraphAdded,
    GraphSwitched,
    NodeStatus,
    Rewritten,
    RunStatus,
)
from stepwell.core.store import reader
from stepwell.stores.redis import request
from stepwell.stores.redis.fields import Arg
from stepwell.stores.redis.library import DERIVED, SLICE
from stepwell.stores.redis.store import RedisStore
from tests.conformance.audit import audit
from tests.conformance.ops import (
    add_graph,
    claim,
    claim_op,
    completed,
    create,
    enact,
    enlist,
    fan,
    graph,
    hold,
    one,
    serve,
    start,
    sweep,
)
from tests.conformance.suite.arranging import arrange_op
from tests.conformance.suite.gates import rewrite


def finish_all(store: RedisStore) -> int:
    done = 0
    while grants := claim(store):
        store.commit([completed(grant) for grant in grants])
        done += len(grants)
    return done


def test_a_very_wide_node_releases_its_children_in_slices_whoever_asks(url: str) -> None:
    store = RedisStore(url)
    serve(store, fan(2 * SLICE + 300))
    (root,) = claim(store)
    store.commit([completed(root)])
    ready = lambda: reader.count_nodes(store, "run-1").get(NodeStatus.READY, 0)  # noqa: E731
    assert ready() == SLICE
    assert reader.require_run(store, "run-1").releasing
    audit(store)
    enlist(store, "another")
    assert claim(store, "another", limit=0) == ()
    assert ready() == 2 * SLICE
    assert sweep(store).next_due is not None
    assert ready() == 2 * SLICE + 300
    assert not reader.require_run(store, "run-1").releasing
    audit(store)
    assert finish_all(store) == 2 * SLICE + 301
    assert reader.require_run(store, "run-1").status == "COMPLETED"
    audit(store)
    store.close()


def test_what_is_behind_a_closed_gate_is_not_released(url: str) -> None:
    store = RedisStore(url)
    serve(store, fan(SLICE + 10))
    (root,) = claim(store)
    store.commit([completed(root)])
    enact(store, "pause", RunStatus.PAUSED)
    sweep(store)
    assert reader.count_nodes(store, "run-1")[NodeStatus.READY] == SLICE
    audit(store)
    enact(store, "resume", RunStatus.RUNNING)
    assert reader.count_nodes(store, "run-1")[NodeStatus.READY] == SLICE + 10
    audit(store)
    assert finish_all(store) == SLICE + 11
    store.close()


def test_a_wide_graph_runs_in_the_batch_that_brought_it(url: str) -> None:
    store = RedisStore(url)
    enlist(store)
    of = fan(SLICE + 10)
    nodes = store.limits.nodes
    more = [AddNodes(RunId("run-1"), begin) for begin in range(nodes, len(of), nodes)]
    op = claim_op(claim="c")
    root = type("Grant", (), {"attempt": "c.0"})
    store.commit([*add_graph(of), create(of), *more, op, completed(root)])  # type: ignore[arg-type]
    assert finish_all(store) == SLICE + 11
    audit(store)
    store.close()


def test_a_graph_is_stored_deleted_in_part_and_stored_again_in_one_batch(url: str) -> None:
    store = RedisStore(url)
    of = graph(a="", b="a", c="a", d="a b c", e="a d")
    again = add_graph(of)
    store.commit(
        [
            *again,
            DeleteGraph(of.digest, 2),
            *again,
            DeleteGraph(of.digest, 9),
            *again,
            DeleteGraph(of.digest, 1),
            *again,
        ]
    )
    assert store.read([GetGraph(of.digest)])[0]
    enlist(store)
    start(store, of)
    assert finish_all(store) == 5
    audit(store)
    store.close()


def crossing(width: int) -> dict[str, str]:
    """Many roots under two joins, one of every second root; the joins have a child in common."""
    roots = [f"r{number:04}" for number in range(width)]
    return dict.fromkeys(roots, "") | {"even": " ".join(roots[::2]), "whole": " ".join(roots), "z": "even whole r0000"}


def test_the_edges_of_a_wide_join_come_in_parts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a part is missing or comes twice, two send them at once, and the graph is deleted meanwhile."""
    monkeypatch.setattr(request, "EDGES", 60)
    store, other = RedisStore(url), RedisStore(url)
    of = graph(**crossing(200))
    (op,) = add_graph(of)
    assert isinstance(op, AddGraph)
    parts = list(request.parts_before(op))
    assert sum(b'"op":"AddEdges"' in part[0] for part in parts) == 2 + 4

    def send(some: RedisStore, part: list[Arg]) -> None:
        some._call(some._library.commit, part, writes=True)

    for part in parts[:3]:
        send(store, part)
    for part in parts[1:5]:
        send(other, part)
        send(other, part)
    send(store, parts[-1])  # the end of a list whose beginning is not there
    assert one(store, op, GraphAdded).loaded == len(of)
    store.commit([DeleteGraph(of.digest, 2)])
    for part in parts[4:]:
        send(other, part)
    assert one(other, op, GraphAdded).loaded == len(of)
    enlist(store)
    start(store, of)
    audit(store)
    assert finish_all(store) == len(of)
    audit(store)
    assert reader.require_run(store, "run-1").status == "COMPLETED"
    other.close()
    store.close()


def test_a_wide_join_is_whole_although_its_parts_were_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "EDGES", 60)
    store = RedisStore(url)
    of = graph(**crossing(100))
    (op,) = add_graph(of)
    monkeypatch.setattr("stepwell.stores.redis.store.parts_before", lambda op: [])
    assert one(store, op, GraphAdded).loaded == len(of)
    enlist(store)
    start(store, of)
    assert finish_all(store) == len(of)
    audit(store)
    store.close()


def test_a_large_run_that_switched_fills_its_queues_in_several_calls(url: str) -> None:
    """What ends meanwhile is in no queue, and what is READY is in one, once, by the order of the new graph."""
    store = RedisStore(url)
    width = DERIVED
    old = serve(store, graph(**{f"n{number:05}": "" for number in range(width)}))
    begun = list(claim(store, limit=3))
    done = sorted(grant.index for grant in begun)
    new = arrange(old, graph(**{f"n{number:05}": "" for number in reversed(range(width))} | {"last": "n00000"}))
    store.commit(add_graph(new))
    hold(store, purpose="heal")
    assert one(store, arrange_op(new, width), GraphSwitched).loaded == width + 1
    opening, calls = rewrite(end=Finish(RunStatus.RUNNING, open_gate=True)), 0
    while not one(store, opening, Rewritten).finished:
        calls += 1
        if begun and calls % 2:
            store.commit([completed(begun.pop())])
    assert calls > 3
    store.commit([completed(grant) for grant in begun])
    audit(store)
    assert [row.index for row in reader.all_nodes(store, "run-1") if row.status == "COMPLETED"] == done
    ready = [row for row in reader.all_nodes(store, "run-1") if row.status == "READY"]
    taken = [grant.index for _ in range(2) for grant in claim(store, limit=400)]
    assert taken == [row.index for row in sorted(ready, key=lambda row: new.ranks[row.index])][:800]
    store.close()
