"""The suite that every store passes whole: what a store promises, one test for each promise.

A store's own test module offers a fixture `store`, opened with the fixture `clock`, and takes in the suite:

    from stepwell.testing.conformance import *

    @pytest.fixture
    def store(clock):
        store = MyStore(clock=clock)
        yield store
        store.close()

There are no skips: what a store cannot do, we do not promise. After each test the rows are audited.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...clock import ManualClock
from ...store import Store
from ..audit import audit
from .appending import *
from .arranging import *
from .batches import *
from .claiming import *
from .creating import *
from .deleting import *
from .failing import *
from .forking import *
from .gates import *
from .journal import *
from .leases import *
from .reading import *
from .records import *
from .restoring import *
from .settling import *
from .sweeping import *
from .versions import *


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def audited(store: Store) -> Iterator[None]:
    """Whatever a test did, the rows agree with each other afterwards."""
    yield
    audit(store)
