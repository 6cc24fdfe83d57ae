"""The threads in which coroutines have their calls made."""

from __future__ import annotations

import asyncio
import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from ...errors import EngineClosed

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """A number of threads. One is started here and starts the others: starting waits until the thread runs, which on a loop
    among busy threads takes milliseconds for each. That is why it is no `ThreadPoolExecutor`."""

    def __init__(self, threads: int, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads, self._name = threads, name
        self._lock = threading.Lock()
        self._closed = False
        self._start(self._serve_with_others)

    async def call(self, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """Whoever waits may be cancelled; a call that has begun is made to its end all the same."""
        made: Future[T] = Future()
        with self._lock:  # what is put here is before the end
            if self._closed:
                raise EngineClosed("the engine is closed; open a new one")
            self._calls.put((made, functools.partial(copy_context().run, function, *args, **keywords)))
        return await asyncio.wrap_future(made)

    def close(self) -> None:
        """What was asked for is done, and nothing after that."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in range(self._threads):
                    self._calls.put(None)

    def _start(self, serve: Callable[[], None]) -> None:
        threading.Thread(target=serve, name=self._name, daemon=True).start()

    def _serve_with_others(self) -> None:
        for _ in range(self._threads - 1):
            self._start(self._serve)
        self._serve()

    def _serve(self) -> None:
        while (asked := self._calls.get()) is not None:
            made, call = asked
            if made.set_running_or_notify_cancel():
                try:
                    made.set_result(call())
                except BaseException as error:  # it is for whoever waits
                    made.set_exception(error)
            del asked, made, call  # what it gave is not kept until the next call
