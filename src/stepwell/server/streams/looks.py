"""How the states of pipelines stand, for all streams together: a look goes through files, and one must do for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

LOOK_SECONDS = 2.0
"""Between two looks at the states of a pipeline; more when looking takes long."""
SHARE_OF_TIME = 0.1

States = dict[tuple[str, str], dict[str, Any]]
"""By stage and entity."""


class _Look(NamedTuple):
    until: float
    """When to look again, on the monotonic clock."""
    states: States


class Looks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looking: set[str] = set()
        self._last: dict[str, _Look] = {}

    def states(self, name: str, look: Callable[[], States]) -> States:
        """The states of this pipeline as they were a moment ago. While somebody looks nobody waits for that: requests share
        a few threads."""
        with self._lock:
            last = self._last.get(name)
            if name in self._looking or (last is not None and time.monotonic() < last.until):
                return {} if last is None else last.states
            self._looking.add(name)
        try:
            began = time.monotonic()
            found = look()
            now = time.monotonic()
            self._last[name] = _Look(now + max(LOOK_SECONDS, (now - began) / SHARE_OF_TIME), found)
            return found
        finally:
            with self._lock:
                self._looking.discard(name)
