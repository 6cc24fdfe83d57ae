"""What every command begins with: its settings and its store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..commands import DEFAULT_STORE
from ..errors import InputError, StoreError
from ..settings import Settings, read_settings
from ..store import Store, open_store, public

if TYPE_CHECKING:
    from ..handlers import Handlers
    from ..runner import Engine


class Connection:
    """Where a command works, and how another command is told to work there too."""

    def __init__(self, store: str | None, jobs: Sequence[str] = ()) -> None:
        arguments = {"store": store, "jobs": allowed_modules(jobs) or None}
        self.settings: Settings = read_settings(arguments, os.environ, Path.cwd())
        self._named = store is not None or self.settings.store != DEFAULT_STORE
        self._option = f" --store {quote(public(store))}" if store else ""
        if (folder := os.getcwd()) not in sys.path:
            sys.path.insert(0, folder)

    def command(self, words: str) -> str:
        """A command to type next: it names the store if this one did."""
        return f"stepwell {words}{self._option}"

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store, to look at. Where there is none, none is made: an empty one stands for it, unless somebody named it."""
        url = self.settings.store
        exists = store_exists(url)
        if self._named and not exists:
            raise StoreError(
                f"store {public(url)}: there is no such file, {_file(url).absolute()}; `stepwell run` with this store makes it"
            )
        opened = open_store(url if exists else "memory://")
        try:
            yield opened
        finally:
            opened.close()

    def handlers(self) -> Handlers:
        """The handlers there are here, with what the settings let them reach."""
        from ..handlers import Handlers

        return Handlers.of_settings(self.settings)

    def engine(self, store: Store) -> Engine:
        """An engine that only looks at a store and steers what is in it."""
        from ..runner import Engine

        return Engine(store, runner=None, jobs=self.settings.jobs, handlers=self.handlers())

    def worker(self, modules: Sequence[str] = (), queues: Sequence[str] | None = None) -> Engine:
        """An engine that runs bodies; it makes the store if need be. What is defined in `modules` was given to it."""
        from ..runner import Engine

        options: dict[str, Any] = self.settings.for_workers | {"handlers": self.handlers(), "queues": queues}
        engine = Engine(self.settings.store, **options | {"jobs": (*self.settings.jobs, *modules)})
        engine.tells_unfinished = False  # commands say what becomes of their runs themselves
        durability = getattr(engine.store, "durability", None)
        if durability is not None:  # of a server: what is promised depends on how it is set
            print(f"store {engine.store.url}: {durability}", file=sys.stderr)
        return engine


def allowed_modules(given: Sequence[str]) -> tuple[str, ...]:
    """What `--jobs` names."""
    names = tuple(name for each in given for name in each.split(","))
    for name in names:
        if not all(map(str.isidentifier, name.split("."))):
            raise InputError(f"--jobs {name}: the name of a module is needed, as in shop.jobs")
    return names


def store_exists(url: str) -> bool:
    return not url.startswith("sqlite:///") or _file(url).exists()


def _file(url: str) -> Path:
    return Path(unquote(url.removeprefix("sqlite:///").partition("?")[0]))
