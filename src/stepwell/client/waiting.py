"""Waits for a run of a server by its event stream."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ..clock import Duration
from ..errors import RunStillActive
from ..ids import RunId
from ..model import RunRow
from ..runner.checking import checked_limit
from ..runner.waiting import waits_for_a_decision
from ..store import Store, reader
from .events import Event, follow, follow_on_loop
from .transport import Transport, path_of

LOOK_EVERY = 0.2
"""For a shorter wait, no stream is opened."""


class RemoteWaiting:
    """The interface of `runner.waiting.Waiting`."""

    def __init__(self, transport: Transport, store: Store) -> None:
        self._transport, self._store = transport, store

    def wait(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        limit = checked_limit("timeout", timeout)
        began = time.monotonic()
        row = reader.require_run(self._store, run_id)
        while not _is_over(row):
            left = None if limit is None else began + limit - time.monotonic()
            if left is not None and left <= 0:
                raise _still_active(row, limit)
            if left is not None and left < LOOK_EVERY:
                time.sleep(left)
            else:
                for event in follow(self._transport, _path(run_id), str(row.seq), seconds=left):
                    if _tells_more(event):
                        break
            row = reader.require_run(self._store, run_id)
        return row

    async def wait_on_loop(self, run_id: RunId, timeout: Duration | None = None) -> RunRow:
        """The same for coroutines, without a thread."""
        limit = checked_limit("timeout", timeout)
        try:
            async with asyncio.timeout(limit):
                return await self._wait_on_loop(run_id)
        except TimeoutError:
            row = await asyncio.to_thread(reader.require_run, self._store, run_id)
            raise _still_active(row, limit) from None

    async def _wait_on_loop(self, run_id: RunId) -> RunRow:
        row = await asyncio.to_thread(reader.require_run, self._store, run_id)
        while not _is_over(row):
            stream: Any = follow_on_loop(self._transport, _path(run_id), str(row.seq))
            try:
                async for event in stream:
                    if _tells_more(event):
                        break
            finally:
                await stream.aclose()
            row = await asyncio.to_thread(reader.require_run, self._store, run_id)
        return row


def _path(run_id: RunId) -> str:
    return path_of("runs", run_id, "events")


def _is_over(row: RunRow) -> bool:
    return row.status.terminal or waits_for_a_decision(row)


def _tells_more(event: Event) -> bool:
    """Only an entry about the run itself can be its end."""
    return event.kind in ("end", "reset") or event.data.get("kind") == "run"


def _still_active(row: RunRow, limit: float | None) -> RunStillActive:
    return RunStillActive(f"run {row.id} is still {row.status} after {limit:g} s; it goes on", run_id=row.id)
