"""`AsyncTriggers`: what starts runs by itself, for coroutines."""

from __future__ import annotations

from typing import Any

from ...triggers.book import Triggers
from ...words import offered
from .doors import door
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

    add = door(Triggers.add)
    all = door(Triggers.all)
    get = door(Triggers.get)
    versions = door(Triggers.versions)
    pause = door(Triggers.pause)
    resume = door(Triggers.resume)
    remove = door(Triggers.remove)
    fire = door(Triggers.fire)
    backfill = door(Triggers.backfill)
