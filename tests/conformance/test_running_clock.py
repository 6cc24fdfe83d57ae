"""The suite can judge a store whose clock is a server's: here the memory store, by a clock that runs and is only shifted."""

import pytest

from stepwell.core.store.memory import MemoryStore
from tests.conformance.clocks import PlainTime, RunningClock
from tests.conformance.suite import *  # noqa: F403


@pytest.fixture
def clock() -> RunningClock:
    return RunningClock()


@pytest.fixture
def store(clock: RunningClock) -> MemoryStore:
    return MemoryStore(PlainTime(clock))
