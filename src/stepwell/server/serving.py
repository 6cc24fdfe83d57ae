"""Serving the application: where it listens, and how it ends."""

from __future__ import annotations

import re
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from ..core.store import Store
from ..engine import Engine
from ..errors import InputError, StoreReplaced
from ..handlers import Handlers
from .access.guard import is_loopback, own_names
from .access.tokens import all_tokens
from .app import make_app
from .protocol import ACCEPTED_AT_ONCE, BoundedProtocol
from .service import About, ServerProcess
from .streams.feed import WatchedStore

if TYPE_CHECKING:
    from ..pipeline import Pipeline

PORT = 8765
WAITING_CONNECTIONS = 1024
"""That the system keeps until they are accepted."""
CLOSE_SECONDS = 5
"""How long requests may go on when the server ends. Streams end at once."""


class Serving:
    """A server that listens on a port of its own.

        serving = Serving(open_store("sqlite:///orders.db"), worker={})
        print(serving.url)
        serving.run()

    `worker` are options of an engine that works in this process; None: none does. `hosts` are names it is called by, besides
    its address, `root` the path that a proxy serves it below, `about` what its pages show of it. The store belongs to whoever
    opened it.
    """

    def __init__(
        self,
        store: Store,
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        hosts: Collection[str] = (),
        root: str = "",
        worker: dict[str, Any] | None = None,
        handlers: Handlers | None = None,
        jobs: Iterable[str] = (),
        pipelines: Iterable[Pipeline] = (),
        about: About | None = None,
    ) -> None:
        check_bind(store, host)
        root = checked_root(root)
        self._listening = _listen(host, port)
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._listening.getsockname()[1]}"
        watched = WatchedStore(store)
        pipelines = tuple(pipelines)
        self.worker = (
            None
            if worker is None
            else Engine(watched, handlers=handlers or (), jobs=jobs, pipelines=pipelines, **worker)
        )
        self.service = ServerProcess(
            watched, worker=self.worker, handlers=handlers, jobs=jobs, pipelines=pipelines, about=about
        )
        watched.on_commit = self.service.feed.poke
        watched.on_record = self.service.record_put
        watched.on_replaced = self._give_up
        self._replaced: StoreReplaced | None = None
        config = uvicorn.Config(
            make_app(self.service, hosts={*hosts, host, *own_names()}, root=root),
            access_log=False,
            log_level="warning",
            proxy_headers=False,  # the peer address counts, never a header
            server_header=False,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            timeout_keep_alive=30,
            http=BoundedProtocol,
            backlog=ACCEPTED_AT_ONCE,
            ws="none",
            lifespan="off",
        )
        self._server = _Server(config, self.service)

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Until a signal ends it, or `stop` is called. `on_start` is called once requests are answered.

        Raises StoreReplaced when its store was flushed or exchanged: then it could only refuse what is asked.
        """
        self._server.on_start = on_start
        try:
            if self.worker is not None:
                self.worker.work(wait=0)
            with _ending_quietly():
                self._server.run(sockets=[self._listening])
        finally:
            self._listening.close()
            self.service.close()
            if self.worker is not None:
                self.worker.close()
        if self._replaced is not None:
            raise self._replaced

    def _give_up(self, error: StoreReplaced) -> None:
        self._replaced = error
        self.stop()

    def stop(self) -> None:
        """From any thread: `run` ends soon."""
        self._server.should_exit = True


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """Uvicorn raises a signal that ended it again; this must not end the process before everything is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_bind(store: Store, host: str) -> None:
    """Refuse to serve other machines before there is a valid token."""
    if is_loopback(host):
        return
    now = store.now()
    if not any(token.status(now) == "valid" for token in all_tokens(store)):
        advice = "make one first (`stepwell token create --scope admin`), or serve on 127.0.0.1"
        raise InputError(f"--host {host}: other machines reach this address, and there is no valid token; {advice}")


def checked_root(root: str) -> str:
    """
    >>> checked_root("/tools/stepwell/"), checked_root("")
    ('/tools/stepwell', '')
    """
    root = root.rstrip("/")
    if root and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", root):
        raise InputError(
            f"--root-path {root!r}: a path is meant, of letters, digits and ._~- between slashes, as in /stepwell"
        )
    return root


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only for what says that it is TCP; with it every answer takes 40 ms longer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(WAITING_CONNECTIONS)
    except OSError as error:
        listening.close()
        problem = f"nothing can be served on {host} port {port}: {error.strerror or error}"
        raise InputError(f"{problem}; choose another with --port") from None
    return listening


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: ServerProcess) -> None:
        super().__init__(config)
        self._service = service
        self.on_start: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():  # asyncio has one number for what it accepts at once and for what may wait
            each.listen(WAITING_CONNECTIONS)
        self.on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams first, which would go on as long as their clients. This waits for no thread: all may be busy."""
        self._service.feed.end_streams()
        await super().shutdown(sockets)
