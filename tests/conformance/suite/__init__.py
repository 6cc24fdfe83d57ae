"""The suite that every store passes whole: what a store promises, one test for each promise.

A store's own test module offers a fixture `store`, opened with the fixture `clock`, and takes in the suite:

    from tests.conformance.suite import *

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

from stepwell.base.clock import ManualClock
from stepwell.core.store import Store
from tests.conformance.audit import audit
from tests.conformance.suite.appending import *
from tests.conformance.suite.arranging import *
from tests.conformance.suite.batches import *
from tests.conformance.suite.claiming import *
from tests.conformance.suite.creating import *
from tests.conformance.suite.deleting import *
from tests.conformance.suite.failing import *
from tests.conformance.suite.finding import *
from tests.conformance.suite.forking import *
from tests.conformance.suite.gates import *
from tests.conformance.suite.journal import *
from tests.conformance.suite.leases import *
from tests.conformance.suite.parking import *
from tests.conformance.suite.reading import *
from tests.conformance.suite.records import *
from tests.conformance.suite.restoring import *
from tests.conformance.suite.settling import *
from tests.conformance.suite.skipping import *
from tests.conformance.suite.sweeping import *
from tests.conformance.suite.versions import *


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def audited(store: Store) -> Iterator[None]:
    """Whatever a test did, the rows agree with each other afterwards."""
    yield
    audit(store)
