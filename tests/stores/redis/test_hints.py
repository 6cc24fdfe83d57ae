"""Hints on Redis are judged by the rule that all stores share."""

import time

import pytest

from stepwell.base.ids import RunId, WorkerId
from stepwell.core.model import Hint
from stepwell.stores.redis.store import RedisStore
from tests.conformance import ops
from tests.engine.waiting import in_time
from tests.servers.redis_server import RedisServer
from tests.stores.listening import closes_while_it_begins_to_listen

WORKER, SECONDS = WorkerId("me"), 30.0
FIRST = RunId("r-1")


def test_who_waits_does_not_look_for_a_run_that_another_has_taken(url: str) -> None:
    store, other = RedisStore(url), RedisStore(url)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    assert store._hints._listening.wait(SECONDS)
    store._hints.heard.spread = 3_600.0
    other.send_hint(Hint(("default",), started=(FIRST,)))
    looking = store._hints.heard.looking[WORKER]
    heard_by = time.monotonic() + SECONDS
    while looking.at is None and time.monotonic() < heard_by:
        assert not store.wait_for_hint(None, (), WORKER, 0.05), "others look first"
    assert looking.at is not None
    other.send_hint(Hint(taken=(FIRST,)))
    while looking.at is not None and time.monotonic() < heard_by:
        assert not store.wait_for_hint(None, (), WORKER, 0.05)
    assert looking.at is None
    store.close()
    other.close()


def test_the_more_workers_there_are_the_longer_the_time_in_which_they_look(url: str) -> None:
    store = RedisStore(url)
    ops.enlist(store)
    ops.sweep(store)
    assert store._hints.heard.spread == 0.0, "who is alone looks at once"
    ops.enlist(store, "another")
    ops.sweep(store)
    assert store._hints.heard.spread > 0.0
    store.close()


def test_who_could_not_listen_for_a_while_looks_when_it_can_again(server: RedisServer, url: str) -> None:
    store = RedisStore(url)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    assert store._hints._listening.wait(SECONDS)
    with server.client() as client:
        client.client_kill_filter(_type="pubsub")
    assert store.wait_for_hint((), (), WORKER, SECONDS), "what was sent meanwhile was not heard"
    store.send_hint(Hint(runs=(FIRST,)))
    assert store.wait_for_hint((), (FIRST,), WORKER, SECONDS)
    store.close()


def test_a_store_that_is_closed_sends_no_hint(url: str) -> None:
    store, other = RedisStore(url), RedisStore(url)
    assert not other.wait_for_hint((), (), WORKER, 0)
    assert other._hints._listening.wait(SECONDS)
    store.close()
    store.send_hint(Hint(runs=(FIRST,)))
    assert not other.wait_for_hint((), (FIRST,), WORKER, 0.2)
    other.close()


def test_a_hint_that_is_sent_while_another_thread_closes_the_store_is_lost_and_raises_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisStore(url)
    pool = store._client.connection_pool
    connection = pool.get_connection()
    pool.release(connection)

    monkeypatch.setattr(connection._parser, "_sock", None)  # as it is in the midst of being closed
    with pytest.raises(TypeError):
        store._client.ping()
    store.send_hint(Hint(("default",)))
    monkeypatch.undo()
    store.close()


def test_a_store_that_is_closed_while_it_begins_to_listen_closes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RedisStore(url)
    closes_while_it_begins_to_listen(store, "stepwell-hints-in", monkeypatch)


def test_a_store_that_listens_closes_at_once(url: str) -> None:
    def close() -> float:
        store = RedisStore(url)
        assert not store.wait_for_hint(None, (), WORKER, 0)
        assert store._hints._listening.wait(SECONDS)
        began = time.monotonic()
        store.close()
        assert store._hints._thread is not None
        assert not store._hints._thread.is_alive()
        return time.monotonic() - began

    in_time(0.02, close)
