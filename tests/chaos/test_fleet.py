"""A fleet under every kind of fault, on both stores: every run ends, completions once, outputs as the oracle has them."""

from __future__ import annotations

import time

import pytest

from tests.chaos.fleet.drive import Chaos
from tests.chaos.fleet.servers import PostgresStoreServer, RedisBroker, RedisStoreServer

ON_REDIS = (Chaos.kill_process, Chaos.pause_process, Chaos.kill_store, Chaos.flush_broker, Chaos.kill_all_workers)
ON_POSTGRES = (Chaos.kill_process, Chaos.kill_store, Chaos.kill_broker, Chaos.kill_orchestrator, Chaos.deploy)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("server", "faults"), [(RedisStoreServer, ON_REDIS), (PostgresStoreServer, ON_POSTGRES)])
def test_every_promise_holds(server: type[RedisStoreServer] | type[PostgresStoreServer], faults: tuple) -> None:  # type: ignore[type-arg]
    store, broker = server(), RedisBroker()
    try:
        chaos = Chaos(store, broker)
        try:
            chaos.begin()
            for fault in faults:
                chaos.start_runs(8)
                time.sleep(0.5)
                chaos.break_something(fault)
            figures = chaos.heal_and_judge()
        finally:
            chaos.close()
    finally:
        broker.close()
        store.close()
    assert figures.runs == 8 * len(faults)
    assert sum(chaos.faults.values()) == len(faults)
