"""The Celery application of `stepwell worker`, with settings that are safe for hints."""

from __future__ import annotations

from typing import Any

from ...errors import InputError


def make_app(broker: str) -> Any:
    """JSON only, no result backend, one message at a time, acknowledged early."""
    if not isinstance(broker, str) or "://" not in broker:
        raise InputError(
            f"broker={broker!r}: the URL of a broker is needed, as in redis://localhost:6379/1 or amqp://localhost"
        )
    try:
        from celery import Celery
    except ModuleNotFoundError as error:
        if error.name != "celery":
            raise
        raise InputError("Celery is needed for this: pip install 'stepwell[celery]'") from None
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
        raise InputError(f"broker={broker!r}: the URL of a broker or a Celery application is needed")
    return broker
