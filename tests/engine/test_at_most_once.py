"""`on_lost="interrupt"`: the body runs at most once for each request, whatever happens to its worker."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pytest

from stepwell import Builder, Context, Engine, RunFailed, Workflow, step
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


def test_a_body_that_does_not_end_when_the_engine_closes_is_interrupted_and_not_run_again(
    open_sqlite: OpenEngine,
) -> None:
    entries: list[int] = []
    began, release = threading.Event(), threading.Event()

    class Charge(Workflow):
        @step(on_lost="interrupt")
        def charge(self, ctx: Context) -> str:
            entries.append(ctx.attempt)
            began.set()
            release.wait(10)
            return "charged"

    first = open_sqlite(close_seconds=0.1)
    run = first.start(Charge())
    began.wait(30)
    first.close()
    second = open_sqlite(workflows=[Charge])
    again = second.get(run.id)
    again.wait(30)
    node = again.node("charge")
    assert (again.status, node.status, node.attempts[0].status) == ("FAILED", "INTERRUPTED", "LOST")
    with pytest.raises(RunFailed, match="failed at node 'charge', attempt 1"):
        again.check()
    assert entries == [1]
    release.set()
    again.retry().wait(30)
    assert (again.output("charge"), entries) == ("charged", [1, 2])


def test_a_timeout_interrupts(engine: Engine) -> None:
    release = threading.Event()

    class Charge(Workflow):
        @step(on_lost="interrupt", timeout=0.1)
        def charge(self) -> None:
            release.wait(10)

    run = engine.run(Charge(), check=False)
    node = run.node("charge")
    release.set()
    assert (run.status, node.status, node.attempts[0].status) == ("FAILED", "INTERRUPTED", "TIMED_OUT")


def test_a_plain_failure_is_a_plain_failure(engine: Engine) -> None:
    class Charge(Workflow):
        @step(on_lost="interrupt")
        def charge(self) -> None:
            raise ValueError("refused")

    assert engine.run(Charge(), check=False).node("charge").status == "FAILED"


def test_such_a_node_never_waits_in_memory(open_engine: OpenEngine) -> None:
    """It is claimed when a slot is free, so a lost worker takes only bodies with it that have begun."""
    most = 0

    class Careful(Workflow):
        number: int

        @step(on_lost="interrupt")
        def charge(self) -> None:
            nonlocal most
            assert engine.parts.work.runner is not None
            most = max(most, len(engine.parts.work.runner.scheduler.held))
            time.sleep(0.001)

    engine = open_engine(max_concurrent_nodes=3)
    for run in engine.start_many(Careful(number=number) for number in range(60)):
        assert run.wait(20).status == "COMPLETED"
    assert most <= 3


def test_closing_at_any_moment_never_runs_a_body_twice(open_sqlite: OpenEngine) -> None:
    """A body is either given back before it begins, or it has begun and is never run again by itself."""
    entries: list[int] = []
    lock = threading.Lock()

    class Careful(Workflow):
        number: int

        @step(on_lost="interrupt")
        def charge(self) -> int:
            with lock:
                entries.append(self.number)
            return self.number

    engine = open_sqlite(workflows=[Careful], max_concurrent_nodes=4)
    runs = engine.start_many(Careful(number=number) for number in range(120))
    for turn in itertools.count():
        time.sleep(0.004 + turn / 5_000)  # longer and longer: a slow machine gets there too
        engine.close(0)
        engine = open_sqlite(workflows=[Careful], max_concurrent_nodes=4)
        statuses = [engine.get(run.id).status for run in runs]
        if all(status.terminal for status in statuses):
            break
    assert len(entries) == len(set(entries))
    for run, status in zip(runs, statuses, strict=True):
        number = run_number(engine, run.id)
        assert status == "COMPLETED" or number in entries, "interrupted though it never began"


def run_number(engine: Engine, run_id: str) -> int:
    number: int = engine.get(run_id).input["number"]
    return number


def test_a_careful_node_waits_for_a_free_slot_and_not_for_an_idle_engine(open_engine: OpenEngine) -> None:
    """While another run keeps the only slot busy all the time, it still gets its turn."""
    busy = threading.Event()

    class Chain(Workflow):
        number: int

        @step
        def work(self) -> None:
            time.sleep(0.001)

    class Careful(Workflow):
        @step(on_lost="interrupt")
        def charge(self) -> None: ...

    engine = open_engine(max_concurrent_nodes=1)

    def keep_busy() -> None:
        number = 0
        while not busy.is_set():
            number += 1
            engine.start(Chain(number=number))
            time.sleep(0.0005)

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        for _ in range(10):
            assert engine.start(Careful()).wait(30).status == "COMPLETED"
    finally:
        busy.set()
        thread.join()
    eventually(lambda: not engine.runs(status="RUNNING") and not engine.runs(status="PENDING"), seconds=20)


def test_who_retries_an_interrupted_node_is_told_to_look_first(engine: Engine) -> None:
    release = threading.Event()

    class Paying(Workflow):
        @step(on_lost="interrupt", timeout=0.1)
        def pay(self) -> None:
            release.wait(10)

    with pytest.raises(RunFailed, match="look whether it did its work before you retry it"):
        engine.run(Paying())
    release.set()


ENDED: list[str] = []
"""The ids of nodes that run at most once and whose body has ended."""
LOOKS: list[dict[str, str]] = []
"""What another body found of them in the store when it began."""
ENGINES: list[Engine] = []


def look(ctx: Context) -> None:
    run = ENGINES[-1].get(ctx.run_id)
    LOOKS.append({node: run.node(node).status for node in ENDED})
    if ctx.node_name.startswith("once"):
        ENDED.append(ctx.node_id)


def test_it_is_settled_before_its_thread_begins_another_body(open_sqlite: OpenEngine) -> None:
    """Its worker could die in the moment that a settlement waits for others, and nobody would know that it has ended."""
    ENGINES.append(open_sqlite(max_concurrent_nodes=1))
    ENDED.clear()
    LOOKS.clear()
    w = Builder("mixed")
    for number in range(12):
        options: Any = {"on_lost": "interrupt"} if number % 4 == 1 else {}
        w.node(f"{'once' if options else 'plain'}{number}", job=look, depends_on=None, **options)
    ENGINES[-1].run(w)
    assert any(LOOKS), "no body began after one of them"
    assert {status for found in LOOKS for status in found.values()} == {"COMPLETED"}
