"""What every command begins with: the settings, the store, the run that is meant."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import unquote

from ..errors import InputError, RunNotFound
from ..model import RunRow
from ..runner import Engine
from ..runner.engine import DEFAULT_URL
from ..settings import Settings, read_settings
from ..store import reader

SHORTEST_PREFIX = 4
_FEW = 5


class Place:
    """Where a command works: its settings, and how another command is told to work there too."""

    def __init__(self, store: str | None) -> None:
        self.settings: Settings = read_settings({"store": store}, os.environ, Path.cwd())
        self._option = f" --store {store}" if store else ""
        if (folder := os.getcwd()) not in sys.path:
            sys.path.insert(0, folder)

    def command(self, words: str) -> str:
        """A command to type next: it names the store if this one did."""
        return f"stepwell {words}{self._option}"

    @property
    def url(self) -> str:
        return self.settings.store or DEFAULT_URL

    def worker(self) -> Engine:
        """An engine that works."""
        return Engine(self.settings.store, **self.settings.for_workers)

    def starter(self) -> Engine:
        """An engine that looks and changes, but runs nothing. It makes no store where there is none: that one is empty."""
        return Engine(self.url if _exists(self.url) else "memory://", runner=None)


def _exists(url: str) -> bool:
    scheme, _, rest = url.partition(":///")
    return scheme != "sqlite" or Path(unquote(rest.partition("?")[0])).exists()


def find_run(engine: Engine, text: str) -> RunRow:
    """The run with this id, or the only one whose id begins so."""
    row = reader.get_run(engine.store, text)
    if row is not None:
        return row
    if len(text) < SHORTEST_PREFIX:
        raise RunNotFound(text)
    found = [row for row in reader.all_runs(engine.store) if row.id.startswith(text)]
    if not found:
        raise RunNotFound(text)
    if len(found) > 1:
        shown = "".join(f"\n  {row.id}  {row.workflow} {row.status}" for row in found[:_FEW])
        more = f"\n  and {len(found) - _FEW:,} more" if len(found) > _FEW else ""
        raise InputError(f"{text!r} begins the ids of {len(found):,} runs; give more of it:{shown}{more}")
    return found[0]
