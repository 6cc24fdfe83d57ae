"""`AsyncTriggers`: what starts runs by itself, for coroutines."""

from __future__ import annotations

from typing import Any

from ...triggers.book import Triggers
from ...words import offered
from .awaited import awaited
from .pool import Pool


class AsyncTriggers:
    """`engine.triggers` of an engine that was opened with `async with`: the same verbs, awaited.

    await engine.triggers.add(Trigger("nightly", "report", cron="30 2 * * *", timezone="Europe/Berlin"))
    """

    def __init__(self, triggers: Any, pool: Pool) -> None:
        self.sync = triggers
        self._pool = pool

    def __dir__(self) -> list[str]:
        return offered(AsyncTriggers, (), "sync")

    add = awaited(Triggers.add)
    all = awaited(Triggers.all)
    get = awaited(Triggers.get)
    versions = awaited(Triggers.versions)
    pause = awaited(Triggers.pause)
    resume = awaited(Triggers.resume)
    remove = awaited(Triggers.remove)
    fire = awaited(Triggers.fire)
    backfill = awaited(Triggers.backfill)
