"""The threads in which the calls of coroutines are made."""

from __future__ import annotations

import asyncio
import functools
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from ...core.store.rules.processes import check_process
from ...errors import EngineClosed

P = ParamSpec("P")
T = TypeVar("T")


class Pool:
    """A few threads. Starting a thread waits until it runs, which takes milliseconds on a busy machine. So only one is started
    here, on the loop, and that one starts the others; a `ThreadPoolExecutor` would start all of them here."""

    def __init__(self, threads: int, name: str, *, readers: int = 0) -> None:
        """`readers`: so many further threads for what only reads, so that it does not wait for commits to a busy store."""
        self._readers = Pool(readers, f"{name}-read") if readers else self
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads, self._name = threads, name
        self._lock = threading.Lock()
        self._opener = os.getpid()
        self._closed = False
        self._start(functools.partial(self._serve_with_others, threads))

    async def call(self, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """Make a call. It goes on to its end even if the caller is cancelled."""
        check_process(self._opener, "this engine")
        made: Future[T] = Future()
        with self._lock:  # before `close` queues the end
            if self._closed:
                raise EngineClosed("the engine is closed; open a new one")
            self._calls.put((made, functools.partial(copy_context().run, function, *args, **keywords)))
        return await asyncio.wrap_future(made)

    async def read(self, function: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """The same for a call that commits nothing."""
        return await self._readers.call(function, *args, **keywords)

    def close(self) -> None:
        """Make the calls that are queued, and no more."""
        if self._readers is not self:
            self._readers.close()
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in range(self._threads):
                    self._calls.put(None)

    def add_thread(self) -> None:
        """Start one more thread, as when one is at work for long."""
        with self._lock:
            if not self._closed:
                self._threads += 1
                self._start(self._serve)

    def remove_thread(self) -> None:
        """End one thread: the next that is free."""
        with self._lock:
            if not self._closed:
                self._threads -= 1
                self._calls.put(None)

    def _start(self, serve: Callable[[], None]) -> None:
        threading.Thread(target=serve, name=self._name, daemon=True).start()

    def _serve_with_others(self, threads: int) -> None:
        for _ in range(threads - 1):
            self._start(self._serve)
        self._serve()

    def _serve(self) -> None:
        while (asked := self._calls.get()) is not None:
            made, call = asked
            if made.set_running_or_notify_cancel():
                try:
                    made.set_result(call())
                except BaseException as error:  # raised in the caller
                    made.set_exception(error)
            del asked, made, call  # do not keep the result until the next call
