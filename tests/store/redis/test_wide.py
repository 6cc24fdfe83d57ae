"""Graphs that are wider than one call may release, and graphs that come and go within one batch."""

from stepwell.ids import RunId
from stepwell.model import AddNodes, DeleteGraph, GetGraph, NodeStatus, RunStatus
from stepwell.store import reader
from stepwell.store.redis import RedisStore
from stepwell.store.redis.limits import SLICE
from stepwell.testing.audit import audit
from stepwell.testing.ops import (
    add_graph,
    claim,
    claim_op,
    completed,
    create,
    enact,
    enlist,
    fan,
    graph,
    serve,
    start,
    sweep,
)


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
    enlist(store, "another")
    assert claim(store, "another", limit=0) == ()
    assert ready() == 2 * SLICE
    assert sweep(store).next_due is not None
    assert ready() == 2 * SLICE + 300
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
    of = graph(a="", b="a", c="a", d="b c", e="d")
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
