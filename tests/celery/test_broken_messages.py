"""Whoever can write to the broker can send hints, and nothing that ends a worker."""

from __future__ import annotations

import json

import pytest
import redis

from stepwell.engine.broker_app import make_app
from stepwell.engine.hint_sender import TASK, broker_queue_name
from stepwell.engine.reports.workers import describe_workers
from tests.celery import work
from tests.engine.waiting import eventually
from tests.servers.fleet import Fleet

WORK = "tests.celery.work"


def message(headers: object, body: object = "W10=", **properties: object) -> bytes:
    """A message as kombu writes it; `W10=` is an empty list."""
    delivery = {"exchange": "", "routing_key": "stepwell.default"}
    usual = {"delivery_tag": "t", "delivery_info": delivery, "body_encoding": "base64", "delivery_mode": 1}
    envelope = {"body": body, "content-encoding": "utf-8", "content-type": "application/json", "headers": headers}
    return json.dumps(envelope | {"properties": usual | properties}).encode()


GARBAGE = [
    b"",
    b"not json",
    b"\xff\xfe\x00",
    b"[]",
    b"7",
    b"{}",
    b"[" * 100_000,
    b'{"body": 1, "headers": null, "properties": {}}',
    message(None),
    message({}),
    message({"task": TASK}),
    message({"task": ["unhashable"], "id": "1"}),
    message({"task": "celery.no_such_task", "id": "1"}),
    message({"task": TASK, "id": 7, "eta": "yesterday"}),
    message({"task": TASK, "id": "1", "timelimit": "long"}),
    message({"task": TASK, "id": "1", "compression": "zlib"}),
    message({"task": TASK, "id": "1", "retries": []}, body="!"),
    message({"task": TASK, "id": "1"}, body_encoding="rot13"),
    message({"task": TASK, "id": "1"}, delivery_info=None),
]


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_no_message_ends_a_worker(fleet: Fleet, pool: str) -> None:
    """Two workers of one machine, neither of which was given a name."""
    workers = [fleet.start("worker", WORK, "-c", 1, "--pool", pool) for _ in range(2)]
    for worker in workers:
        eventually(lambda: "ready." in worker.said, seconds=60, show=lambda: worker.said)  # noqa: B023
    control = make_app(fleet.broker).control
    control.shutdown()
    assert not control.ping(timeout=0.5), "nobody listens to remote control"
    with redis.Redis.from_url(fleet.broker) as broker, fleet.engine() as engine:
        named = {each.celery for each in describe_workers(engine.store)}
        for garbage in GARBAGE:
            broker.lpush(broker_queue_name("default"), garbage)
            eventually(lambda: broker.llen(broker_queue_name("default")) == 0, repr(garbage[:200]))
        for number in range(4):
            engine.start(work.Order(order_id=number)).wait(60).check()
        assert broker.hlen("unacked") == 0, "it is not delivered again"
    assert [worker.end() for worker in workers] == [0, 0], [worker.said for worker in workers]
    assert len(named) == 2, named
