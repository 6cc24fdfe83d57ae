"""`AsyncCalls`: the calls of an engine, and of the client of a server, for coroutines."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from functools import cached_property
from typing import Any, Concatenate, ParamSpec

from ...base.clock import Duration
from ...history.comparing import Comparison
from ...triggers.book import Triggers
from ..bulk import BulkPreview
from ..calls import Calls, RunList
from ..checking import checked_limit
from ..runs.run import Run, as_run
from .awaited import Awaited, Wrapper, awaited, awaited_as, refused_unawaited
from .pool import Pool
from .run import AsyncRun, behind


class AsyncTriggers(Wrapper[Any]):
    """`engine.triggers` of an engine that was opened with `async with`: the same verbs, awaited.

    await engine.triggers.add(Trigger("nightly", "report", cron="30 2 * * *", timezone="Europe/Berlin"))
    """

    add = awaited(Triggers.add)
    all = awaited(Triggers.all, reads=True)
    get = awaited(Triggers.get, reads=True)
    versions = awaited(Triggers.versions, reads=True)
    pause = awaited(Triggers.pause)
    resume = awaited(Triggers.resume)
    remove = awaited(Triggers.remove)
    fire = awaited(Triggers.fire)
    backfill = awaited(Triggers.backfill)


P = ParamSpec("P")
THREADS = 8
"""Calls at once; their commits are grouped."""
READERS = 4
"""Calls at once that only read."""


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
        row = await self.sync.parts.waiting.wait_on_loop(run.id, limit)
        if check:
            await self._pool.read(run._checked, row)
        return AsyncRun(run, self._pool)

    return awaited


class AsyncRuns(list[AsyncRun]):
    """One page of runs."""

    def __init__(self, page: RunList, pool: Pool) -> None:
        super().__init__(AsyncRun(run, pool) for run in page)
        self._page, self._pool = page, pool

    async def next(self) -> AsyncRuns:
        """The page after this one; empty at the end."""
        return AsyncRuns(await self._pool.read(self._page.next), self._pool)

    async def all(self) -> AsyncIterator[AsyncRun]:
        """These and all others after them, read page by page: `async for run in (await engine.runs()).all(): ...`"""
        page = self
        while page:
            for run in page:
                yield run
            page = await page.next()


class AsyncBulkPreview(Wrapper[BulkPreview]):
    """What a request would do to many runs, for coroutines: `await preview.apply()` has it done."""

    def __init__(self, preview: BulkPreview, pool: Pool) -> None:
        super().__init__(preview, pool)
        self.record = preview.record

    apply = awaited(BulkPreview.apply)

    async def next(self) -> AsyncBulkPreview | None:
        """The preview of the runs after these; None at the end."""
        preview = await self._pool.read(self.sync.next)
        return None if preview is None else AsyncBulkPreview(preview, self._pool)


class AsyncCalls(Wrapper[Any]):
    """What `AsyncEngine` and `AsyncClient` have in common. `sync` is called in a thread of a small pool."""

    def __init__(self, sync: Any, threads: str) -> None:
        super().__init__(sync, Pool(THREADS, threads, readers=READERS))

    run = starting_and_waiting(Calls.run)
    start = awaited_as(Calls.start, AsyncRun)
    start_many = awaited_as(Calls.start_many, lambda runs, pool: [AsyncRun(run, pool) for run in runs])
    get = awaited_as(Calls.get, AsyncRun, reads=True)
    adopt = awaited_as(Calls.adopt, AsyncRun)
    runs = awaited_as(Calls.runs, AsyncRuns, reads=True)
    count_runs = awaited(Calls.count_runs, reads=True)
    preview_bulk = awaited_as(Calls.preview_bulk, AsyncBulkPreview, reads=True)
    save = awaited(Calls.save)
    activate = awaited(Calls.activate)
    workflows = awaited(Calls.workflows, reads=True)
    audit_log = awaited(Calls.audit_log, reads=True)

    @cached_property
    def triggers(self) -> AsyncTriggers:
        """What starts runs by itself, as in `Engine.triggers`; its verbs are awaited."""
        return AsyncTriggers(self.sync.triggers, self._pool)

    async def wait(self, run: AsyncRun | Run | str, timeout: Duration | None = None) -> AsyncRun:
        """Wait until a run has ended, or has paused because a person must decide; see `AsyncRun.wait`."""
        return await AsyncRun(as_run(self.sync.parts, behind(run)), self._pool).wait(timeout)

    @refused_unawaited
    async def compare(self, first: AsyncRun | Run | str, second: AsyncRun | Run | str) -> Comparison:
        """Two runs side by side; see `Run.diff`."""
        found: Comparison = await self._pool.read(self.sync.compare, behind(first), behind(second))
        return found
