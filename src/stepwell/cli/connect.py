"""What every command begins with: its settings and its store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..base.commands import DEFAULT_STORE
from ..base.settings import Settings, read_settings
from ..core.store import Store
from ..errors import InputError, StoreError
from ..stores import open_store, public

if TYPE_CHECKING:
    from ..client import Client
    from ..client.transport import Transport
    from ..engine import Engine
    from ..handlers import Handlers


class Connection:
    """The store or server a command works on, and how to name it in another command."""

    def __init__(self, store: str | None, jobs: Sequence[str] = (), server: str | None = None) -> None:
        if store and server:
            raise InputError("--store and --server cannot both be given: a command works on one of them")
        arguments = {"store": store, "jobs": allowed_modules(jobs) or None, "server": server}
        self.settings: Settings = read_settings(arguments, os.environ, Path.cwd())
        self._server = None if store else self.settings.server
        self._typed = server is not None
        self._client: Client | None = None
        self._named = store is not None or self.settings.store != DEFAULT_STORE
        self._option = f" --store {quote(public(store))}" if store else f" --server {quote(server)}" if server else ""
        if (folder := os.getcwd()) not in sys.path:
            sys.path.insert(0, folder)

    def command(self, words: str) -> str:
        """A command to type next: it names the store if this one did."""
        return f"stepwell {words}{self._option}"

    @property
    def where(self) -> str:
        """The store or server, for messages."""
        return self._server or public(self.settings.store)

    @property
    def server(self) -> str | None:
        """The server that is asked instead of a store, if there is one."""
        return self._server

    def need_store(self, what: str) -> None:
        """Refuse a server, for a command that needs direct access to the store."""
        if self._typed:
            raise InputError(f"{what} needs the store itself: leave out --server, and name the store with --store")
        if self._server is not None and not self._named:
            raise InputError(f"{what} needs the store itself, not the server {self._server}: name it with --store")
        self._server = None

    def client(self, url: str) -> Client:
        """The server that is asked instead of a store."""
        from ..client import Client

        if self._client is None:
            self._client = Client(url, self.settings.token, jobs=self.settings.jobs, handlers=self.handlers())
        return self._client

    @property
    def transport(self) -> Transport | None:
        """The connection to the server; None if the command works on a store."""
        return None if self._server is None else self.client(self._server).parts.transport

    @contextmanager
    def store(self, *, make: bool = False) -> Iterator[Store]:
        """The store. One that does not exist is created with `make`; else it is empty, or an error if it was named."""
        if self._server is not None:
            yield self.client(self._server).store
            return
        url = self.settings.store
        exists = make or store_exists(url)
        if self._named and not exists:
            missing = f"store {public(url)}: there is no such file, {_file(url).absolute()}"
            raise StoreError(f"{missing}; `stepwell run` with this store makes it")
        with closing(open_store(url if exists else "memory://")) as opened:
            yield opened

    def handlers(self) -> Handlers:
        """The handlers available here, with the access that the settings give them."""
        from ..handlers import Handlers

        return Handlers.of_settings(self.settings)

    def engine(self, store: Store) -> Engine | Client:
        """An engine that reads and steers runs but runs no bodies; for a server, its client."""
        if self._server is not None:
            return self.client(self._server)
        return self.own_engine(store)

    def own_engine(self, store: Store) -> Engine:
        """The same for a command that has the store itself."""
        from ..engine import Engine

        return Engine(store, runner=None, jobs=self.settings.jobs, handlers=self.handlers())

    def worker(
        self, modules: Sequence[str] = (), queues: Sequence[str] | None = None, pipelines: Iterable[Any] = ()
    ) -> Engine | Client:
        """An engine that runs bodies, and creates its store if need be; for a server, its client. `modules` may be imported."""
        if self._server is not None:
            return self.client(self._server)
        return self.own_worker(modules, queues, pipelines)

    def own_worker(
        self, modules: Sequence[str] = (), queues: Sequence[str] | None = None, pipelines: Iterable[Any] = ()
    ) -> Engine:
        """The same for a command that has the store itself."""
        from ..engine import Engine

        options: dict[str, Any] = self.settings.for_workers | {
            "handlers": self.handlers(),
            "queues": queues,
            "pipelines": pipelines,
        }
        engine = Engine(self.settings.store, **options | {"jobs": (*self.settings.jobs, *modules)})
        engine.parts.work.warns_unfinished = False  # commands say what becomes of their runs themselves
        durability = getattr(engine.store, "durability", None)
        if durability is not None:  # of a database server: it depends on its settings
            print(f"store {engine.store.url}: {durability}", file=sys.stderr)
        return engine


def allowed_modules(given: Sequence[str]) -> tuple[str, ...]:
    """What `--jobs` names."""
    names = tuple(name for each in given for name in each.split(","))
    for name in names:
        if not all(map(str.isidentifier, name.split("."))):
            raise InputError(f"--jobs {name}: expected the name of a module, as in shop.jobs")
    return names


def store_exists(url: str) -> bool:
    return not url.startswith("sqlite:///") or _file(url).exists()


def _file(url: str) -> Path:
    return Path(unquote(url.removeprefix("sqlite:///").partition("?")[0]))
