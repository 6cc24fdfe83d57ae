"""The runner inside a process of a worker: it works when a hint comes, and says so when none does."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepwell import StepwellError
from stepwell.celery import host as home
from stepwell.celery.host import WorkerHost, WorkerPlan
from stepwell.celery.install import EndPipe
from stepwell.engine.broker_app import make_app
from stepwell.engine.reports.workers import describe_workers
from stepwell.server.metrics import metrics_text
from stepwell.server.service import ServerProcess
from tests.celery import work
from tests.engine.ledger import noted
from tests.engine.waiting import eventually
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer


@pytest.fixture
def plan(fleet: Fleet) -> WorkerPlan:
    """No worker consumes what it sends, so no hint comes back by itself."""
    modules = ("tests.celery.work",)
    return WorkerPlan(
        make_app(fleet.broker), fleet.store, (work.Order, work.Held), modules, idle_seconds=0.3, when_idle="exit"
    )


@pytest.fixture
def host(plan: WorkerPlan, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerHost]:
    monkeypatch.setattr(home, "LOOK_SECONDS", 0.05)
    host = WorkerHost(plan, "test@here", 2, replaceable=False)
    assert host._opened.wait(30)
    yield host
    host.close()


def test_it_works_off_what_there_is_when_a_hint_comes_and_only_then(fleet: Fleet, host: WorkerHost) -> None:
    with fleet.engine() as engine:
        run = engine.start(work.Order(order_id=1))
        time.sleep(0.3)
        assert run.status == "PENDING"
        assert host.work() == "worked off"
        assert run.status == "COMPLETED"
        assert host.work() == "worked off", "a hint for nothing, or a second copy, is harmless"


def test_a_process_can_end_though_nobody_closes_its_host(host: WorkerHost) -> None:
    assert host._opened.is_set()
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("stepwell")]
    assert ours, "it has threads"
    assert [thread.name for thread in ours if not thread.daemon] == []


def test_it_says_so_when_it_hears_of_nothing_while_there_is_work(
    fleet: Fleet, host: WorkerHost, caplog: pytest.LogCaptureFixture
) -> None:
    end_asked = threading.Event()
    host._ask_to_end = end_asked.set
    time.sleep(0.6)
    assert not end_asked.is_set(), "there is nothing to do"
    with fleet.engine() as engine, caplog.at_level(logging.ERROR, "stepwell"):
        engine.start(work.Order(order_id=1))
        assert end_asked.wait(30)
        (worker,) = describe_workers(engine.store)
        assert worker.idle
        assert "\nstepwell_workers_idle 1\n" in metrics_text(ServerProcess(engine.store))
        end_asked.clear()
        before = time.monotonic()
        assert end_asked.wait(30)
        assert time.monotonic() - before > 0.2, "it says so now and then, not at every look"
    assert "no hint reaches it" in caplog.text
    assert host.work() == "worked off"
    end_asked.clear()
    with fleet.engine() as engine:
        (worker,) = describe_workers(engine.store)
        assert not worker.idle
        assert "\nstepwell_workers_idle 0\n" in metrics_text(ServerProcess(engine.store))
    time.sleep(0.6)
    assert not end_asked.is_set()


def test_it_is_idle_once_work_was_ready_and_no_hint_came_for_that_long(
    plan: WorkerPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[float] = []
    with closing(WorkerHost(replace(plan, idle_seconds=30), "test@here", 1, replaceable=False)) as host:
        assert host._opened.wait(30)
        clock = SimpleNamespace(now=1_000.0)
        monkeypatch.setattr(home, "time", SimpleNamespace(monotonic=lambda: clock.now))
        host._say_idle = lambda idle: reports.append(clock.now)  # type: ignore[method-assign]
        host._worked_at = clock.now

        def look(*times: float, ready: bool = True) -> None:
            for clock.now in times:
                host._judge(ready)

        look(1_000, 1_029.9)
        assert reports == []
        look(1_030)
        assert reports == [1_030]
        look(1_059.9, 1_060)  # and again as long after it
        assert reports.pop() == 1_060
        look(1_080, ready=False)
        look(1_090, 1_119.9, 1_120)
        assert reports.pop() == 1_120
        host._worked_at = 1_140
        look(1_160, 1_169.9, 1_170)
        assert reports == [1_030, 1_170]


def test_hints_at_once_are_one_to_it(fleet: Fleet, host: WorkerHost, tmp_path: Path) -> None:
    with fleet.engine() as engine:
        run = engine.start(work.naps(str(tmp_path / "ledger"), 6))
        threads = [threading.Thread(target=host.work) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert run.wait(60).status == "COMPLETED"
    assert len(noted(tmp_path / "ledger")) == 6


def test_it_takes_part_of_its_time_for_others(fleet: Fleet, plan: WorkerPlan, tmp_path: Path) -> None:
    host = WorkerHost(
        WorkerPlan(plan.app, plan.url, jobs=plan.jobs, slice_seconds=0.5), "test@here", 1, replaceable=False
    )
    with fleet.engine() as engine:
        run = engine.start(work.naps(str(tmp_path / "ledger"), 12))
        assert host._opened.wait(30)
        assert host.work() == "passed on: there is more"
        assert 0 < len(noted(tmp_path / "ledger")) < 12
        while host.work() != "worked off":
            pass
        assert run.status == "COMPLETED"
    host.close()
    assert host.work() == "passed on: this process is not open"


def test_a_slice_does_not_end_before_the_body_that_it_began(fleet: Fleet, plan: WorkerPlan, tmp_path: Path) -> None:
    """Celery would take the process for free, and give it a task of its application."""
    ledger, go_on = str(tmp_path / "ledger"), tmp_path / "go_on"
    plan = replace(plan, slice_seconds=0.05)
    with closing(WorkerHost(plan, "test@here", 1, replaceable=False)) as host, fleet.engine() as engine:
        assert host._opened.wait(30)
        run = engine.start(work.Held(ledger=ledger, go_on=str(go_on)))
        with ThreadPoolExecutor(1) as threads:
            hint = threads.submit(host.work)
            try:
                eventually(lambda: work.begun(ledger))
                assert host.work() == "seen to by the thread that is at work"
                with pytest.raises(TimeoutError):
                    hint.result(0.4)
            finally:
                go_on.touch()
            hint.result(30)
        assert run.node("hold").status == "COMPLETED"
        while host.work() != "worked off":
            pass
        assert run.status == "COMPLETED"


def test_a_worker_in_threads_goes_on_beside_a_body_that_overruns(
    fleet: Fleet, host: WorkerHost, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its other threads are at work, perhaps on tasks of the application."""
    go_on = tmp_path / "go_on"
    host._ask_to_end = lambda: pytest.fail("it was asked to end")
    with fleet.engine() as engine:
        late = engine.start(work.Overruns(go_on=str(go_on)))
        try:
            assert host.work() == "worked off"
            assert late.wait(30).status == "FAILED"
            run = engine.start(work.Order(order_id=1))
            assert host.work() == "worked off"
            assert run.status == "COMPLETED"
        finally:
            go_on.touch()
    assert "is replaced" not in caplog.text


def test_it_looks_now_and_then_and_goes_on_when_a_look_fails(
    host: WorkerHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(home, "OPEN_AGAIN_SECONDS", 0.05)
    looks: list[float] = []

    def fail(store: object) -> int:
        looks.append(time.monotonic())
        raise StepwellError("the store is away")

    monkeypatch.setattr(home, "dismiss_dead", fail)
    eventually(lambda: len(looks) >= 4)
    assert looks[3] - looks[0] > 0.15, "not without a pause"
    assert "test@here: the store is away" in caplog.text


def test_between_looks_it_rests(plan: WorkerPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has nothing more to do asks for one look, not for looks without end."""
    looks: list[float] = []
    monkeypatch.setattr(home, "LOOK_SECONDS", 600.0)
    monkeypatch.setattr(home.WorkerHost, "_look", lambda host, lookout: looks.append(time.monotonic()))
    with closing(WorkerHost(plan, "test@here", 1, replaceable=False)) as host:
        assert host._opened.wait(30)
        host._look_now.set()
        eventually(lambda: looks)
        time.sleep(0.5)
        assert len(looks) <= 3


def test_a_process_that_loses_a_thread_to_a_body_is_replaced(fleet: Fleet, plan: WorkerPlan, tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    with closing(WorkerHost(plan, "test@here", 1, replaceable=True)) as host, fleet.engine() as engine:
        assert host._opened.wait(30)
        run = engine.start(work.Overruns(go_on=str(go_on)))
        others = engine.start(work.naps(str(tmp_path / "ledger"), 12))
        try:
            assert host.work() == "passed on: this process is replaced"
        finally:
            go_on.touch()
        assert run.wait(30).status == "FAILED"
        assert len(noted(tmp_path / "ledger")) < 12, "it begins nothing more"
        assert others.status != "COMPLETED"


def test_a_worker_in_threads_whose_store_was_flushed_asks_to_end(
    fleet: Fleet, host: WorkerHost, redis_server: RedisServer
) -> None:
    end_asked = threading.Event()
    host._ask_to_end = end_asked.set
    with redis_server.client() as client:
        client.flushdb()
    assert end_asked.wait(30)
    assert host.work() == "passed on: this process is not open"


def test_a_process_whose_store_was_flushed_is_replaced_at_its_next_hint(
    fleet: Fleet, plan: WorkerPlan, redis_server: RedisServer
) -> None:
    with closing(WorkerHost(plan, "test@here", 1, replaceable=True)) as host:
        assert host._opened.wait(30)
        with redis_server.client() as client:
            client.flushdb()
        eventually(lambda: host._runner().stopped)
        assert host.work() == "passed on: this process is replaced"


def test_a_pipe_tells_of_the_end_once(plan: WorkerPlan) -> None:
    pipe, told = EndPipe(), threading.Event()
    pipe.watch(told.set)
    assert not told.wait(0.1)
    pipe.end()
    pipe.end()
    assert told.wait(30)
    late = threading.Event()
    pipe.watch(late.set)
    assert late.wait(30), "who comes late finds it ended"
    assert not pipe.end_asked


def test_only_the_parent_tells_of_the_end() -> None:
    """Celery sends the signal `worker_shutting_down` in its processes too."""
    pipe, told = EndPipe(), threading.Event()
    child = os.fork()
    if child == 0:
        try:
            pipe.end()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    pipe.watch(told.set)
    assert not told.wait(0.1)
    pipe.end()
    assert told.wait(30)


def test_a_process_can_ask_its_worker_to_end() -> None:
    pipe, asked = EndPipe(), threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: asked.set())
    try:
        child = os.fork()
        if child == 0:
            try:
                pipe.ask_to_end()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert asked.wait(30)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert pipe.end_asked
    assert not pipe.end_asked, "it is told once"


def test_a_store_that_is_away_at_first_is_opened_later(
    plan: WorkerPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(home, "OPEN_AGAIN_SECONDS", 0.1)
    folder = tmp_path / "later"
    before = time.monotonic()
    host = WorkerHost(WorkerPlan(plan.app, f"sqlite:///{folder}/deeper/runs.db"), "test@here", 1, replaceable=False)
    try:
        tries = lambda: sum("is not open yet" in message for message in caplog.messages)  # noqa: E731
        eventually(lambda: tries() >= 3, "it does not try again")
        assert tries() <= 1 + (time.monotonic() - before) / 0.1, "it tries without a pause"
        assert not host._opened.is_set()
        folder.mkdir()
        eventually(host._opened.is_set, "it was not opened again")
    finally:
        host.close()


def test_a_process_that_ends_before_its_store_was_there_leaves_nothing(plan: WorkerPlan, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    plan = replace(plan, url=f"sqlite:///{tmp_path}/never/deeper/runs.db", slice_seconds=25)
    host = WorkerHost(plan, "test@here", 1, replaceable=False)
    host.close()
    closed_at = time.monotonic()
    assert host.work() == "passed on: this process is not open"
    assert time.monotonic() - closed_at < 20, "a hint waits for a store that opens, not for one that is closed"
    eventually(lambda: set(threading.enumerate()) <= before, "its threads go on", show=threading.enumerate)


def test_a_host_that_is_closed_leaves_no_thread(plan: WorkerPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even until its next look."""
    monkeypatch.setattr(home, "LOOK_SECONDS", 600.0)
    before = set(threading.enumerate())
    with closing(WorkerHost(plan, "test@here", 1, replaceable=False)) as host:
        assert host._opened.wait(30)
    eventually(lambda: set(threading.enumerate()) <= before, "its threads go on", show=threading.enumerate)
