"""Hints to a broker. They are the only message: there may be work on a queue. They carry nothing that must be trusted.

They are sent from a thread, so that callers never wait long and never fail for it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from ..core.model import Hint
from ..core.store import Store
from .wrapped_store import WrappedStore

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


log = logging.getLogger("stepwell")

WAIT_SECONDS = 0.04
"""How long the caller that starts a run waits for its hint to be sent. The run is stored already."""
CONNECT_SECONDS = 2.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
FLUSH_SECONDS = 1.0


class HintSender:
    """Sends hints through the broker of a Celery application. It may be used on both sides of a fork.

    What could not be sent is sent when the broker is back.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._closed = False
        self.begin()
        call_after_fork(self.begin)

    def begin(self) -> None:
        """Start empty in this process; the parent sends what it has queued."""
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._asked = self._answered = 0
        self._thread: threading.Thread | None = None
        self._connection: Any = None
        self._in_trouble = False

    def send(self, queues: Iterable[str], wait: float = 0.0) -> bool:
        """Send a hint for these queues; whether it was sent within `wait` seconds."""
        with self._changed:
            if self._closed:
                return False
            self._waiting.update(dict.fromkeys(queues))
            self._asked += 1
            mine = self._asked
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stepwell-broker", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            wait = 0.0 if self._in_trouble else wait
            return self._changed.wait_for(lambda: self._answered >= mine or self._closed, wait)

    def close(self) -> None:
        """Send what is left if the broker answers."""
        if self._thread is None:
            self._closed = True
            return
        with self._changed:
            if not self._in_trouble:
                self._changed.wait_for(lambda: not self._waiting and self._answered >= self._asked, FLUSH_SECONDS)
            self._closed = True
            self._changed.notify_all()
        self._thread.join(FLUSH_SECONDS)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    break
                queues, self._waiting, now = self._waiting, {}, self._asked
            try:
                self._send(queues)
                pause, trouble = FIRST_PAUSE, False
            except Exception as error:  # whatever the driver raises: the store has the truth
                trouble = True
                if not self._in_trouble:
                    log.warning("the broker cannot be told of work; workers find it in the store, later: %s", error)
                self._disconnect()
            with self._changed:
                if self._in_trouble and not trouble:
                    log.warning("the broker is told of work again")
                self._in_trouble = trouble
                if trouble:
                    self._waiting = queues | self._waiting
                self._answered = now
                self._changed.notify_all()
                if trouble:
                    self._changed.wait_for(lambda: self._closed, pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        self._disconnect()

    def _send(self, queues: Iterable[str]) -> None:
        if self._connection is None:
            options = {
                "socket_connect_timeout": CONNECT_SECONDS,
                "socket_timeout": CONNECT_SECONDS,
                "max_retries": 0,
                "read_timeout": CONNECT_SECONDS,
                "write_timeout": CONNECT_SECONDS,
            }
            self._connection = self._app.connection_for_write(
                connect_timeout=CONNECT_SECONDS, transport_options=options
            )
            self._connection.ensure_connection(max_retries=1, timeout=CONNECT_SECONDS, interval_start=0)
        for queue in queues:
            publish(self._app, self._connection, queue)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.release()
            except Exception:
                log.debug("a connection to the broker was not closed", exc_info=True)


def call_after_fork(begin: Callable[[], None]) -> None:
    """Call this method first in every forked process, which has no threads and connections, and perhaps held locks."""
    found = weakref.WeakMethod(begin)

    def in_child() -> None:
        if (method := found()) is not None:
            method()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def publish(app: Any, connection: Any, queue: str) -> None:
    """Put a hint into a queue, unless it has enough."""
    from kombu.transport.virtual import Channel
    from kombu.utils.uuid import uuid

    channel, name = connection.default_channel, broker_queue_name(queue)
    if isinstance(channel, Channel) and channel._size(name) >= MOST_QUEUED:
        return
    message = app.amqp.as_task_v2(
        uuid(), TASK, (), {"queue": queue, "sent_at": round(time.time(), 3)}, ignore_result=True
    )
    app.amqp.Producer(channel, auto_declare=False).publish(
        message.body,
        exchange="",
        routing_key=name,
        declare=[broker_queue(queue)],
        serializer="json",
        headers=message.headers,
        delivery_mode="transient",
        retry=False,
        **message.properties,
    )


class BrokeredStore(WrappedStore):
    """The same store, but hints about work on queues go to Celery workers. Those about runs and workers stay with the store.

    `patient`, for those who only start runs: they wait a moment until a hint is sent, and closing the store closes the sender.
    """

    def __init__(self, open: Callable[[], Store], sender: HintSender, *, patient: bool = False) -> None:
        super().__init__(open())
        self._open = open
        self._sender = sender
        self._patient = patient
        self._lock = threading.Lock()
        self._usable = True
        call_after_fork(self.begin)

    def begin(self) -> None:
        """In a process that was forked: connections cannot be shared, so the store is opened anew at its first use."""
        self._lock, self._usable = threading.Lock(), False

    @property
    def store(self) -> Store:
        if not self._usable:
            with self._lock:
                if not self._usable:
                    self._store, self._usable = self._open(), True
        return self._store

    @property
    def needs_hints(self) -> bool:
        return True

    def send_hint(self, hint: Hint) -> None:
        if hint.queues:
            self._sender.send(hint.queues, WAIT_SECONDS if self._patient else 0.0)
        if (hint.runs or hint.workers) and self.store.needs_hints:
            self.store.send_hint(hint._replace(queues=()))

    def close(self) -> None:
        if self._patient:
            self._sender.close()
        if self._usable:
            self._store.close()
