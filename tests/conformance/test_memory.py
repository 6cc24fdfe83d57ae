"""The memory store passes the conformance suite whole: it is the executable specification."""

import pytest

from stepwell.base.clock import ManualClock
from stepwell.core.model import ListRuns, Sweep
from stepwell.core.store.memory import MemoryStore
from stepwell.errors import StoreError
from stepwell.stores import open_store
from tests.conformance.suite import *  # noqa: F403


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


def test_a_closed_store_says_so() -> None:
    closed = open_store("memory://")
    closed.close()
    closed.close()
    for use in (
        lambda: closed.commit([Sweep()]),
        lambda: closed.read([ListRuns()]),
        lambda: closed.wait_for_hint(None, (), "w", 0),
    ):
        with pytest.raises(StoreError, match="closed"):
            use()
