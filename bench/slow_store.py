"""A store that is far away: every call takes a while. What it is asked is counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from stepwell.core.model import Answer, Batch, Query
from stepwell.core.store import Store
from stepwell.core.store.memory import MemoryStore


class SlowStore:
    def __init__(self, store: Store | None = None, seconds: float = 0.02) -> None:
        self._store: Any = store or MemoryStore()
        self._seconds = seconds
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch) -> Answer:
        self.calls["commit"] += 1
        time.sleep(self._seconds)
        return self._store.commit(batch)  # type: ignore[no-any-return]

    def read(self, queries: Sequence[Query]) -> list[Any]:
        self.calls["read"] += 1
        time.sleep(self._seconds)
        return self._store.read(queries)  # type: ignore[no-any-return]

    def now(self) -> int:
        self.calls["now"] += 1
        time.sleep(self._seconds)
        return self._store.now()  # type: ignore[no-any-return]
