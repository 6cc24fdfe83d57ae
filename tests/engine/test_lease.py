"""A worker's lease: when it is renewed, and what the answers mean."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from stepwell import Builder, Engine, StoreError
from stepwell.base.clock import SECOND
from stepwell.base.codec import decode
from stepwell.base.ids import AttemptId, WorkerId
from stepwell.core.model import Dismiss, Enlist, Enlisted, Refusal, Refused, Renew, Renewed
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.worker.lease import Lease, LeaseState
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

LEASE = 30 * SECOND
HELD = (AttemptId("c1.0"),)


def lease_state() -> LeaseState:
    return LeaseState(WorkerId("me"), LEASE)


def test_it_enlists_first_and_renews_at_a_third_of_the_lease() -> None:
    t = lease_state()
    assert t.due_at == 0
    assert isinstance(t.next_op(HELD), Enlist)
    t.answered(Enlisted(LEASE), 100)
    assert t.due_at == 100 + LEASE // 3
    assert t.next_op(HELD) == Renew(WorkerId("me"), LEASE, HELD, since=0)
    t.answered(Renewed(LEASE + 500, (), 0), 500)
    assert t.next_op(HELD) == Renew(WorkerId("me"), LEASE, HELD, since=500), "since it last heard, by the store's clock"


def test_a_renewal_tells_what_should_stop() -> None:
    t = lease_state()
    t.answered(Enlisted(LEASE), 0)
    assert t.answered(Renewed(LEASE, HELD, 0), 10) == HELD


def test_a_lease_that_ran_out_is_taken_again_at_once() -> None:
    t = lease_state()
    t.answered(Enlisted(LEASE), 0)
    assert t.answered(Refused(Refusal.LEASE_EXPIRED), 77) == ()
    assert t.due_at == 77
    assert isinstance(t.next_op(HELD), Enlist)


def test_a_store_that_does_not_answer_is_asked_again_soon() -> None:
    t = lease_state()
    t.answered(Enlisted(LEASE), 0)
    t.failed(50)
    assert t.due_at == 50 + SECOND


def test_a_living_worker_keeps_its_lease_however_long_a_body_takes(open_sqlite: OpenEngine) -> None:
    engine, other = open_sqlite(lease_seconds=1), open_sqlite(lease_seconds=1)
    w = Builder("long")
    w.node("nap", job=jobs.nap, args={"seconds": 2.5})
    run = engine.start(w)
    other.adopt(run.id)
    assert run.wait(30).status == "COMPLETED"
    assert [attempt.status for attempt in run.node("nap").attempts] == ["COMPLETED"]


def test_a_lease_that_was_lost_is_taken_again_and_work_goes_on(engine: Engine) -> None:
    """As after a laptop was asleep: somebody else has swept this worker away."""
    engine.run(one())
    (worker,) = reader.list_workers(engine.store)
    engine.store.commit([Dismiss(worker.id)])
    assert engine.run(one(), wait=10).status == "COMPLETED"
    assert [each.id for each in reader.list_workers(engine.store)] == [worker.id]


def test_a_renewal_that_fails_is_repeated_before_the_lease_is_over(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(lease_seconds=3)
    engine.run(one())
    (before,) = reader.list_workers(engine.store)
    commit, failed = engine.store.commit, threading.Event()

    def fail_once(batch: Any) -> Any:
        assert not isinstance(batch[0], Enlist) or not failed.is_set(), "the lease was over"
        if isinstance(batch[0], Renew) and not failed.is_set():
            failed.set()
            raise StoreError("away for a moment")
        return commit(batch)

    engine.store.commit = fail_once  # type: ignore[method-assign]
    assert failed.wait(30)
    eventually(lambda: reader.list_workers(engine.store)[0].lease_until > before.lease_until)


def one() -> Builder:
    w = Builder("one")
    w.node("same", job=jobs.same, args={"item": 1})
    return w


class Shaky:
    """A memory store that fails when it is told to."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.fails = False

    def commit(self, batch: Any) -> Any:
        if self.fails:
            self.fails = False
            raise StoreError("not now")
        return self.store.commit(batch)

    def info(self) -> Any:
        (worker,) = reader.list_workers(self.store)
        return decode(worker.info)["serves"]


def kept(store: Any, seconds: float = 30, **does: Any) -> Lease:
    given = {"holding": tuple, "on_held": lambda: None, "on_stop": lambda attempts: None, "versions": list}
    given |= {"on_replaced": lambda error: None, **does}
    return Lease(store, WorkerId("me"), seconds, **given)


def test_what_could_not_be_announced_at_once_is_announced_soon() -> None:
    versions: list[list[str]] = []
    shaky = Shaky()
    lease = kept(shaky, versions=lambda: versions)
    lease.start()
    assert shaky.info() == []
    versions.append(["orders", "d"])
    lease.announce()
    assert shaky.info() == [["orders", "d"]]
    versions.append(["bills", "e"])
    shaky.fails = True
    with pytest.raises(StoreError):
        lease.announce()
    eventually(lambda: len(shaky.info()) == 2, seconds=5)
    lease.close()
    assert not lease._thread.is_alive()


def test_whoever_hears_of_a_renewal_may_close_it(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def close() -> None:
        heard.append(threading.current_thread().name)
        if len(heard) == 2:
            lease.close()

    lease = kept(MemoryStore(), 0.3, on_held=close)
    lease.start()
    lease._thread.join(10)
    assert heard[1:] == ["stepwell-lease"]
    assert caplog.text == ""
    assert not lease._thread.is_alive()


def test_a_store_that_stays_in_trouble_is_not_asked_without_end() -> None:
    asked: list[float] = []

    class Down(MemoryStore):
        def commit(self, batch: Any) -> Any:
            if asked or isinstance(batch[0], Renew):
                asked.append(time.monotonic())
                raise StoreError("down")
            return super().commit(batch)

    lease = kept(Down(), 1.0)
    lease.start()
    eventually(lambda: len(asked) >= 3)
    lease.close()
    assert asked[2] - asked[0] > 0.15, "every tenth of the lease, not at once"


def test_who_hears_that_the_lease_was_lost_has_it_again_at_once(caplog: pytest.LogCaptureFixture) -> None:
    store, held = Shaky(), threading.Event()
    lease = kept(store, on_held=held.set)
    lease.start()
    for fails in (False, True):
        store.store.commit([Dismiss(WorkerId("me"))])
        store.fails = fails
        held.clear()
        lease.lost()
        if not fails:
            assert held.is_set()
            assert [each.id for each in reader.list_workers(store.store)] == ["me"]
    assert "could not be taken again yet: not now" in caplog.text
    eventually(held.is_set, "it waited for the next renewal", seconds=5)
    assert lease.state.losses == 2
    lease.close()
