"""An engine that has nothing to do does nothing: none of its threads turns in circles."""

from __future__ import annotations

import threading
import time

import psutil

from stepwell import Builder, Retry, Workflow, step
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


class Quick(Workflow):
    @step
    def one(self) -> None:
        print("said")


class Unannounced(Workflow):
    """A version that others are told of when it is first started."""

    @step
    def one(self) -> None: ...


def failing() -> None:
    raise ValueError("now and then")


def used() -> dict[str, float]:
    """Seconds of processor time by thread of ours."""
    names = {thread.native_id: thread.name for thread in threading.enumerate() if thread.name.startswith("stepwell")}
    found = {}
    for thread in psutil.Process().threads():
        if thread.id in names:
            found[f"{names[thread.id]} {thread.id}"] = thread.user_time + thread.system_time
    return found


def test_after_every_kind_of_work_its_threads_rest(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(workflows=[Quick])
    engine.run(Quick())
    engine.run(Unannounced())
    w = Builder("waits")
    w.node("retried", job=failing, retry=Retry(max_attempts=2, base_delay=0.05), timeout=30)
    assert engine.run(w, check=False).status == "FAILED"
    w = Builder("paused")
    w.node("never", job=failing, retry=Retry(max_attempts=9, base_delay=50))
    waiting = engine.start(w)
    eventually(lambda: waiting.node("never").status == "WAITING")
    before = used()
    time.sleep(0.5)
    after = used()
    busy = {
        name: after[name] - seconds for name, seconds in before.items() if after.get(name, seconds) - seconds > 0.06
    }
    assert before
    assert not busy
