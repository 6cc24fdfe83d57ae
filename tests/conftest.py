"""What every test has: one PostgreSQL server for each test process, started when a test first needs it.

Every run of the tests draws the same examples, so that what passes here passes elsewhere. Set STEPWELL_EXPLORE=1, as
`make explore` does, to draw others each time.
"""

from __future__ import annotations

import os

from hypothesis import settings

from tests.postgres_server import postgres

__all__ = ["postgres"]

settings.register_profile("same", derandomize=True, database=None)
settings.load_profile("default" if os.environ.get("STEPWELL_EXPLORE") else "same")
