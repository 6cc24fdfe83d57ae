"""The memory store tells who waits of what was committed, and of nothing else."""

from __future__ import annotations

from stepwell.core.store.memory import MemoryStore
from tests.conformance.ops import WORKER, claim_op, create, enlist, graph, start


def test_who_waits_hears_of_a_batch_of_which_a_part_changed_something() -> None:
    store, of = MemoryStore(), graph(a="")
    start(store, of, "one")
    enlist(store)
    store.wait_for_hint(None, (), WORKER, 0)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    store.commit([claim_op(runs=("unknown",))])
    assert not store.wait_for_hint(None, (), WORKER, 0), "nothing was granted"
    store.commit([claim_op(claim="b", runs=("unknown",)), create(of, "two")])
    assert store.wait_for_hint(None, (), WORKER, 0)
    assert not store.wait_for_hint(None, (), WORKER, 0), "it is told once"
