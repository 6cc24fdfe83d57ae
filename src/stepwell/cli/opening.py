"""What every command begins with: its settings and its store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ..settings import Settings, read_settings
from ..store import Store, open_store

if TYPE_CHECKING:
    from ..runner import Engine


class Place:
    """Where a command works, and how another command is told to work there too."""

    def __init__(self, store: str | None) -> None:
        self.settings: Settings = read_settings({"store": store}, os.environ, Path.cwd())
        self._option = f" --store {store}" if store else ""
        if (folder := os.getcwd()) not in sys.path:
            sys.path.insert(0, folder)

    def command(self, words: str) -> str:
        """A command to type next: it names the store if this one did."""
        return f"stepwell {words}{self._option}"

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store, to look at. Where there is none, none is made: an empty one stands for it."""
        url = self.settings.store
        opened = open_store(url if _exists(url) else "memory://")
        try:
            yield opened
        finally:
            opened.close()

    def worker(self) -> Engine:
        """An engine that runs bodies; it makes the store if need be."""
        from ..runner import Engine

        return Engine(self.settings.store, **self.settings.for_workers)


def _exists(url: str) -> bool:
    scheme, _, rest = url.partition(":///")
    return scheme != "sqlite" or Path(unquote(rest.partition("?")[0])).exists()
