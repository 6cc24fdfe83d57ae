"""Thousands of small runs while engines come and go: nothing is lost, nothing is done twice, nobody waits for ever."""

from __future__ import annotations

import random
import threading
import time

from stepwell import Builder, Engine, StoreError
from stepwell.errors import EngineClosed
from tests.conformance.audit import audit
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.graphs import random_graph, worlds


def test_small_runs_survive_engines_that_are_closed_at_random(open_sqlite: OpenEngine) -> None:
    rng = random.Random(7)
    drawn = {f"r{number}": random_graph(number, "stress", delays=False, most=6) for number in range(300)}
    waiting = list(drawn)
    deadline = time.monotonic() + 240
    while True:
        engine = open_sqlite(max_concurrent_nodes=rng.choice([1, 4, 8]), queue_depth=rng.choice([0, 4, 64]))
        engine.work(wait=0)
        try:
            for run in waiting[:25]:
                engine.start(drawn[run].builder, run_id=run)
            del waiting[:25]
            time.sleep(rng.random() / 50)
        finally:
            unfinished = engine.runs(limit=500, status="RUNNING") + engine.runs(limit=500, status="PENDING")
            engine.close(rng.choice([0, 0, 0.05]))
        assert time.monotonic() < deadline, f"unfinished: {unfinished}"
        if not waiting and not unfinished:
            break
    looking = open_sqlite(runner=None)
    for run, each in drawn.items():
        assert looking.get(run).outputs == each.expected
    audit(looking.store)
    worlds.pop("stress")


def test_threads_that_start_and_wait_are_never_left_behind(open_sqlite: OpenEngine) -> None:
    """Every call returns or raises, also when the engine is closed in the middle of it."""
    for turn in range(8):
        engine = open_sqlite(max_concurrent_nodes=4)
        ended: list[str] = []

        def use(engine: Engine = engine, ended: list[str] = ended) -> None:
            try:
                while True:
                    w = Builder("tiny")
                    w.node("same", job=jobs.same, args={"item": 1})
                    engine.run(w)
            except (EngineClosed, StoreError) as error:
                ended.append(type(error).__name__)

        threads = [threading.Thread(target=use) for _ in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(0.05 + turn / 100)
        engine.close()
        for thread in threads:
            thread.join(60)
        assert len(ended) == 6


def test_a_chain_that_changes_between_threads_and_the_loop_never_stalls(open_engine: OpenEngine) -> None:
    engine = open_engine(max_concurrent_nodes=2)
    chains = []
    for number in range(8):
        w = Builder(f"chain-{number}")
        for place in range(60):
            w.node(f"n{place}", job=jobs.double_later if place % 2 else jobs.double, args={"item": place})
        chains.append(engine.start(w))
    for chain in chains:
        assert chain.wait(30).status == "COMPLETED"


def test_two_engines_that_are_closed_at_random_share_one_file(open_sqlite: OpenEngine) -> None:
    drawn = {f"r{number}": random_graph(number, "two", delays=False, most=6) for number in range(80)}
    starter = open_sqlite(runner=None)
    for run, each in drawn.items():
        starter.start(each.builder, run_id=run)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        while starter.runs(status="RUNNING") or starter.runs(status="PENDING"):
            engine = open_sqlite(max_concurrent_nodes=4)
            engine.work(wait=0)
            time.sleep(rng.random() / 10)
            engine.close(0)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for run, each in drawn.items():
        assert starter.get(run).outputs == each.expected
    audit(starter.store)
    worlds.pop("two")
