"""The SQLite store passes the conformance suite whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.base.clock import ManualClock
from stepwell.core.model import ListRuns, Sweep
from stepwell.errors import StoreError
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.suite import *  # noqa: F403


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "stepwell.db", clock=clock)
    yield store
    store.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    closed = SqliteStore(tmp_path / "closed.db")
    closed.close()
    closed.close()
    for use in (
        lambda: closed.commit([Sweep()]),
        lambda: closed.read([ListRuns()]),
        lambda: closed.wait_for_hint(None, (), "w", 0),
    ):
        with pytest.raises(StoreError, match="closed"):
            use()
