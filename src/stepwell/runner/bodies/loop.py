"""`async def` bodies: all of them on one event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ...errors import Stopped
from ...model import Settle
from .attempt import Attempt, leave_body
from .held import Held

log = logging.getLogger("stepwell")


class LoopThread:
    """Runs coroutines and reports the settlement of each. Started when the first one comes.

    `begins` says whether a body may begin: it may have been stopped or given back meanwhile.
    """

    def __init__(self, begins: Callable[[Attempt], bool], settled: Callable[[Held, Settle], None]) -> None:
        self._begins = begins
        self._settled = settled
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    def begin(self, attempts: list[Attempt]) -> None:
        """Call these bodies and run what they return."""
        self._soon(self._begin, attempts)

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        """A body that was called elsewhere turned out to be a coroutine."""
        attempt.held.interrupt = _not_yet  # its thread is free again, so its time may be up without a runaway
        self._soon(self._start, attempt, coroutine)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have the loop do it. Once it is closed nothing begins on it; what was to begin is given back."""
        try:
            self._running_loop().call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            if not self._closed:
                raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                if self._closed:
                    raise Stopped("the engine is closed")
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._serve, args=(self._loop,), name="stepwell-loop", daemon=True).start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while not self._closed:
                self._run_until_stopped(loop)
            for task in self._tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    def _run_until_stopped(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio lets these through from any task, also from one that a body made. The other bodies go on.
            log.warning("a task on the loop for async bodies raised %r", error)

    def _begin(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            if not self._begins(attempt):
                continue
            ended = attempt.perform()
            leave_body()
            if isinstance(ended, Settle):
                self._settled(attempt.held, ended)
            else:
                self._start(attempt, ended)

    def _start(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        if attempt.held.over:
            coroutine.close()
            return
        attempt.enter()  # the task takes this context with it
        task = asyncio.get_running_loop().create_task(self._run(attempt, coroutine))
        leave_body()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        attempt.held.interrupt = partial(_cancel, asyncio.get_running_loop(), task)
        if attempt.held.stop:
            attempt.held.interrupt()  # it was asked to stop while there was nothing to cancel

    async def _run(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        held = attempt.held
        try:
            settle = attempt.returned(await coroutine)
        except asyncio.CancelledError as error:
            settle = attempt.raised(Stopped("cancelled") if held.stop else error)
        except BaseException as error:
            settle = attempt.raised(error)
        held.interrupt = None
        self._settled(held, settle)


def _not_yet() -> None:
    """It has not begun on the loop; when it would, it is over."""


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed, and with it everything on it
        loop.call_soon_threadsafe(task.cancel)
