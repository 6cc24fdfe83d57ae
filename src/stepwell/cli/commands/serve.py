"""`stepwell serve`: the web UI, the HTTP API, and a runner beside them."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from ...stores import open_store
from ..connect import Connection
from ..web import about, announce, load_serving
from .fleet import hinting_store
from .run import import_all


def serve(
    connection: Connection,
    modules: Sequence[str] | None,
    *,
    host: str,
    port: int,
    no_runner: bool,
    allow_host: Sequence[str] | None,
    root_path: str,
    pipeline: Sequence[str] | None,
) -> None:
    Serving = load_serving()
    workflows = import_all(modules or ())
    settings = connection.settings
    worker: dict[str, Any] | None = None
    if not no_runner:
        worker = {name: value for name, value in settings.for_workers.items() if name != "jobs"}
        worker["workflows"] = workflows
    pipelines = []
    if named := tuple(pipeline or ()) or settings.pipelines:
        from .pipeline import find_pipelines

        pipelines = find_pipelines(connection, named)
    with closing(hinting_store(connection) if no_runner else open_store(settings.store)) as store:
        serving = Serving(
            store,
            host=host,
            port=port,
            hosts=(*settings.allowed_hosts, *(allow_host or ())),
            root=root_path,
            worker=worker,
            handlers=connection.handlers(),
            jobs=(*settings.jobs, *(modules or ())),
            pipelines=pipelines,
            about=about(settings),
        )
        works = "no runner: workers elsewhere run the bodies" if no_runner else "a runner works in this process"

        def begin() -> None:
            # What exists now lives as long as the process, and collecting it would pause everything for 60 ms.
            gc.collect()
            gc.freeze()
            announce(serving, f", {works}")

        serving.run(begin)
