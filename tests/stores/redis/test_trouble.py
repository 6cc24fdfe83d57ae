"""Servers that are flushed, full, cut off or shared with others."""

import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from stepwell import Builder, Context, Engine
from stepwell.base.clock import SECOND
from stepwell.base.ids import RunId, WorkerId
from stepwell.core.model import AttemptStatus, Enlist, GetRun, NodeStatus, Settle, Sweep
from stepwell.core.store import reader
from stepwell.errors import NotStored, StepwellError, StoreCorrupt, StoreError, StoreFull, StoreReplaced
from stepwell.stores import open_store
from stepwell.stores.redis.library import library
from stepwell.stores.redis.store import LAYOUT, RedisStore
from tests.conformance.audit import audit
from tests.conformance.ops import RUN, claim, completed, enlist, fan, graph, serve, start, work
from tests.engine import jobs
from tests.engine.waiting import eventually
from tests.servers.redis_server import RedisServer


def test_a_store_that_is_closed_says_so_whatever_is_asked(url: str) -> None:
    store = RedisStore(url)
    store.close()
    for use in (store.now, lambda: store.commit([Sweep()]), lambda: store.read([GetRun(RunId("run-1"))])):
        with pytest.raises(StoreError, match="is closed"):
            use()


def test_a_store_that_was_flushed_says_so_and_writes_nothing(server: RedisServer, url: str) -> None:
    store = RedisStore(url)
    start(store, graph(a=""))
    with server.client() as client:
        client.flushall()
        for use in (lambda: store.commit([Sweep()]), lambda: store.read([GetRun(RunId("run-1"))])):
            with pytest.raises(StoreReplaced, match="is gone or was exchanged"):
                use()
        assert client.dbsize() == 0
    later = RedisStore(url)
    assert reader.get_run(later, "run-1") is None
    with pytest.raises(StoreReplaced):  # others have begun anew under its name
        enlist(store)
    later.close()
    store.close()


def test_a_server_that_lost_the_library_gets_it_again(server: RedisServer, url: str) -> None:
    store = RedisStore(url)
    with server.client() as client:
        client.execute_command("FUNCTION", "FLUSH")
    serve(store, graph(a="", b="a"))
    assert work(store) == 2
    store.close()


def test_a_full_server_refuses_the_whole_batch(url: str) -> None:
    own = RedisServer("--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
    try:
        store = RedisStore(own.url)
        serve(store, fan(20))
        (root,) = claim(store)
        with own.client() as client:
            client.config_set("maxmemory", "1mb")
            with pytest.raises(StoreFull, match="nothing was written, and it is sent again"):
                store.commit([completed(root)])
            audit(store)
            assert reader.get_node(store, "run-1", 0).status == "RUNNING"
            client.config_set("maxmemory", "0")
        assert work(store) == 0
        store.commit([completed(root)])
        assert work(store) == 21
        store.close()
    finally:
        own.stop()


def test_a_commit_that_was_cut_off_is_sent_again(server: RedisServer, url: str) -> None:
    """The connection ends again and again while a run is worked on; every batch is applied once."""
    store = RedisStore(url)
    serve(store, fan(50))
    ended = threading.Event()

    def cut() -> None:
        with server.client() as client:
            while not ended.wait(0.005):
                client.client_kill_filter(_type="normal", skipme=True)

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        done = 0
        while done < 52:
            try:
                done += work(store, limit=5)
            except StoreError:
                done = sum(row.status == "COMPLETED" for row in _nodes(store))
    finally:
        ended.set()
        cutter.join()
    audit(store)
    assert {row.attempt for row in reader.all_nodes(store, "run-1")} == {1}
    store.close()


def _nodes(store: RedisStore) -> list[object]:
    while True:
        try:
            for row in reader.list_attempts(store, "run-1"):
                if row.status == "RUNNING":
                    store.commit([Settle(row.id, AttemptStatus.COMPLETED, NodeStatus.COMPLETED, b"null")])
            return list(reader.all_nodes(store, "run-1"))
        except StoreError:
            continue


def test_two_namespaces_know_nothing_of_each_other(server: RedisServer, url: str) -> None:
    one, other = RedisStore(url), RedisStore(f"{url}-other")
    start(one, graph(a=""))
    assert reader.get_run(other, "run-1") is None
    assert other.commit([Enlist(WorkerId("w"), SECOND, b"{}")])
    one.close()
    other.close()


def test_a_user_needs_only_its_keys_and_a_few_commands(server: RedisServer) -> None:
    """The rights that docs/redis.md lists."""
    with server.client() as client:
        rules = (
            (Path(__file__).parents[3] / "docs" / "redis.md")
            .read_text()
            .partition("ACL SETUSER app ")[2]
            .partition("```")[0]
        )
        rights = rules.replace("\\\n", " ").replace("PASSWORD", "s3cret").replace("stepwell", "limited").split()
        sent = re.findall(r"(?:call|later|send_many|'many',)[( ]'([A-Z]+)'", library().text)
        assert {f"+{command.lower()}" for command in sent} <= set(rights)
        client.execute_command("ACL", "SETUSER", "app", *rights)
        try:
            base = f"redis://app:s3cret@127.0.0.1:{server.port}/0"
            store = open_store(f"{base}?namespace=limited")
            serve(store, graph(a="", b="a"))
            assert work(store) == 2
            store.close()
            with pytest.raises(StoreError, match="refuses this user") as caught:
                open_store(f"{base}?namespace=elsewhere")
            assert "s3cret" not in str(caught.value)
        finally:
            client.execute_command("ACL", "DELUSER", "app")


def test_a_worker_of_a_flushed_store_says_so_once_and_stops(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Its body is asked to stop, who waits is told, and what is there now is left alone."""
    caplog.set_level(logging.WARNING)
    own = RedisServer()
    begun, stopped = tmp_path / "begun", tmp_path / "stopped"
    try:
        with Engine(own.url, lease_seconds=1, jobs=[__name__, jobs.__name__]) as engine, own.client() as client:
            w = Builder("waits")
            w.node("only", job=until_stopped, args={"begun": str(begun), "stopped": str(stopped)})
            run = engine.start(w)
            eventually(begun.exists)
            client.flushall()
            with pytest.raises(StoreReplaced, match="is gone or was exchanged"):
                run.wait(30)
            eventually(stopped.exists)
            with pytest.raises(StoreReplaced):
                engine.start(w)
            assert client.dbsize() == 0
        with Engine(own.url, jobs=[jobs.__name__]) as again:  # begins with what is there now
            v = Builder("anew")
            v.node("only", job=jobs.same, args={"item": 1})
            again.run(v)
    finally:
        own.stop()
    told = [record.getMessage() for record in caplog.records if "this worker stops" in record.getMessage()]
    assert len(told) == 1
    assert len(caplog.records) <= 3, caplog.text
    assert "Traceback" not in caplog.text


def until_stopped(begun: str, stopped: str, ctx: Context) -> None:
    Path(begun).touch()
    while not ctx.stopping:
        time.sleep(0.01)
    Path(stopped).touch()


def test_the_server_tells_an_old_client_apart(server: RedisServer, url: str) -> None:
    """Every call names the marker; a store of a later layout is refused when it is opened."""
    store = RedisStore(url)
    with redis.Redis("127.0.0.1", server.port) as client:
        client.hset(f"{{{url.partition('namespace=')[2]}}}:marker", "marker", f"{LAYOUT + 1} of a later version")
    with pytest.raises(StoreReplaced):
        enlist(store)
    with pytest.raises(StoreError, match=f"has layout {LAYOUT + 1}, this Stepwell knows {LAYOUT}: upgrade Stepwell"):
        RedisStore(url)
    store.close()


def test_a_commit_waits_for_a_replica_if_that_is_asked_for(server: RedisServer, url: str) -> None:
    store = RedisStore(f"{url}&wait=replica&wait_seconds=0.05")
    with pytest.raises(StoreError, match="a commit was applied, and was not on the replica"):
        enlist(store)
    replica = RedisServer("--replicaof", f"127.0.0.1 {server.port}", "--repl-diskless-sync-delay", "0")
    try:
        patient = RedisStore(f"{url}&wait=replica&wait_seconds=20")
        serve(patient, graph(a="", b="a"))
        assert work(patient) == 2
        with pytest.raises(StoreError, match="is a replica, which cannot be written"):
            RedisStore(replica.url)
        patient.close()
    finally:
        replica.stop()
    store.close()


def test_keys_that_were_damaged_end_in_our_errors(server: RedisServer, url: str) -> None:
    """Each key in turn is deleted, gets another type, or other contents."""
    store = RedisStore(url)
    serve(store, fan(5))
    work(store, limit=3)
    uses: list[Callable[[], object]] = [
        lambda: (reader.require_run(store, RUN), reader.all_nodes(store, RUN), reader.get_outputs(store, RUN)),
        lambda: (reader.list_attempts(store, RUN), reader.list_journal(store, RUN), reader.all_runs(store)),
        lambda: claim(store),
        lambda: store.commit([Sweep()]),
    ]
    told = set[type[Exception]]()
    with server.client() as client:
        for key in client.keys(f"{{{url.partition('namespace=')[2]}}}:*"):
            kind, before = client.type(key), client.dump(key)
            for content in (None, "text", "garbage"):
                client.delete(key)
                if content == "text" or (content == "garbage" and kind == b"string"):
                    client.set(key, b"\xff\x00garbage")
                elif content == "garbage" and kind == b"hash":
                    client.hset(
                        key, mapping=dict.fromkeys((*map(str, range(9)), "state", "run", "head", "cells"), b"\xff\x01")
                    )
                for use in uses:
                    try:
                        use()
                    except StepwellError as error:
                        told.add(type(error))
            client.delete(key)
            client.restore(key, 0, before)
    assert {StoreCorrupt, NotStored} <= told
    store.close()
