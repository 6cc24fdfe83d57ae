"""A real server in a thread, on a port that the system chose."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from stepwell.core.store import Store
from stepwell.server.serving import Serving
from stepwell.stores import open_store

SECONDS = 30.0

ADD: dict[str, Any] = {
    "name": "add",
    "input": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "nodes": [
        {"id": "x", "handler": "transform", "config": {"template": "{{ input.a }}"}},
        {
            "id": "y",
            "handler": "transform",
            "config": {"template": "{{ x.result + 1 }}"},
            "dependencies": ["x"],
        },
    ],
}


@contextmanager
def running(url: str, **options: Any) -> Iterator[Serving]:
    """A server of the store at this URL."""
    store = open_store(url)
    try:
        with serving_of(store, **options) as serving:
            yield serving
    finally:
        store.close()


@contextmanager
def serving_of(store: Store, **options: Any) -> Iterator[Serving]:
    serving = Serving(store, port=0, **options)
    started = threading.Event()
    thread = threading.Thread(target=serving.run, args=(started.set,), name="server")
    thread.start()
    try:
        assert started.wait(SECONDS)
        yield serving
    finally:
        serving.stop()
        thread.join(SECONDS)
    assert not thread.is_alive()


def client(serving: Serving, token: str | None = None, **options: Any) -> httpx.Client:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=serving.url, headers=headers, timeout=SECONDS, **options)


def ended(api: httpx.Client, run_id: str, status: str = "COMPLETED") -> dict[str, Any]:
    """The run once it has ended; told by its stream."""
    with api.stream("GET", f"/api/v1/runs/{run_id}/events", params={"until": "ended"}) as stream:
        for _ in stream.iter_lines():
            pass
    found: dict[str, Any] = api.get(f"/api/v1/runs/{run_id}").json()
    assert found["status"] == status, found
    return found
