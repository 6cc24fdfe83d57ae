"""The Celery application of `stepwell worker`, with settings that are safe for hints; and what is checked when a worker starts:
its pool, and settings of its application that do not go with hints."""

from __future__ import annotations

import logging
import sys
from typing import Any

from ..errors import InputError

log = logging.getLogger("stepwell")

POOLS = {"prefork": "prefork", "processes": "prefork", "solo": "solo", "thread": "threads", "threads": "threads"}
"""The modules of Celery's pools and their aliases, and their usual names."""
LEAST_VISIBILITY = 60.0
"""Seconds. A task that runs longer than the broker's visibility timeout is delivered again."""
EX_CONFIG = 78


def make_app(broker: str) -> Any:
    """JSON only, no result backend, one message at a time, acknowledged early."""
    if not isinstance(broker, str) or "://" not in broker:
        raise InputError(
            f"broker={broker!r}: expected the URL of a broker, as in redis://localhost:6379/1 or amqp://localhost"
        )
    try:
        from celery import Celery
    except ModuleNotFoundError as error:
        if error.name != "celery":
            raise
        raise InputError("this takes Celery: pip install 'stepwell[celery]'") from None
    app = Celery("stepwell", broker=broker, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_accept_content=["json"],
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        task_create_missing_queues=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_send_task_events=False,
        worker_enable_remote_control=False,  # whoever can write to the broker could end every worker
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=True,
        enable_utc=True,
    )
    return app


def app_of(broker: Any) -> Any:
    """The application for a broker: its URL, or an application that has one."""
    if broker is None:
        raise InputError(
            'runner="celery" needs to know the broker: Engine(url, runner="celery", broker="redis://localhost:6379/1"), or '
            "the Celery application in its place"
        )
    if isinstance(broker, str):
        return make_app(broker)
    if not callable(getattr(broker, "connection_for_write", None)):
        raise InputError(f"broker={broker!r}: expected the URL of a broker or a Celery application")
    return broker


def check_pool(pool: Any) -> str:
    """The name of a pool that can host runners. Any other ends the worker: Celery would only log an exception."""
    module = str(getattr(pool, "__module__", pool)).partition(":")[0].rpartition(".")[2]
    if module in POOLS:
        return POOLS[module]
    if module in ("gevent", "eventlet"):
        why = (
            "it replaces threads, locks and sockets by its own, under which a lease would be renewed only when no body is at "
            "work. `async def` bodies run side by side, up to 1,000 in a process, in any other pool"
        )
    else:
        why = "it is not one that was tried"
    message = f"stepwell: the pool {module!r} cannot run workflows: {why}. Use --pool prefork, threads or solo"
    log.critical(message)
    print(message, file=sys.stderr)
    raise SystemExit(EX_CONFIG)


def problems(app: Any) -> list[str]:
    """What is wrong with the settings of an application, each with what to do."""
    conf = app.conf
    found = []
    accepted = {str(each) for each in conf.accept_content or ()}
    if not accepted & {"json", "application/json"}:
        found.append(
            f"accept_content={sorted(accepted)}: hints are JSON and would be refused; add 'json'. No other is ever sent"
        )
    if accepted & {"pickle", "application/x-python-serialize", "yaml", "application/x-yaml"}:
        found.append(
            f"accept_content={sorted(accepted)}: whoever can write to the broker can run code here. Stepwell needs 'json' alone"
        )
    visibility = (conf.broker_transport_options or {}).get("visibility_timeout")
    if isinstance(visibility, int | float) and visibility < LEAST_VISIBILITY:
        found.append(
            f"broker_transport_options: visibility_timeout={visibility:g} s: tasks that take longer are delivered again while "
            f"they run. Hints do not mind, the tasks of the application do: use {LEAST_VISIBILITY:g} or more, or leave it out"
        )
    if conf.worker_prefetch_multiplier != 1:
        found.append(
            f"worker_prefetch_multiplier={conf.worker_prefetch_multiplier}: a busy worker keeps hints that others could work "
            "off at once; 1 is better"
        )
    if conf.worker_enable_remote_control:
        found.append(
            "worker_enable_remote_control is on: whoever can write to the broker can end this worker, as `celery control "
            "shutdown` does. Stepwell needs it only for `celery inspect stepwell`; `stepwell workers` shows the same"
        )
    if conf.task_always_eager:
        found.append("task_always_eager is on: nothing is sent to a broker")
    return found
