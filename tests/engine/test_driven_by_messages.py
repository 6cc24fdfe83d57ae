"""A runner inside a process that messages drive: it works when it is told to, and tells what it leaves to others."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from stepwell import Builder, Engine, Run
from stepwell.base.ids import RunId
from stepwell.core.model import GateState, Hint, NodeStatus
from stepwell.core.store.reader import count_nodes
from stepwell.engine.reports.workers import describe_workers
from stepwell.engine.worker import sharing
from stepwell.engine.worker.sharing import FEW_RUNS, Others
from tests.engine.conftest import OpenEngine
from tests.engine.test_several_engines import Small
from tests.engine.waiting import eventually, housekeeping_stopped

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
    runner = server.parts.work.runner
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


def test_while_it_rests_it_asks_to_be_driven_when_there_may_be_more_for_it(open_sqlite: OpenEngine) -> None:
    """When it is to serve more workflows, and when runs of its own are ready."""
    engine = open_sqlite()
    runner = engine.parts.work.runner
    assert runner is not None
    asked = threading.Event()
    runner.rest(asked.set)
    runner.serve({})
    assert not asked.is_set(), "for nothing"
    graph = engine.parts.code.definition_of(Small(number=1)).graph
    runner.serve({("Small", graph.digest): frozenset()})
    assert asked.is_set()
    asked.clear()
    engine.start(Small(number=1))
    eventually(asked.is_set)


def test_others_read_what_drives_it_and_whether_it_is_idle(open_sqlite: OpenEngine) -> None:
    engine = open_sqlite()
    runner = engine.parts.work.runner
    assert runner is not None
    cases: list[tuple[dict[str, Any], tuple[str | None, bool]]] = [
        ({"celery": "w@here", "idle": True}, ("w@here", True)),
        ({"celery": "w@here"}, ("w@here", False)),
        ({"celery": 7, "idle": "yes"}, (None, False)),
        ({}, (None, False)),
    ]
    for said, expected in cases:
        runner.describe(**said)
        runner.announce()
        (worker,) = describe_workers(engine.store)
        assert (worker.celery, worker.idle) == expected


def test_it_stops_claiming_when_its_time_is_over(open_sqlite: OpenEngine) -> None:
    RELEASED.clear()
    engine = open_sqlite(max_concurrent_nodes=1, queue_depth=0)
    builder = Builder("waits")
    builder.fan_out(range(3), job=wait_for_it, args=lambda _: {})
    run = engine.start(builder)
    runner = engine.parts.work.runner
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


def test_it_ends_early_when_it_is_told_to(open_sqlite: OpenEngine) -> None:
    """The process is closed or replaced: what is left is for others, and nothing says that all is done."""
    RELEASED.clear()
    engine = open_sqlite(max_concurrent_nodes=1, queue_depth=0)
    builder = Builder("waits")
    builder.fan_out(range(3), job=wait_for_it, args=lambda _: {})
    run = engine.start(builder)
    runner = engine.parts.work.runner
    assert runner is not None
    begun = time.monotonic()
    assert not runner.work_off(60, until=lambda: count_nodes(engine.store, run.id).get(NodeStatus.RUNNING, 0) > 0)
    assert time.monotonic() - begun < 20
    assert runner.scheduler.resting
    assert not runner.wait_until_idle(0.05), "a body is still at work"
    RELEASED.set()
    assert runner.wait_until_idle(20)
    assert completed(engine, run) == 1
    assert runner.work_off(60)


def test_what_it_claimed_ahead_of_a_body_that_takes_long_is_given_back(open_sqlite: OpenEngine) -> None:
    RELEASED.clear()
    engine = open_sqlite(max_concurrent_nodes=1)
    runner = engine.parts.work.runner
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
    runner = engine.parts.work.runner
    assert runner is not None
    runner.on_surplus(lambda queue, count: told.append((queue, count)))
    run = engine.start(builder)
    RELEASED.set()
    run.wait(20)
    assert told, "nobody heard of it"
    assert {queue for queue, _ in told} == {"default"}
    assert max(count for _, count in told) <= 40
    assert len(told) < 40, "few messages however wide the graph"


def test_hints_of_surplus_work_become_rarer_as_long_as_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one at once; when others have taken it all, the next surplus is told at once again."""
    at, surplus, told = [100.0], {"default": 3}, list[tuple[float, str, int]]()
    monkeypatch.setattr(sharing, "time", SimpleNamespace(monotonic=lambda: at[0]))
    sent: list[Hint] = []
    store: Any = SimpleNamespace(needs_hints=True, send_hint=sent.append)
    waiting = SimpleNamespace(surplus=lambda: surplus)
    scheduler: Any = SimpleNamespace(waiting=waiting, full=True, worker="me")
    teller = Others(store, scheduler, threading.Lock(), lambda queue, count: told.append((at[0], queue, count)))

    def look_for(seconds: float) -> list[float]:
        """After how long it told of something, each time."""
        began, count = at[0], len(told)
        while at[0] < began + seconds:
            teller.tell_again()
            at[0] += 1 / 64
        times = [began, *(moment for moment, _, _ in told[count:])]
        return [later - earlier for earlier, later in pairwise(times)]

    assert look_for(8) == pytest.approx([0, 0.1, 0.2, 0.4, 0.8, 1.6, 1.6, 1.6, 1.6], abs=1 / 32)
    assert {(queue, count) for _, queue, count in told} == {("default", 3)}
    assert [hint.queues for hint in sent] == [("default",)] * len(told)
    assert {hint.senders for hint in sent} == {("me",)}
    surplus = {}
    assert look_for(3) == []
    surplus = {"gpu": 1}
    assert look_for(0.4) == pytest.approx([0, 0.1, 0.2], abs=1 / 32)
    store.needs_hints = False
    count = len(sent)
    look_for(5)
    assert len(sent) == count, "the other processes look into the same file"


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("runs", [0, 1, FEW_RUNS, FEW_RUNS + 1])
def test_others_are_told_which_of_their_runs_are_taken_and_which_have_ended(full: bool, runs: int) -> None:
    sent: list[Hint] = []
    store: Any = SimpleNamespace(needs_hints=True, send_hint=sent.append)
    scheduler: Any = SimpleNamespace(waiting=SimpleNamespace(surplus=dict), full=full, worker="me")
    teller = Others(store, scheduler, threading.Lock())
    names = tuple(RunId(f"run{number}") for number in range(runs))
    for name in names:
        teller.took(name)
    news = {number: SimpleNamespace(run_id=number, gate=gate) for number, gate in enumerate(GateState)}
    teller.tell(SimpleNamespace(news=news))  # type: ignore[arg-type]
    (hint,) = sent
    assert hint.taken == (() if full or runs > FEW_RUNS else names), "if there are more, others are needed"
    assert hint.runs == tuple(each.run_id for each in news.values() if each.gate is not GateState.OPEN)
    sent.clear()
    teller.tell(SimpleNamespace(news={}))  # type: ignore[arg-type]
    assert sent == [], "nothing has happened since"
