"""The consumer of `stepwell worker`: a message that cannot be read is dropped, where Celery would end the worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer

log = logging.getLogger("stepwell")

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
"""What reading garbage raises in the transports of kombu and in Celery."""


class TolerantConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    connection_errors: tuple[type[BaseException], ...]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # On Redis a message is taken before it is read. The consumer connects again, and the message is gone.
        self.connection_errors = (*self.connection_errors, *UNREADABLE)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], object]:
        handle: Callable[[Any], object] = super().create_task_handler(*args, **options)

        def handle_or_drop(message: Any) -> object:
            try:
                return handle(message)
            except UNREADABLE as error:
                # Without an acknowledgement the broker would deliver it again and again.
                log.warning("a message that is no hint was dropped: %r", error)
                return message.ack_log_error(log, self.connection_errors)

        return handle_or_drop
