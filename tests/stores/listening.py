"""A store that is closed in the moment in which its thread for hints is started."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from stepwell.base.ids import WorkerId
from stepwell.core.store import Store

SECONDS = 30.0


def closes_while_it_begins_to_listen(store: Store, thread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    starts, go_on = threading.Event(), threading.Event()
    start = threading.Thread.start

    def start_late(self: threading.Thread) -> None:
        if self.name == thread:
            starts.set()
            assert go_on.wait(SECONDS)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_late)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(store.wait_for_hint, None, (), WorkerId("me"), 0.0)
        assert starts.wait(SECONDS)
        closing = pool.submit(store.close)
        with suppress(TimeoutError):
            closing.result(0.3)
        go_on.set()
        closing.result(SECONDS)
        waiting.result(SECONDS)
