"""An application that has workers already hosts workflows with one line, and goes on as before."""

from __future__ import annotations

import functools
import logging
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, signals
from celery.utils.dispatch import Signal

from stepwell import InputError
from stepwell.celery import install
from stepwell.celery.host import WorkerPlan
from stepwell.celery.install import run_worker
from stepwell.engine.broker_app import POOLS, check_pool, make_app, problems
from stepwell.engine.hint_sender import broker_queue
from tests.celery import work
from tests.engine.waiting import eventually
from tests.servers.fleet import Fleet

CELERY = [sys.executable, "-m", "celery", "-A", "tests.celery.hosting"]


def test_workflows_run_beside_the_tasks_of_the_application(fleet: Fleet, tmp_path: Path) -> None:
    ledger, go_on = str(tmp_path / "ledger"), tmp_path / "go_on"
    worker = fleet.launch([*CELERY, "worker", "-c", "2", "-l", "WARNING", "-n", "shop@%h"])
    client = Celery("client", broker=fleet.broker, backend=fleet.broker)
    with fleet.engine() as engine:
        runs = [engine.start(work.Order(order_id=number)) for number in range(4)]
        long = engine.start(work.Held(ledger=ledger, go_on=str(go_on)))
        assert client.send_task("shop.add", (2, 3)).get(timeout=60) == 5
        eventually(lambda: work.begun(ledger))
        for run in runs:
            run.wait(60).check()
        time.sleep(2.5)  # the time limit of the application, which is for its own tasks
        go_on.touch()
        long.wait(60).check()
        assert long.output("hold") == 1, "no time limit but its own"
        assert [client.send_task("shop.add", (n, n)).get(timeout=60) for n in range(6)] == [2 * n for n in range(6)]

        def inspected() -> list[str]:
            """What `celery inspect stepwell` shows."""
            (answer,) = client.control.broadcast("stepwell", reply=True, timeout=30, limit=1)
            return [each["celery"].partition("@")[0] for found in answer.values() for each in found if each["alive"]]

        eventually(lambda: inspected() == ["shop", "shop"], show=inspected)
    assert worker.end(signal.SIGTERM, 60) == 0, worker.said
    assert not fleet.workers()


def test_nothing_that_the_application_has_set_is_changed() -> None:
    app = Celery("shop", broker="memory://")
    before = dict(app.conf.table())
    install(app, "memory://")
    assert dict(app.conf.table()) == before
    hint = app.tasks["stepwell.hint"]
    assert (hint.acks_late, hint.ignore_result, hint.serializer) == (False, True, "json")


def test_a_worker_declares_queues_as_those_do_who_send_hints() -> None:
    """RabbitMQ would refuse any other declaration of the same queue."""
    app = Celery("shop", broker="memory://", task_queue_max_priority=5)
    install(app, "memory://", queues=["default", "gpu"])
    signals.celeryd_init.send("shop@here", instance=SimpleNamespace(app=app))
    for queue in ("default", "gpu"):
        wanted = broker_queue(queue)
        declared = app.amqp.queues[wanted.name]
        assert (declared.exchange.name, declared.routing_key) == ("", wanted.name)
        assert declared.queue_arguments == wanted.queue_arguments
        assert wanted.name in app.amqp.queues.consume_from


def test_a_worker_of_another_application_gets_no_queue_of_ours() -> None:
    shop, other = Celery("shop", broker="memory://"), Celery("other", broker="memory://")
    install(shop, "memory://")
    before = {app: dict(app.amqp.queues) for app in (shop, other)}
    for instance in (SimpleNamespace(app=other), None):
        signals.celeryd_init.send("other@here", instance=instance)
    assert {app: dict(app.amqp.queues) for app in (shop, other)} == before


@pytest.mark.parametrize(
    ("consumed", "pool", "limit", "hosted"),
    [
        ("celery", "prefork", None, None),
        ("celery,stepwell.gpu", "threads", None, (("gpu",), 6)),
        ("stepwell.gpu,stepwell.default", "threads", 3, (("default", "gpu"), 3)),
        ("stepwell.default,billing", "solo", None, (("default",), 1)),
        ("stepwell.default", "prefork", None, None),
    ],
)
def test_a_worker_hosts_what_its_queues_and_its_pool_say(
    consumed: str,
    pool: str,
    limit: int | None,
    hosted: object,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Queues of the application are none of ours; the parent of prefork hosts nothing itself."""
    opened: list[object] = []

    class Opened:
        def __init__(self, plan: WorkerPlan, name: str, slots: int, **_: object) -> None:
            opened.append((plan.queues, slots))

        def close(self) -> None: ...

    monkeypatch.setattr(import_module("stepwell.celery.install"), "WorkerHost", Opened)
    app = Celery("shop", broker="memory://")
    installed = install(app, "memory://", max_concurrent_nodes=limit)
    app.amqp.queues.select(consumed.split(","))
    pool_class = f"celery.concurrency.{POOLS[pool]}"
    worker = SimpleNamespace(app=app, pool_cls=pool_class, hostname="w@here", concurrency=6)
    installed._begin(worker)
    assert opened == ([] if hosted is None else [hosted])
    installed._begin_child()
    forked = pool == "prefork" and "stepwell." in consumed
    assert len(opened) == (1 if hosted or forked else 0)
    installed._begin(SimpleNamespace(app=Celery("other"), pool_cls=pool_class, hostname="o", concurrency=1))
    assert len(opened) == (1 if hosted or forked else 0), "a worker of another application"
    installed._ends_soon()
    assert installed.exit_code is None, "no process asked for the end"
    if "stepwell." not in consumed:
        assert "runs no workflows; name one with -Q: stepwell.default" in caplog.text


@pytest.mark.parametrize("ends", [signals.worker_process_shutdown, signals.worker_shutdown], ids=lambda ends: ends.name)
def test_a_process_that_ends_closes_its_host_before_it_is_gone(ends: Signal) -> None:
    """The lifeline closes it in a thread that nobody waits for."""
    installed = install(Celery("shop", broker="memory://"), "memory://")
    assert [error for _, error in ends.send(None) if isinstance(error, Exception)] == [], "it may have no host"
    closed: list[str] = []
    installed.host = SimpleNamespace(close=lambda: closed.append("closed"))  # type: ignore[assignment]
    ends.send(None)
    installed.host = None
    assert closed == ["closed"]


def test_an_application_is_installed_into_once() -> None:
    app = Celery("shop", broker="memory://")
    install(app, "memory://")
    with pytest.raises(InputError, match="hosts workflows already"):
        install(app, "memory://")


def test_settings_that_would_not_do_are_reported() -> None:
    app = Celery("shop", broker="memory://")
    app.conf.update(
        accept_content=["pickle"], broker_transport_options={"visibility_timeout": 5}, worker_prefetch_multiplier=1
    )
    told = "\n".join(problems(app))
    assert "add 'json'" in told
    assert "can run code here" in told
    assert "visibility_timeout=5 s" in told
    assert "prefetch" not in told
    assert "whoever can write to the broker can end this worker" in told
    app.conf.update(accept_content=["json"], broker_transport_options={}, worker_enable_remote_control=False)
    assert problems(app) == []
    app.conf.update(worker_prefetch_multiplier=4)
    assert "1 is better" in problems(app)[0]


def test_a_worker_of_ours_has_settings_that_are_safe_for_hints() -> None:
    """Hints are read as JSON by workers that keep one each, end no body, and obey nobody who can write to the broker."""
    app = make_app("memory://")
    assert problems(app) == []
    safe = {
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "task_serializer": "json",
        "result_backend": None,
        "task_ignore_result": True,
        "task_acks_late": False,
        "task_create_missing_queues": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "worker_send_task_events": False,
        "worker_enable_remote_control": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
    }
    assert {name: app.conf[name] for name in safe} == safe


@pytest.mark.parametrize(
    ("name", "expected"),
    [(None, "stepwell-{pid}@"), ("w1@build-3", "w1@build-3"), ("w@%h", "w@")],
)
def test_two_workers_of_one_machine_have_two_names(
    name: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of workers with one name Celery takes the second for the first."""
    opened: list[dict[str, object]] = []

    def worker(**options: object) -> SimpleNamespace:
        opened.append(options)
        return SimpleNamespace(start=lambda: None, exitcode=0)

    for pid in (41, 42):
        monkeypatch.setattr("os.getpid", lambda pid=pid: pid)
        installed = SimpleNamespace(plan=SimpleNamespace(app=SimpleNamespace(Worker=worker), queues=[]), exit_code=0)
        run_worker(installed, concurrency=1, pool="solo", name=name, log_level="INFO")  # type: ignore[arg-type]
        assert opened[-1]["without_mingle"], "no other worker is asked what it knows of tasks"
        assert str(opened[-1]["hostname"]).startswith(expected.format(pid=pid))
        assert "%" not in str(opened[-1]["hostname"])


@pytest.mark.parametrize(
    ("log_level", "hidden_below"), [("INFO", "WARNING"), ("error", "WARNING"), ("debug", "NOTSET")]
)
def test_what_celery_logs_of_every_hint_is_hidden_but_its_warnings_are_not(
    log_level: str, hidden_below: str, request: pytest.FixtureRequest
) -> None:
    loggers = [logging.getLogger(name) for name in ("celery.worker.strategy", "celery.app.trace")]
    for logger in loggers:
        request.addfinalizer(functools.partial(logger.setLevel, logger.level))
        logger.setLevel(logging.NOTSET)
    app = SimpleNamespace(Worker=lambda **_: SimpleNamespace(start=lambda: None, exitcode=0))
    installed: Any = SimpleNamespace(plan=SimpleNamespace(app=app, queues=[]), exit_code=0)
    run_worker(installed, concurrency=1, pool="solo", name=None, log_level=log_level)
    assert [logging.getLevelName(logger.level) for logger in loggers] == [hidden_below] * 2


@pytest.mark.parametrize("pool", ["celery.concurrency.gevent:TaskPool", "eventlet", "custom"])
def test_a_pool_that_cannot_do_ends_the_worker(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        check_pool(pool)
    assert "cannot run workflows" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [{"queues": []}, {"queues": "default"}, {"lease_seconds": 0}, {"when_idle": "cry"}, {"workflows": [int]}],
)
def test_wrong_options_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        install(Celery("shop", broker="memory://"), "memory://", **options)  # type: ignore[arg-type]
