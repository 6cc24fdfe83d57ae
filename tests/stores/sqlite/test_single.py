"""What is committed most has statements of its own: a few settlements and grants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.core.model import Claimed
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.ops import RUN, add_graph, claim_first, claim_op, completed, graph, spec

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
