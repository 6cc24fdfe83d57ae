"""A store that another process has locked: requests that commit wait, and all others are answered meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepwell.server.access.tokens import create_token
from tests.engine.test_store_in_trouble import write_lock
from tests.engine.waiting import eventually
from tests.server.running import ADD, client, running

WRITERS = 48


def test_reads_and_token_checks_do_not_wait_for_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.db"
    with running(f"sqlite:///{path}") as serving, ThreadPoolExecutor(WRITERS) as threads:
        service, arrived = serving.service, list[str]()
        author, reader = (create_token(service.store, [scope])[0] for scope in ("author", "read"))
        assert service.requests is not None
        app = service.requests.app

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            arrived.append(scope["path"])
            await app(scope, receive, send)

        with client(serving, author) as api:
            assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        monkeypatch.setattr(service.requests, "app", counted)

        def start(number: int) -> int:
            with client(serving, author) as api:
                return api.post("/api/v1/workflows/add/runs", json={"input": {"a": number}}).status_code

        with write_lock(path):
            starts = [threads.submit(start, number) for number in range(WRITERS)]
            eventually(lambda: len(arrived) == WRITERS)
            began = time.monotonic()
            with client(serving, reader) as api:
                assert api.get("/api/v1/runs").json()["items"] == []
                assert api.get("/readyz").status_code == 503, "the store takes no commits"
            assert time.monotonic() - began < 10, "the writers wait for half a minute"
            assert not any(each.done() for each in starts)
        assert [each.result() for each in starts] == [201] * WRITERS
