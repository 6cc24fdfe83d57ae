"""What is done now and then, in a thread of its own, ends when it is told to, also by itself."""

from __future__ import annotations

import threading

from stepwell.runner.worker.debounce import Debounce


def test_what_it_does_may_end_it() -> None:
    ended = threading.Event()

    def act() -> None:
        made.end(30)
        ended.set()

    made = Debounce(act, "stepwell-test", 0)
    made.wake()
    assert ended.wait(30), "it waited for itself"
