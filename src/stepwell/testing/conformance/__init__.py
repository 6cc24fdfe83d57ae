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

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{name}"
        for name in (
            "appending",
            "arranging",
            "batches",
            "claiming",
            "creating",
            "deleting",
            "failing",
            "forking",
            "gates",
            "journal",
            "leases",
            "reading",
            "settling",
            "sweeping",
        )
    )
)

from .appending import *  # noqa: E402, F403
from .arranging import *  # noqa: E402, F403
from .batches import *  # noqa: E402, F403
from .claiming import *  # noqa: E402, F403
from .creating import *  # noqa: E402, F403
from .deleting import *  # noqa: E402, F403
from .failing import *  # noqa: E402, F403
from .forking import *  # noqa: E402, F403
from .gates import *  # noqa: E402, F403
from .journal import *  # noqa: E402, F403
from .leases import *  # noqa: E402, F403
from .reading import *  # noqa: E402, F403
from .settling import *  # noqa: E402, F403
from .sweeping import *  # noqa: E402, F403


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def audited(store: Store) -> Iterator[None]:
    """Whatever a test did, the rows agree with each other afterwards."""
    yield
    audit(store)
