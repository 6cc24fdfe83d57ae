"""A runner inside a process that messages drive: it works when it is told to, and tells what it leaves to others."""

from __future__ import annotations

import threading
import time

from stepwell import Builder, Engine, Run
from stepwell.model import NodeStatus
from stepwell.store.reader import count_nodes
from tests.runner.conftest import OpenEngine
from tests.runner.test_several_engines import Small
from tests.runner.waiting import eventually, housekeeping_stopped

RELEASED = threading.Event()


def wait_for_it() -> None:
    assert RELEASED.wait(20)


BEGUN: list[int] = []


def wait_at_the_thirtieth() -> None:
    BEGUN.append(len(BEGUN))
    if len(BEGUN) == 30:
        wait_for_it()


def completed(engine: Engine, run: Run) -> int:
    return count_nodes(engine.store, run.id).get(NodeStatus.COMPLETED, 0)


def test_it_works_only_when_it_is_told_to(open_sqlite: OpenEngine) -> None:
    starter = open_sqlite(runner=None)
    server = open_sqlite(workflows=[Small])
    runner = server._runner
    assert runner is not None
    runner.rest()
    runs = [starter.start(Small(number=number)) for number in range(5)]
    time.sleep(0.3)
    assert {run.status for run in runs} == {"PENDING"}
    assert runner.work_off(20), "until nothing is left"
    assert {run.status for run in runs} == {"COMPLETED"}
    late = starter.start(Small(number=9))
    time.sleep(0.3)
    assert late.status == "PENDING", "and then it rests again"
    assert runner.work_off(20)
    assert late.status == "COMPLETED"


def test_it_stops_claiming_when_its_time_is_over(open_sqlite: OpenEngine) -> None:
    RELEASED.clear()
    engine = open_sqlite(max_concurrent_nodes=1, queue_depth=0)
    builder = Builder("waits")
    builder.fan_out(range(3), job=wait_for_it, args=lambda _: {})
    run = engine.start(builder)
    runner = engine._runner
    assert runner is not None
    begun = time.monotonic()
    assert not runner.work_off(0.3)
    assert time.monotonic() - begun < 5
    RELEASED.set()
    deadline = time.monotonic() + 10
    while not completed(engine, run) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    assert completed(engine, run) == 1, "what it held ends, and nothing else is claimed"
    assert runner.work_off(20)
    assert run.status == "COMPLETED"


def test_what_it_claimed_ahead_of_a_body_that_takes_long_is_given_back(open_sqlite: OpenEngine) -> None:
    RELEASED.clear()
    engine = open_sqlite(max_concurrent_nodes=1)
    runner = engine._runner
    assert runner is not None
    runner.rest()
    builder = Builder("queues")
    builder.fan_out(range(60), job=wait_at_the_thirtieth, args=lambda _: {})
    BEGUN.clear()
    run = engine.start(builder)
    working = threading.Thread(target=runner.work_off, args=(60,))
    try:
        with housekeeping_stopped(engine):
            working.start()
            eventually(lambda: len(BEGUN) == 30)
            left = {NodeStatus.COMPLETED: 29, NodeStatus.RUNNING: 1, NodeStatus.READY: 30}
            eventually(lambda: count_nodes(engine.store, run.id) == left, "what nobody works on is left to others")
    finally:
        RELEASED.set()
        working.join(60)
    assert runner.work_off(60)
    assert run.status == "COMPLETED"


def test_others_are_told_of_what_is_more_than_it_takes(open_sqlite: OpenEngine) -> None:
    RELEASED.clear()
    told: list[tuple[str, int]] = []
    engine = open_sqlite(max_concurrent_nodes=2, queue_depth=0)
    builder = Builder("wide")
    builder.fan_out(range(40), job=wait_for_it, args=lambda _: {})
    engine.start(Small(number=1)).wait(10)
    runner = engine._runner
    assert runner is not None
    runner.on_surplus(lambda queue, count: told.append((queue, count)))
    run = engine.start(builder)
    RELEASED.set()
    run.wait(20)
    assert told, "nobody heard of it"
    assert {queue for queue, _ in told} == {"default"}
    assert max(count for _, count in told) <= 40
    assert len(told) < 40, "few messages however wide the graph"
