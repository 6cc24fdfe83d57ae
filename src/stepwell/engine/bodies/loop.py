"""`async def` bodies: all on one event loop, either the application's or one in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from ...core.model import Settle
from ...errors import Stopped
from ...history.audit_log import nobody_acts
from .attempt import Attempt, leave_body
from .executor import Executor, WorkerPort
from .held import Held

log = logging.getLogger("stepwell")


class LoopBodies(Executor):
    """Runs coroutines on the loop given to `use`, or on its own, which starts with the first body.

    When the loop of the application is closed, or about to be, the bodies that cannot go on are given back.
    """

    kind = "loop"

    def __init__(self, worker: WorkerPort, limit: int) -> None:
        """`limit` bodies at most are claimed, so it need not be kept here."""
        self._worker = worker
        self._own: asyncio.AbstractEventLoop | None = None
        self._given: asyncio.AbstractEventLoop | None = None
        self._owner: asyncio.Task[Any] | None = None
        """The task that called `use`."""
        self._given_is_gone = False
        self._closed = False
        self._tasks: dict[asyncio.Task[None], Held] = {}
        self._lock = threading.Lock()

    def use(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin bodies on this loop, which the application runs. Must be called on it."""
        with self._lock:
            self._given, self._owner = loop, asyncio.current_task()

    def begin(self, bodies: list[Held], *, keep: bool = False) -> None:
        self._soon(bodies, self._begin, bodies)

    def go_on(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine that a body returned in a thread."""
        attempt.held.interrupt = _not_yet  # its thread is free again, so a timeout loses no thread
        self._soon([attempt.held], self._start, attempt, coroutine)

    def look(self) -> None:
        """Check whether the loop was closed with bodies on it: nothing else would tell."""
        if self._given is not None and self._given.is_closed():
            self._leave_given()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            own, given = self._own, self._given
        if own is not None:
            own.call_soon_threadsafe(own.stop)
        if given is not None:
            for task in self._tasks_on(given):
                _cancel(given, task)

    async def ended(self, seconds: float) -> None:
        """On the loop of the application, wait up to `seconds` until the bodies cancelled there have ended."""
        left = self._tasks_on(asyncio.get_running_loop())
        if left:
            await asyncio.wait(left, timeout=seconds)

    def _soon(self, held: Sequence[Held], call: Callable[..., None], *arguments: Any) -> None:
        """Call this on the loop. If the application's loop is closed, give the bodies back."""
        try:
            self._loop().call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            if self._given is not None and self._given.is_closed():
                self._leave_given(held)
            elif not self._closed:
                raise

    def _loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._given is not None:
                return self._given
            if self._own is None:
                if self._closed:
                    raise Stopped("the engine is closed")
                self._own = asyncio.new_event_loop()
                threading.Thread(target=self._serve, args=(self._own,), name="stepwell-loop", daemon=True).start()
            return self._own

    def _tasks_on(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[None]]:
        return [task for task in list(self._tasks) if task.get_loop() is loop and not task.done()]

    def _leave_given(self, more: Sequence[Held] = ()) -> None:
        """The loop of the application ends, with everything that runs on it."""
        given = self._given
        if given is None:
            return
        with self._lock:
            first, self._given_is_gone = not self._given_is_gone, True
        left = [self._tasks[task] for task in self._tasks_on(given)] if first and given.is_closed() else []
        if first or more:
            self._give_back([*left, *more])

    # On the thread of a loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while not self._closed:
                self._run_until_stopped(loop)
            loop.run_until_complete(_end(self._tasks_on(loop)))
            loop.run_until_complete(_end(asyncio.all_tasks(loop)))  # those that bodies left behind
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    def _run_until_stopped(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio lets these through from any task, also one that a body made. The other bodies must go on.
            log.warning("a task on the loop for async bodies raised %r", error)

    def _give_back(self, bodies: list[Held]) -> None:
        self._worker.give_back(self.kind, bodies)
        if not self._closed:
            log.warning(
                "the event loop that async bodies ran on was closed before the engine; %d of them are given back, and this "
                "engine runs no more async bodies",
                len(bodies),
            )

    def _begin(self, bodies: list[Held]) -> None:
        nobody_acts()  # whoever had a body begin does not ask for what it does
        if self._given_is_gone:
            self._give_back(bodies)
            return
        for attempt in map(self._worker.attempt, bodies):
            if not self._worker.begins(attempt):
                continue
            ended = attempt.perform()
            leave_body()
            if isinstance(ended, Settle):
                self._worker.settled(attempt.held, ended)
            else:
                self._start(attempt, ended)

    def _start(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        if attempt.held.over:
            coroutine.close()
            return
        attempt.enter()  # the task takes this context with it
        task = asyncio.get_running_loop().create_task(
            self._run(attempt, coroutine), name=f"stepwell-{attempt.held.attempt}"
        )
        leave_body()
        self._tasks[task] = attempt.held
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))
        attempt.held.interrupt = partial(_cancel, asyncio.get_running_loop(), task)
        if attempt.held.stop:
            attempt.held.interrupt()  # it was asked to stop before there was a task to cancel

    async def _run(self, attempt: Attempt, coroutine: Coroutine[Any, Any, Any]) -> None:
        held = attempt.held
        try:
            settle = attempt.returned(await coroutine)
        except asyncio.CancelledError as error:
            if self._cancelled_with_its_loop(held):
                held.interrupt = None
                self._leave_given([held])
                return
            settle = attempt.raised(Stopped("cancelled") if held.stop else error)
        except BaseException as error:
            settle = attempt.raised(error)
        held.interrupt = None
        self._worker.settled(held, settle)

    def _cancelled_with_its_loop(self, held: Held) -> bool:
        """Whether the task was cancelled together with all others, as `asyncio.run` does before it closes its loop.

        A body that is cancelled alone, for instance by itself, has failed.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if loop is not self._given or held.stop or held.over or task is None or not task.cancelling():
            return False
        over = self._owner is not None and self._owner.done()
        return over or all(each.cancelling() for each in asyncio.all_tasks(loop))


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _not_yet() -> None:
    """The task does not exist yet. `_start` checks whether the attempt is over or should stop."""


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and its tasks are gone
        loop.call_soon_threadsafe(task.cancel)
