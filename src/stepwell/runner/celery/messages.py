"""The one message there is: that there may be work on a queue. It carries nothing that has to be believed."""

from __future__ import annotations

from typing import Any

TASK = "stepwell.hint"
"""The name of the Celery task that a hint is for."""
PREFIX = "stepwell."
MOST_QUEUED = 20
"""Hints on one queue: who works off one tells others if there is more, so a few are as good as thousands."""


def broker_queue_name(queue: str) -> str:
    """The broker's queue for the nodes of a queue: hints are not mixed with the tasks of an application."""
    return PREFIX + queue


def broker_queue(queue: str) -> Any:
    """It has no exchange of its own, so a broker that was flushed needs no binding to be made again.

    RabbitMQ itself keeps it short. Redis knows no such limit; there, whoever sends looks first.
    """
    from kombu import Exchange, Queue

    name = broker_queue_name(queue)
    limits = {"x-max-length": MOST_QUEUED, "x-overflow": "drop-head"}
    return Queue(name, Exchange(""), routing_key=name, durable=True, queue_arguments=limits)
