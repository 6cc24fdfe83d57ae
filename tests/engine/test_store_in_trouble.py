"""A store that is locked, or fails for a while, is told to those who wait; nothing is lost and work goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import Builder, Engine, StoreError, Workflow, step
from stepwell.core.model import GetOutputs, Settle
from stepwell.errors import StoreBusy, StoreCorrupt
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually, in_time


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Another process writes, and takes its time."""
    other = apsw.Connection(str(path))
    other.set_busy_timeout(10_000)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def one(seconds: float = 0.0) -> Builder:
    w = Builder("one")
    w.node("nap", job=jobs.nap, args={"seconds": seconds})
    return w


def test_starting_waits_for_a_lock_that_is_released_in_time(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/s.db") as engine:
        engine.run(one())
        with write_lock(tmp_path / "s.db"):
            started = threading.Thread(target=lambda: runs.append(engine.start(one())))
            runs: list[Any] = []
            started.start()
            started.join(0.3)
            assert started.is_alive()
        started.join(30)
        assert runs[0].wait(30).status == "COMPLETED"


def test_starting_against_a_lock_that_is_not_released_says_so_and_works_later(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/s.db?busy_seconds=0.1", close_seconds=1) as engine:
        with write_lock(tmp_path / "s.db"), pytest.raises(StoreBusy, match="held the write lock"):
            engine.start(one())
        assert engine.run(one(), wait=10).status == "COMPLETED"
        assert engine.parts.work.runner is not None
        names = {thread.name for thread in threading.enumerate()}
        assert {"stepwell-lease", "stepwell-housekeeping"} <= names


def test_a_body_that_ends_while_the_store_is_locked_is_recorded_afterwards(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/s.db?busy_seconds=0.1", close_seconds=1) as engine:
        began, release = threading.Event(), threading.Event()

        class Held(Workflow):
            @step
            def nap(self) -> None:
                began.set()
                release.wait(60)

        run = engine.start(Held())
        assert began.wait(30)
        with write_lock(tmp_path / "s.db"):
            release.set()
            with pytest.raises(StoreBusy):
                run.wait(10)
            time.sleep(0.3)
        run.wait(10)
        assert [attempt.status for attempt in run.node("nap").attempts] == ["COMPLETED"]


class Failing:
    """A store that fails when told to, before or after it has done what was asked."""

    def __init__(self, engine: Engine) -> None:
        self.before = self.after = False
        self._commit = engine.store.commit
        engine.store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, batch: Any) -> Any:
        if self.before:
            raise StoreError("the store is away")
        receipts = self._commit(batch)
        if self.after and any(isinstance(op, Settle) for op in batch):
            self.after = False
            raise StoreError("the answer was lost")
        return receipts


def test_those_who_wait_and_those_who_start_are_told_that_the_store_fails(engine: Engine) -> None:
    store = Failing(engine)
    run = engine.start(one(0.1))
    eventually(lambda: run.status == "RUNNING")
    store.before = True
    with pytest.raises(StoreError, match="the store is away"):
        run.wait(10)
    with pytest.raises(StoreError, match="the store is away"):
        engine.start(one())
    store.before = False
    assert run.wait(10).status == "COMPLETED"


def test_nobody_who_starts_a_run_is_left_waiting_while_the_store_fails(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite()
    engine.run(one())
    store = Failing(engine)
    store.before = True
    told: list[BaseException] = []

    def start() -> None:
        try:
            engine.start(one())
        except StoreError as error:
            told.append(error)

    threads = [threading.Thread(target=start) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(told) == 16


def test_a_body_that_reads_an_output_while_the_store_is_away_waits_for_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, asked = engine.store.read, []

    def away(queries: Any) -> Any:
        if any(isinstance(query, GetOutputs) for query in queries) and len(asked) < 3:
            asked.append(queries)
            raise StoreError("the store is away")
        return read(queries)

    monkeypatch.setattr(engine.store, "read", away)
    w = Builder("reads")
    w.node("first", job=jobs.same, args={"item": 7})
    w.node("between", job=jobs.same, args={"item": 8})
    w.node("last", job=jobs.total)
    run = engine.run(w, wait=30)
    assert run.output("last") == 15
    assert len(asked) == 3, "it was not away when the body asked"


def test_an_answer_that_was_lost_is_asked_for_again(engine: Engine) -> None:
    """The settlement and the claim were applied, and only the answer failed: nothing runs twice, nothing is lost."""
    store = Failing(engine)
    store.after = True
    w = Builder("chain")
    for number in range(5):
        w.node(f"n{number}", job=jobs.same, args={"item": number})
    run = engine.start(w)
    eventually(lambda: run.status == "COMPLETED", seconds=10)
    assert [[attempt.status for attempt in node.attempts] for node in run.nodes()] == [["COMPLETED"]] * 5


def test_an_error_nobody_expected_does_not_stop_the_engine(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite(max_concurrent_nodes=2)
    commit = engine.store.commit
    broken: list[int] = []

    def strange(batch: Any) -> Any:
        if any(isinstance(op, Settle) for op in batch) and len(broken) < 5:
            broken.append(1)
            raise ZeroDivisionError("a defect in the store")
        return commit(batch)

    runs = [engine.start(one(0.1)) for _ in range(4)]
    engine.store.commit = strange  # type: ignore[method-assign]
    for run in runs:
        eventually(lambda run=run: run.status == "COMPLETED", seconds=15)
    assert broken
    assert engine.run(one(), wait=10).status == "COMPLETED"


def test_a_start_that_the_store_cannot_take_harms_no_other_run(engine: Engine) -> None:
    run = engine.start(one(0.05))
    with pytest.raises(Exception, match="priority"):
        engine.start(one(), priority=2**80)
    with pytest.raises(Exception, match="deadline"):
        engine.start(one(), deadline=1e300)

    assert run.wait(30).status == "COMPLETED"


def test_a_body_is_ended_in_time_though_the_store_is_locked(tmp_path: Path) -> None:
    """Nothing can be recorded, but what should stop does."""
    cancelled: list[float] = []

    class Slow(Workflow):
        number: int

        @step(timeout=1.3)
        async def hang(self) -> None:
            before = time.monotonic()
            try:
                await asyncio.sleep(20)
            finally:
                cancelled.append(time.monotonic() - before)

    def longest() -> float:
        cancelled.clear()
        with Engine(f"sqlite:///{tmp_path}/s.db") as engine:
            runs = []
            for number in range(6):
                runs.append(engine.start(Slow(number=number)))
                time.sleep(0.2)
            with write_lock(tmp_path / "s.db"):
                eventually(lambda: len(cancelled) == 6)
            for run in runs:
                assert run.wait(30).node("hang").status == "FAILED"
        return max(cancelled)

    in_time(1.4, longest)


def test_a_graph_that_is_gone_from_the_store_is_told_with_its_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with Engine(url) as engine:
        engine.start(one(), run_id="r").wait(30)
    with closing(apsw.Connection(str(tmp_path / "s.db"))) as file:
        file.execute("DELETE FROM document")
    with Engine(url, runner=None) as engine, pytest.raises(StoreCorrupt, match=r"graph .* of run r is missing"):
        engine.get("r").export_graph()
