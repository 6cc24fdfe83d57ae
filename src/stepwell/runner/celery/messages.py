"""The only message: there may be work on a queue. It carries nothing that must be trusted."""

from __future__ import annotations

from typing import Any

TASK = "stepwell.hint"
"""The name of the Celery task that a hint is for."""
PREFIX = "stepwell."
MOST_QUEUED = 20
"""Hints on one queue: whoever works one off passes on what is left, so a few are as good as thousands."""


def broker_queue_name(queue: str) -> str:
    """The broker's queue for the nodes of a queue: hints are not mixed with the tasks of an application."""
    return PREFIX + queue


def broker_queue(queue: str) -> Any:
    """The queue without an exchange, so that a flushed broker needs no new binding.

    RabbitMQ limits its length. Redis has no such limit, so there the sender looks first.
    """
    from kombu import Exchange, Queue

    name = broker_queue_name(queue)
    limits = {"x-max-length": MOST_QUEUED, "x-overflow": "drop-head"}
    return Queue(name, Exchange(""), routing_key=name, durable=True, queue_arguments=limits)
