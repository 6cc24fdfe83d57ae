"""Bodies that reach the network by way of another thread, or of another task."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import anyio.to_thread

LIVE: list[str] = []
"""Who got through."""


def connect(port: int, who: str = "") -> str:
    with socket.create_connection(("127.0.0.1", port)):
        LIVE.append(who)
    return "connected"


async def by_to_thread(port: int) -> str:
    return await asyncio.to_thread(connect, port)


async def by_an_executor_of_the_loop(port: int) -> str:
    return await asyncio.get_running_loop().run_in_executor(None, connect, port)


async def by_a_task_in_a_thread(port: int) -> str:
    (found,) = await asyncio.gather(asyncio.to_thread(connect, port))
    return found


async def by_a_task_of_the_standard_library(port: int) -> str:
    ((_, writer),) = await asyncio.gather(asyncio.open_connection("127.0.0.1", port))
    LIVE.append("")
    writer.close()
    await writer.wait_closed()
    return "connected"


async def by_a_function_of_c(port: int) -> str:
    with socket.socket() as found:
        await asyncio.to_thread(found.connect, ("127.0.0.1", port))
        LIVE.append("")
    return "connected"


async def by_anyio(port: int) -> str:
    return await anyio.to_thread.run_sync(connect, port)


def by_a_run_of_its_own(port: int) -> str:
    return asyncio.run(by_to_thread(port))


def by_an_executor(port: int) -> str:
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(connect, port).result()


def by_an_executor_that_maps(port: int) -> str:
    with ThreadPoolExecutor(1) as executor:
        return next(executor.map(connect, [port]))


@functools.cache
def shared_executor() -> ThreadPoolExecutor:
    executor = ThreadPoolExecutor(1)
    executor.submit(int).result()  # from now on its thread is there, and waits
    return executor


def by_an_executor_that_was_there(port: int) -> str:
    return shared_executor().submit(connect, port).result()


def by_a_thread_with_its_context(port: int) -> str:
    found: Future[str] = Future()

    def tell() -> None:
        try:
            found.set_result(connect(port))
        except Exception as error:
            found.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(tell,))
    thread.start()
    thread.join()
    return found.result()


def by_a_pool_of_threads(port: int) -> str:
    with ThreadPool(1) as pool:
        return pool.map(connect, [port])[0]


@functools.cache
def shared_pool() -> ThreadPool:
    pool = ThreadPool(1)
    pool.apply(int)
    return pool


def by_a_pool_that_was_there(port: int) -> str:
    return shared_pool().apply(connect, (port,))


def by_another_loop(port: int) -> str:
    async def later() -> str:
        await asyncio.sleep(0)
        return connect(port)

    with another_loop() as loop:
        return asyncio.run_coroutine_threadsafe(later(), loop).result()


def by_trying_again(port: int) -> str:
    """As many libraries do: whatever it was, perhaps it works the next time."""
    for _ in range(2):
        with contextlib.suppress(Exception):
            return connect(port)
    return "gave up"


async def by_trying_again_in_a_thread(port: int) -> str:
    return await asyncio.to_thread(by_trying_again, port)


@contextlib.contextmanager
def another_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=contextvars.Context().run, args=(loop.run_forever,))
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


WAYS: list[Callable[..., Any]] = [
    by_to_thread,
    by_an_executor_of_the_loop,
    by_a_task_in_a_thread,
    by_a_task_of_the_standard_library,
    by_a_function_of_c,
    by_anyio,
    by_a_run_of_its_own,
    by_an_executor,
    by_an_executor_that_maps,
    by_an_executor_that_was_there,
    by_a_thread_with_its_context,
    by_a_pool_of_threads,
    by_a_pool_that_was_there,
    by_another_loop,
    by_trying_again,
    by_trying_again_in_a_thread,
]
"""The guard is in all of them."""


class Own(threading.Thread):
    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self.found = ""

    def run(self) -> None:
        with contextlib.suppress(Exception):
            self.found = connect(self._port)


def by_a_thread_without_its_context(port: int) -> str:
    thread = Own(port)
    thread.start()
    thread.join()
    return thread.found


def by_a_timer(port: int) -> str:
    timer = threading.Timer(0, by_a_thread_without_its_context, (port,))
    timer.start()
    timer.join()
    return "connected"


EVERYWHERE: list[Callable[..., Any]] = [by_a_thread_without_its_context, by_a_timer]
"""Here it is only in a replay."""


@functools.cache
def service() -> queue.SimpleQueue[tuple[Future[str], int]]:
    """A thread of somebody else, that takes work in a way of its own."""
    work: queue.SimpleQueue[tuple[Future[str], int]] = queue.SimpleQueue()

    def serve() -> None:
        while True:
            future, port = work.get()
            future.set_result(connect(port))

    threading.Thread(target=serve, daemon=True).start()
    return work


def by_a_service_that_was_there(port: int) -> str:
    found: Future[str] = Future()
    service().put((found, port))
    return found.result()


LEFT: list[threading.Thread] = []
GO_ON: threading.Event = threading.Event()


def leave_a_thread_behind(port: int) -> None:
    def go_on() -> None:
        GO_ON.wait()
        with contextlib.suppress(Exception):
            connect(port)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(go_on,))
    thread.start()
    LEFT.append(thread)


async def leave_a_task_behind(port: int) -> None:
    async def go_on() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            with contextlib.suppress(Exception):
                connect(port)

    LEFT_TASKS.append(asyncio.create_task(go_on()))
    await asyncio.sleep(0)


LEFT_TASKS: list[asyncio.Task[None]] = []
