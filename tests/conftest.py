"""Every run of the tests draws the same examples, so that what passes here passes elsewhere. Set STEPWELL_EXPLORE=1, as
`make explore` does, to draw others each time.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, database=None)
settings.load_profile("default" if os.environ.get("STEPWELL_EXPLORE") else "same")
