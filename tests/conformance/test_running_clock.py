"""The suite can judge a store whose clock is a server's: here the memory store, by a clock that runs and is only shifted."""

import pytest

from stepwell.store.memory import MemoryStore
from stepwell.testing.clocks import PlainTime, RunningClock
from stepwell.testing.conformance import *  # noqa: F403


@pytest.fixture
def clock() -> RunningClock:
    return RunningClock()


@pytest.fixture
def store(clock: RunningClock) -> MemoryStore:
    return MemoryStore(PlainTime(clock))
