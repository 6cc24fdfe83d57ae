"""What is committed most has statements of its own: a completion with the claim of the only child, and a new run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.model import Claimed, Created
from stepwell.store.sqlite import SqliteStore
from stepwell.store.sqlite.ops import links, single
from stepwell.testing.ops import RUN, add_graph, claim_first, claim_op, completed, graph, spec, start, statuses

CHAIN = graph(a="", b="a", c="b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "runs.db")
    yield store
    store.close()


def test_what_a_chain_commits_is_written_as_a_link(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    apply = links.settle_and_claim
    monkeypatch.setattr(
        "stepwell.store.sqlite.store.settle_and_claim", lambda *ops: written.append(found := apply(*ops)) or found
    )
    grant = claim_first(store, CHAIN)
    store.commit([completed(grant), claim_op(runs=(grant.run_id,))])
    assert statuses(store) == {"a": "COMPLETED", "b": "RUNNING", "c": "PENDING"}
    assert written != [None]


def test_a_link_brings_the_outputs_that_its_child_needs(store: SqliteStore) -> None:
    store.commit(add_graph(CHAIN))  # in which nobody needs anything
    grant = claim_first(store, graph(spec("a"), spec("b", "a", needs="a")))
    _, claimed = store.commit([completed(grant, b"7"), claim_op(claim="next", runs=(RUN,))])
    assert isinstance(claimed, Claimed)
    assert [each.inputs for each in claimed.grants] == [((0, b"7"),)]


def test_a_link_of_which_a_part_cannot_be_written_writes_nothing(store: SqliteStore) -> None:
    grant = claim_first(store, CHAIN)
    before = statuses(store)
    with store._writer:
        store._writer.execute("INSERT INTO journal (run, seq, at, kind) SELECT key, seq + 1, 0, 0 FROM run")
    with pytest.raises(AssertionError, match=f"a link of run {grant.run_id} at seq 2 could not be written"):
        store.commit([completed(grant), claim_op(runs=(grant.run_id,))])
    assert statuses(store) == before


def test_a_run_of_a_graph_that_is_stored_is_created_by_statements_of_its_own(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[object] = []
    create = single.create_one
    monkeypatch.setattr(
        "stepwell.store.sqlite.ops.creating.create_one", lambda *of: created.append(found := create(*of)) or found
    )
    start(store, CHAIN)
    start(store, CHAIN)
    assert created == [Created(RUN, False, 3, 3), None], "one that is there is not created again"
