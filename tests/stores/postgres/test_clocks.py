"""The time is that of the server: a worker's own clock may be wrong by hours."""

import time

import pytest

from stepwell import Builder, Context, Engine, Retry
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.ops import graph, start
from tests.postgres_server import PostgresServer

HOUR = 3600


def fails_once(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise ValueError("once")
    return ctx.attempt


@pytest.mark.parametrize("hours", [-6, 6])
def test_a_worker_whose_clock_is_wrong_by_hours_does_its_work_in_time(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real() + hours * HOUR)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + hours * HOUR * 10**9)
    builder = Builder("late")
    builder.node("again", job=fails_once, retry=Retry(2, base_delay=0.1))
    with Engine(postgres.new_url()) as engine:
        began = real()
        run = engine.run(builder, deadline=600)
        assert run.output("again") == 2
        assert began - 60 < run.row.created_at / 1e6 < real() + 60
        assert run.row.deadline_at is not None
        assert began + 540 < run.row.deadline_at / 1e6 < real() + 660


def test_the_time_of_a_store_is_known_before_and_after_a_commit(postgres: PostgresServer) -> None:
    store = PostgresStore(postgres.new_url())
    assert abs(store.now() / 1e6 - time.time()) < 60
    start(store, graph(a=""))
    assert abs(store.now() / 1e6 - time.time()) < 60
    store.close()
