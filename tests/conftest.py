"""What every test has: one PostgreSQL server for each test process, started when a test first needs it.

Every run of the tests draws the same examples, so that what passes here passes elsewhere. Set STEPWELL_EXPLORE=1, as
`make explore` does, to draw others each time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.postgres_server import postgres

__all__ = ["postgres"]

# A busy machine is slow, which says nothing about what is tested.
settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default" if os.environ.get("STEPWELL_EXPLORE") else "same")
