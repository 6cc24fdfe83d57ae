"""`stepwell ui`: the web UI of a server, or of one that is started over the store, in the browser."""

from __future__ import annotations

from contextlib import closing
from urllib.parse import quote

from ...core.store import Store
from ...errors import StoreError
from ..connect import Connection, store_exists
from ..find import find_run
from ..web import about, announce, load_serving, show_page
from .fleet import hinting_store


def ui(connection: Connection, run: str | None, *, no_browser: bool) -> None:
    if connection.server is not None and connection.transport is not None:
        connection.transport.get("/healthz")  # an error if nobody answers there
        with connection.store() as store:
            path = path_of(store, run)
        show_page(connection.server.rstrip("/") + path, no_browser=no_browser)
        return
    Serving = load_serving()
    if not store_exists(connection.settings.store):
        advice = "`stepwell run` makes it, and `stepwell demo` shows a sample"
        raise StoreError(f"store {connection.where}: there is no such file; {advice}")
    with closing(hinting_store(connection)) as store:
        path = path_of(store, run)
        settings = connection.settings
        serving = Serving(store, port=0, handlers=connection.handlers(), jobs=settings.jobs, about=about(settings))

        def started() -> None:
            announce(serving, ", no runner: workers elsewhere run the bodies")
            show_page(serving.url + path, no_browser=no_browser)

        serving.run(started)


def path_of(store: Store, run: str | None) -> str:
    """The path of the page of a run, or of the first page."""
    return "/" if run is None else f"/runs/{quote(find_run(store, run).id, safe='')}"
