"""Awaited methods that give runs for coroutines."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any, Concatenate, ParamSpec

from ..checking import checked_limit
from ..runs.listing import Runs
from ..runs.run import Run
from .awaited import Awaited
from .pool import Pool
from .run import AsyncRun

P = ParamSpec("P")


def starting_and_waiting(
    method: Callable[Concatenate[Any, P], Run],
) -> Callable[Concatenate[Any, P], Awaited[AsyncRun]]:
    """`engine.run`, which here holds no thread while it waits."""

    @functools.wraps(method)
    async def awaited(self: Any, /, *args: P.args, **keywords: P.kwargs) -> AsyncRun:
        given: tuple[Any, ...] = args
        options: dict[str, Any] = dict(keywords)
        check, wait = options.pop("check", True), options.pop("wait", None)
        limit = checked_limit("wait", wait)  # before anything is started
        run: Run = await self._pool.call(self.sync.start, *given, **options)
        row = await self.sync.waiting.wait_on_loop(run.id, limit)
        if check:
            await self._pool.call(run._checked, row)
        return AsyncRun(run, self._pool)

    return awaited


def async_runs(runs: list[Run], pool: Pool) -> list[AsyncRun]:
    return [AsyncRun(run, pool) for run in runs]


class AsyncRuns(list[AsyncRun]):
    """One page of runs, the newest first."""

    def __init__(self, page: Runs, pool: Pool) -> None:
        super().__init__(AsyncRun(run, pool) for run in page)
        self._page, self._pool = page, pool

    async def next(self) -> AsyncRuns:
        """The page after this one; empty at the end."""
        return AsyncRuns(await self._pool.call(self._page.next), self._pool)

    async def all(self) -> AsyncIterator[AsyncRun]:
        """These and all others after them, read page by page: `async for run in (await engine.runs()).all(): ...`"""
        page = self
        while page:
            for run in page:
                yield run
            page = await page.next()
