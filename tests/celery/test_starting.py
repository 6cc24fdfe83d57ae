"""`runner="celery"`: a run is durable when `start` returns, whatever the broker does."""

from __future__ import annotations

import base64
import gc
import json
import os
import time

import pytest

from stepwell import Engine, InputError
from stepwell.engine.broker_app import make_app
from stepwell.engine.hint_sender import MOST_QUEUED, TASK, HintSender
from tests.celery import work
from tests.engine.waiting import eventually, in_time
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer, free_port


def queued(server: RedisServer, queue: str = "default") -> int:
    with server.client() as client:
        client.execute_command("SELECT", 1)
        return int(client.llen(f"stepwell.{queue}"))


def test_a_start_is_told_to_the_queues_of_its_graph(fleet: Fleet, redis_server: RedisServer) -> None:
    with fleet.engine() as engine:
        run = engine.start(work.Gpu())
        assert run.status == "PENDING", "no worker is inside"
    assert (queued(redis_server), queued(redis_server, "gpu")) == (1, 1)


def test_a_hint_asks_for_nothing_and_says_nothing_that_must_be_trusted(fleet: Fleet, redis_server: RedisServer) -> None:
    """No result, which an application with a result backend would keep for a day; and no disk for what may be lost."""
    sender = HintSender(make_app(fleet.broker))
    assert sender.send(["default"], wait=30)
    sender.close()
    with redis_server.client() as client:
        client.execute_command("SELECT", 1)
        message = json.loads(client.lindex("stepwell.default", 0))
    headers, properties = message["headers"], message["properties"]
    assert (headers["task"], headers["ignore_result"], headers["retries"]) == (TASK, True, 0)
    assert message["content-type"] == "application/json"
    assert properties["delivery_mode"] == 1
    assert properties["delivery_info"]["routing_key"] == "stepwell.default"
    arguments, keywords, _ = json.loads(base64.b64decode(message["body"]))
    assert arguments == []
    assert keywords.pop("queue") == "default"
    assert abs(keywords.pop("sent_at") - time.time()) < 3_600
    assert keywords == {}


def test_a_fork_is_told_too(fleet: Fleet, redis_server: RedisServer) -> None:
    with fleet.engine() as engine:
        run = engine.start(work.Gpu())
        eventually(lambda: (queued(redis_server), queued(redis_server, "gpu")) == (1, 1))
        run.fork(1)
        eventually(lambda: (queued(redis_server), queued(redis_server, "gpu")) == (2, 2))


def test_with_the_broker_down_a_start_neither_fails_nor_waits(fleet: Fleet) -> None:
    with Engine(fleet.store, runner="celery", broker=f"redis://127.0.0.1:{free_port()}/0") as engine:

        def measure() -> float:
            before = time.monotonic()
            assert engine.start(work.Order(order_id=1)).status == "PENDING"
            return time.monotonic() - before

        in_time(0.25, measure)


def test_a_hint_is_sent_when_the_broker_is_back(fleet: Fleet) -> None:
    broker = RedisServer()
    try:
        broker.kill()
        with Engine(fleet.store, runner="celery", broker=broker.url) as engine:
            engine.start(work.Order(order_id=1))
            broker.start()
            with broker.client() as client:
                eventually(lambda: client.llen("stepwell.default"), "the hint was lost")
    finally:
        broker.stop()


def test_a_sender_says_whether_a_hint_was_sent_and_leaves_no_connection(
    fleet: Fleet, redis_server: RedisServer
) -> None:
    def connections() -> int:
        with redis_server.client() as client:
            return len(client.client_list())

    before = connections()
    sender, unused = HintSender(make_app(fleet.broker)), HintSender(make_app(fleet.broker))
    assert sender.send(["default"], wait=30)
    assert queued(redis_server) == 1, "when it says so, it is there"
    sender.send(["gpu"])
    for each in (sender, unused):
        each.close()
        assert not each.send(["default"], wait=1), "it is closed"
    assert (queued(redis_server), queued(redis_server, "gpu")) == (1, 1), "what was left is sent, and nothing after it"
    eventually(lambda: connections() <= before, show=connections)


def test_while_the_broker_is_away_nobody_waits_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    broker = RedisServer()
    sender = HintSender(make_app(broker.url))
    try:
        broker.kill()
        sender.send(["default"], wait=30)
        eventually(lambda: "cannot be told of work" in caplog.text)
        before = time.monotonic()
        for queue in ("default", "gpu"):
            assert not sender.send([queue], wait=30)
        assert time.monotonic() - before < 10
        broker.start()
        with broker.client() as client:
            eventually(lambda: client.llen("stepwell.default") and client.llen("stepwell.gpu"), "a hint was lost")
        eventually(lambda: "is told of work again" in caplog.text)
        assert sender.send(["default"], wait=30)
    finally:
        sender.close()
        broker.stop()
    assert len(caplog.messages) == 2, "of an outage people are told once, and of its end"


def test_a_sender_that_is_gone_does_not_disturb_a_fork(fleet: Fleet, capfd: pytest.CaptureFixture[str]) -> None:
    HintSender(make_app(fleet.broker)).close()
    gc.collect()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert "Traceback" not in capfd.readouterr().err


def test_hints_do_not_pile_up_while_no_worker_is_there(fleet: Fleet, redis_server: RedisServer) -> None:
    sender = HintSender(make_app(fleet.broker))
    for _ in range(300):
        sender.send(["default"], wait=5)
    sender.close()
    assert 0 < queued(redis_server) <= MOST_QUEUED
    with fleet.engine() as engine:
        engine.start_many(work.Order(order_id=number) for number in range(2_000))
    assert queued(redis_server) <= MOST_QUEUED


def test_an_engine_from_before_a_fork_works_after_it(fleet: Fleet, redis_server: RedisServer) -> None:
    """Starts that come in quick succession may share a hint."""
    with fleet.engine() as engine:
        before = engine.start(work.Order(order_id=1))
        eventually(lambda: queued(redis_server) == 1)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                runs = [engine.start(work.Order(order_id=number)) for number in (2, 3)]
                eventually(lambda: queued(redis_server) > 1)
                code = 0 if {run.status for run in runs} == {"PENDING"} and before.status == "PENDING" else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        told = queued(redis_server)
        assert engine.start(work.Order(order_id=4)).status == "PENDING"
        assert len(engine.runs()) == 4
    assert queued(redis_server) > told


@pytest.mark.parametrize("broker", [None, "localhost", 7])
def test_what_is_no_broker_is_refused(broker: object) -> None:
    with pytest.raises(InputError, match="broker"):
        Engine("memory://", runner="celery", broker=broker)
