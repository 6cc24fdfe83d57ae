"""Redis servers that crash and lose the end of what they acknowledged, fail over to a replica that lags, or are full."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell import Builder, Engine
from stepwell.errors import StoreError
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import noted
from tests.engine.waiting import eventually
from tests.servers.redis_server import RedisServer, Sentinel
from tests.stores.postgres.proxy import Proxy

TRUSTED = {"jobs": ["tests.chaos.work"]}
WIDTH = 200


def long(ledger: str) -> Builder:
    w = Builder("long")
    w.node("top", job=work.small, args={"ledger": ledger})
    parts = w.fan_out(range(WIDTH), job=work.small, args=lambda _: {"ledger": ledger})
    w.node("bottom", job=work.small, args={"ledger": ledger}, depends_on=parts)
    return w


def done_so_far(ledger: str, count: int) -> Callable[[], bool]:
    return lambda: len(noted(ledger)) >= count


def completed(engine: Engine) -> bool:
    """While nobody can be asked it is not."""
    try:
        return engine.get("r").status == "COMPLETED"
    except StoreError:
        return False


def check(engine: Engine, ledger: str) -> int:
    """The run is complete and consistent, every body ran; how many ran again."""
    run = engine.get("r").wait(60)
    assert run.status == "COMPLETED"
    audit(engine.store)
    entries = Counter(line.split()[1] for line in noted(ledger))
    assert len(entries) == WIDTH + 2
    return sum(entries.values()) - len(entries)


def with_replica() -> tuple[RedisServer, RedisServer]:
    master = RedisServer("--repl-diskless-sync-delay", "0")
    replica = RedisServer("--replicaof", f"127.0.0.1 {master.port}")
    with (
        master.client() as writing,
        replica.client() as reading,
    ):  # the link may be up a second before anything comes over it
        writing.set("probe", "1")
        eventually(lambda: reading.get("probe") == b"1", seconds=60)
    return master, replica


def has_begun_on(replica: RedisServer) -> None:
    """A replica that has not even heard of the run has lost all, not the end."""
    with replica.client() as client:
        eventually(lambda: client.exists("{stepwell}:run:attempts:1"), seconds=60)


def cut_the_log(server: RedisServer, size: int) -> None:
    """As a machine that crashed: the end of the log was never written to the disk."""
    (log,) = server.folder.glob("appendonlydir/*.incr.aof")
    os.truncate(log, max(0, log.stat().st_size - size))


@pytest.mark.parametrize("lost", [300, 8_000])
def test_a_machine_that_crashes_loses_the_end_and_the_run_goes_on(lost: int, ledger: str) -> None:
    """`appendfsync everysec`. Whole batches are lost, the last first; bodies whose completion was lost run again."""
    server = RedisServer(appendfsync="everysec")
    try:
        with Engine(server.url, max_concurrent_nodes=4, lease_seconds=2, **TRUSTED) as engine:
            engine.start(long(ledger), run_id="r")
            eventually(done_so_far(ledger, WIDTH // 2), seconds=60)
            server.kill()
            cut_the_log(server, lost)
            server.start()
            check(engine, ledger)
    finally:
        server.stop()


def test_a_replica_that_lags_takes_over_and_the_run_goes_on(ledger: str) -> None:
    """What it had not received is lost, and done again; nothing that it has contradicts itself."""
    master, replica = with_replica()
    proxy = Proxy(master.port)
    try:
        url = master.url.replace(f":{master.port}/", f":{proxy.port}/")
        with Engine(url, max_concurrent_nodes=1, lease_seconds=2, **TRUSTED) as engine:
            with replica.client() as client:
                engine.start(long(ledger), run_id="r")
                eventually(done_so_far(ledger, 20), seconds=60)
                has_begun_on(replica)
                client.replicaof("NO", "ONE")  # it hears nothing any more
            heard = len(noted(ledger))
            eventually(done_so_far(ledger, min(heard + 30, WIDTH + 2)), seconds=60)
            master.kill()
            proxy.to_port = replica.port
            assert check(engine, ledger) > 0, "nothing was lost, so this proves little"
    finally:
        proxy.close()
        replica.stop()
        master.stop()


def test_sentinels_name_another_server_and_the_run_goes_on(ledger: str) -> None:
    master, replica = with_replica()
    sentinel = Sentinel(master)
    try:
        with sentinel.client() as watching:
            eventually(lambda: int(watching.sentinel_master("main")["num-slaves"]) == 1, seconds=60)
        with Engine(f"redis+sentinel://127.0.0.1:{sentinel.port}/main/0", lease_seconds=5, **TRUSTED) as engine:
            engine.start(long(ledger), run_id="r")
            eventually(done_so_far(ledger, WIDTH // 3), seconds=60)
            has_begun_on(replica)
            master.kill()
            eventually(lambda: completed(engine), seconds=90)
            check(engine, ledger)
        with replica.client() as client:
            eventually(lambda: client.info("replication")["role"] == "master", seconds=60)
    finally:
        sentinel.stop()
        replica.stop()
        master.stop()


def test_a_full_server_is_waited_for_and_nothing_runs_twice(ledger: str) -> None:
    server = RedisServer("--maxmemory-policy", "noeviction")
    try:
        with (
            Engine(server.url, max_concurrent_nodes=4, lease_seconds=60, **TRUSTED) as engine,
            server.client() as client,
        ):
            engine.start(long(ledger), run_id="r")
            for share in (0.3, 0.6):
                eventually(done_so_far(ledger, int(WIDTH * share)), seconds=60)
                client.config_set("maxmemory", "1mb")
                before = int(client.info("errorstats").get("errorstat_OOM", {"count": 0})["count"])
                eventually(
                    lambda before=before: (
                        int(client.info("errorstats").get("errorstat_OOM", {"count": 0})["count"]) > before
                    ),
                    seconds=60,
                )
                client.config_set("maxmemory", "0")
            assert check(engine, ledger) == 0
    finally:
        server.stop()


def test_a_worker_that_was_stopped_is_fenced_when_it_comes_back(
    tmp_path: Path, ledger: str, start_child: StartChild
) -> None:
    server = RedisServer()
    go_on = tmp_path / "go-on"
    w = Builder("held")
    w.node("hold", job=work.hold, args={"ledger": ledger, "go_on": str(go_on)})
    w.node("after", job=work.small, args={"ledger": ledger})
    try:
        with Engine(server.url, runner=None) as starter:
            run_id = starter.start(w).id
        child = start_child(work.serve, server.url, lease_seconds=1, **TRUSTED)
        eventually(lambda: noted(ledger), seconds=60)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGSTOP)
        with Engine(server.url, lease_seconds=1, **TRUSTED) as engine:
            run = engine.adopt(run_id).wait(60)
            assert run.output("hold") == "attempt 2"
            os.kill(child.pid, signal.SIGCONT)
            go_on.touch()
            eventually(lambda: f"ended 1 {child.pid}" in noted(ledger))
            later = Builder("later")  # it lives and works again: what it did meanwhile was refused
            later.node("small", job=work.small, args={"ledger": ledger})
            with Engine(server.url, runner=None) as starter:
                assert starter.start(later).wait(60).status == "COMPLETED"
            assert [attempt.status for attempt in run.node("hold").attempts] == ["LOST", "COMPLETED"]
            assert run.output("hold") == "attempt 2"
            assert len(run.node("after").attempts) == 1
            audit(engine.store)
    finally:
        server.stop()
