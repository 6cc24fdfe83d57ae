"""The scenarios of the documents that the fleet was designed from, and the graphs of real pipelines, through two workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Builder, Document, Engine
from stepwell.engine.broker_app import make_app
from stepwell.engine.hint_sender import MOST_QUEUED, publish
from tests.celery import work
from tests.engine.ledger import noted
from tests.engine.waiting import eventually
from tests.servers.fleet import Fleet
from tests.servers.redis_server import RedisServer

REAL = sorted((Path(__file__).parents[3] / "shared" / "realdags").glob("*.json"))


@pytest.fixture(scope="module")
def two_workers(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    broker = redis_server.url.removesuffix("/0") + "/2"
    fleet = Fleet(f"{redis_server.url}?namespace=scenarios", broker, tmp_path_factory.mktemp("fleet"))
    for _ in range(2):
        fleet.worker("tests.celery.work", processes=1)
    yield fleet
    fleet.close()


@pytest.fixture
def engine(two_workers: Fleet) -> Iterator[Engine]:
    with two_workers.engine() as engine:
        yield engine


def test_fan_in_when_both_parents_end_in_the_same_moment(engine: Engine, tmp_path: Path) -> None:
    """ "Say nodes A and B both finish at exactly the same millisecond. C should only run once." """
    ledger, joined = str(tmp_path / "met"), str(tmp_path / "joined")
    runs = []
    for _ in range(10):
        w = Builder("fan-in")
        parents = [
            w.node(name, job=work.meet, args={"ledger": ledger, "name": name, "of": 2}, depends_on=None)
            for name in "AB"
        ]
        w.node("C", job=work.entered, args={"ledger": joined}, depends_on=parents)
        runs.append(engine.start(w))
        runs[-1].wait(60).check()
    assert Counter(noted(joined)) == {f"{run.id} C": 1 for run in runs}


def test_celery_delivers_a_message_again(engine: Engine, two_workers: Fleet, tmp_path: Path) -> None:
    """ "If Celery redelivers, we bail out early": a copy of a hint finds nothing more to do."""
    ledger = str(tmp_path / "ledger")
    w = Builder("redelivered")
    w.node("first", job=work.entered, args={"ledger": ledger})
    w.node("second", job=work.entered, args={"ledger": ledger})
    app = make_app(two_workers.broker)
    with app.connection_for_write() as connection:
        runs = []
        for _ in range(10):
            runs.append(engine.start(w))
            for _ in range(MOST_QUEUED):
                publish(app, connection, "default")
    for run in runs:
        run.wait(60).check()
    assert Counter(noted(ledger)) == {f"{run.id} {node}": 1 for run in runs for node in ("first", "second")}


def test_hints_that_are_purged_cost_only_time(engine: Engine, two_workers: Fleet, tmp_path: Path) -> None:
    """`celery purge`, while a body is at work and while others wait. A hint that is revoked is lost in the same way."""
    ledger, go_on = str(tmp_path / "ledger"), tmp_path / "go_on"
    held = engine.start(work.Held(ledger=ledger, go_on=str(go_on)))
    try:
        eventually(lambda: work.begun(ledger))
        runs = []
        with make_app(two_workers.broker).connection_for_write() as connection:
            for number in range(3):
                runs.append(engine.start(work.Order(order_id=number)))
                connection.default_channel.queue_purge("stepwell.default")
    finally:
        go_on.touch()  # or the other tests would wait for its worker
    for run in (held, *runs):
        run.wait(60).check()
    assert held.output("hold") == 1, "its body was left alone"
    assert len(work.begun(ledger)) == 1


def test_nothing_moves_after_a_failure_and_a_late_completion_is_recorded(engine: Engine, tmp_path: Path) -> None:
    """ "Late completions get ignored": here they are recorded, and move nothing."""
    ledger, go_on = str(tmp_path / "ledger"), tmp_path / "go_on"
    w = Builder("late")
    late = w.node("late", job=work.wait_for, args={"ledger": ledger, "file": str(go_on)}, depends_on=None)
    broken = {"ledger": ledger, "mended": str(tmp_path / "mended")}
    failed = w.node("broken", job=work.break_once, args=broken, depends_on=None)
    w.node("after", job=work.entered, args={"ledger": ledger}, depends_on=[late, failed])
    run = engine.start(w)
    assert run.wait(60).status == "FAILED"
    assert run.node("after").status == "UPSTREAM_FAILED"
    go_on.touch()
    eventually(lambda: run.node("late").status == "COMPLETED", "its success was not recorded")
    assert run.status == "FAILED"
    assert f"{run.id} after" not in noted(ledger)
    (tmp_path / "mended").touch()
    run.retry()
    run.wait(60).check()
    entered = Counter(line.split()[1] for line in noted(ledger))
    assert entered == {"late": 1, "broken": 2, "after": 1}, "only what did not complete ran again"


def test_templates_get_what_parents_returned(engine: Engine) -> None:
    """ "Summarize this: {{ nodeA.result }}"."""
    document = Document(
        {
            "name": "templates",
            "nodes": [
                {"id": "nodeA", "handler": "transform", "config": {"template": "the text of {{ input.who }}"}},
                {
                    "id": "nodeB",
                    "handler": "transform",
                    "config": {"template": "Summarize this: {{ nodeA.result }}"},
                    "dependencies": ["nodeA"],
                },
            ],
        }
    )
    run = engine.start(document, input={"who": "Ann"})
    run.wait(60).check()
    assert run.output("nodeB") == {"result": "Summarize this: the text of Ann"}


@pytest.mark.timeout(300)
@pytest.mark.skipif(not REAL, reason="there are no graphs of real pipelines beside the project")
def test_all_real_graphs(engine: Engine, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    runs = {}
    for file in REAL:
        tasks = {task["id"]: task["parents"] for task in json.loads(file.read_text())["tasks"]}
        w, ids = Builder(file.stem), dict[str, str]()
        while len(ids) < len(tasks):  # files need not list parents first
            for name, parents in tasks.items():
                if name not in ids and all(parent in ids for parent in parents):
                    above = [ids[parent] for parent in parents]
                    args = {"ledger": ledger, "parents": above}
                    ids[name] = w.node(name, job=work.visit, args=args, depends_on=above or None)
        runs[engine.start(w)] = {ids[name]: len(parents) for name, parents in tasks.items()}
    for run, outputs in runs.items():
        run.wait(200).check()
        assert run.outputs == outputs
    bodies = Counter(noted(ledger))
    assert bodies == {f"{run.id} {node}": 1 for run, outputs in runs.items() for node in outputs}
