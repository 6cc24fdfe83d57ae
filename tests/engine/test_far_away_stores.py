"""The runner does not assume a store that answers in microseconds: it asks seldom, and never for one run after the other."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from bench.slow_store import SlowStore
from stepwell import Builder, Engine
from tests.engine import jobs
from tests.engine.test_several_engines import Small
from tests.engine.waiting import in_time


@pytest.fixture
def far() -> SlowStore:
    return SlowStore()


def chain(length: int) -> Builder:
    builder = Builder("chain")
    for number in range(length):
        builder.node(f"n{number}", job=jobs.nothing)
    return builder


def test_a_chain_costs_one_commit_a_node(far: SlowStore) -> None:
    with Engine(far) as engine:
        engine.run(chain(3))

        def measure() -> float:
            far.calls.clear()
            begun = time.monotonic()
            engine.run(chain(100), wait=60)
            seconds = time.monotonic() - begun
            calls = Counter(far.calls)
            periods = seconds / 0.2 + 2  # the stop list, while a body is held; sweeps and renewals are fewer
            assert calls["commit"] <= 102 + seconds + 2
            assert calls["read"] <= periods + 4, "what is read grows with time, not with nodes"
            assert calls["now"] == 0
            return seconds

        in_time(2 * 102 * 0.02 + 1, measure, tries=4)


def test_a_fan_costs_few_commits(far: SlowStore) -> None:
    with Engine(far) as engine:
        engine.run(chain(3))
        builder = Builder("fan")
        builder.node("first", job=jobs.nothing)
        builder.fan_out(range(1_000), job=jobs.nothing, args=lambda _: {})
        builder.node("last", job=jobs.nothing)
        far.calls.clear()
        begun = time.monotonic()
        engine.run(builder, wait=60)
        seconds = time.monotonic() - begun
        assert far.calls["commit"] < 150
        assert far.calls["read"] <= seconds / 0.2 + 8
        assert far.calls["now"] == 0


def test_runs_of_others_are_not_read_one_by_one(far: SlowStore) -> None:
    with Engine(far, runner=None) as starter:
        runs = starter.start_many([Small(number=number) for number in range(60)])
        far.calls.clear()
        with Engine(far, workflows=[Small]):
            begun = time.monotonic()
            while any(run.status != "COMPLETED" for run in runs[-3:]) and time.monotonic() < begun + 30:
                time.sleep(0.1)
            looks = int((time.monotonic() - begun) / 0.1) + 1
            assert all(run.status == "COMPLETED" for run in runs)
            assert far.calls["read"] - 3 * looks - 60 < 60, "fewer than there are runs"
