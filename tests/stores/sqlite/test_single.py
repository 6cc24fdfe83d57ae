"""What is committed most has statements of its own: a few completions, and a new run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.core.model import Claimed, Created
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.ops import single
from tests.conformance.ops import RUN, add_graph, claim_first, claim_op, completed, graph, spec, start

CHAIN = graph(a="", b="a", c="b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "runs.db")
    yield store
    store.close()


def test_a_claim_beside_a_completion_brings_the_outputs_that_the_child_needs(store: SqliteStore) -> None:
    store.commit(add_graph(CHAIN))  # in which nobody needs anything
    grant = claim_first(store, graph(spec("a"), spec("b", "a", needs="a")))
    _, claimed = store.commit([completed(grant, b"7"), claim_op(claim="next", runs=(RUN,))])
    assert isinstance(claimed, Claimed)
    assert [each.inputs for each in claimed.grants] == [((0, b"7"),)]


def test_a_run_of_a_graph_that_is_stored_is_created_by_statements_of_its_own(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[object] = []
    create = single.create_one
    monkeypatch.setattr(
        "stepwell.stores.sqlite.ops.creating.create_one", lambda *of: created.append(found := create(*of)) or found
    )
    start(store, CHAIN)
    start(store, CHAIN)
    assert created == [Created(RUN, False, 3, 3), None], "one that is there is not created again"
