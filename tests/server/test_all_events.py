"""The stream of all runs, for a client that begins, breaks off in the middle, or follows more runs than one look takes in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Builder, Engine
from stepwell.core.model.queries import ListRuns
from stepwell.server.api import events
from stepwell.server.service import ServerProcess
from stepwell.server.streams import feed
from stepwell.stores import open_store
from tests.server.running import SECONDS, client, running
from tests.server.test_events import events_of


class AnyVisitor:
    async def may_stay(self) -> bool:
        return True


def nothing() -> None:
    pass


def workflow() -> Builder:
    builder = Builder("small")
    builder.node("only", job="tests.server.test_all_events:nothing")
    return builder


def told(api: httpx.Client, wanted: set[tuple[str, str]], **headers: str) -> None:
    """Read the stream until these runs were told to stand so."""
    with api.stream("GET", "/api/v1/events", headers=headers) as stream:
        until_told(events_of(stream.iter_lines()), wanted)


def until_told(lines: Iterator[Any], wanted: set[tuple[str, str]]) -> None:
    wanted = set(wanted)
    for kind, _, data in lines:
        assert kind != "reset"
        if kind == "run":
            wanted.discard((data["id"], data["status"]))
        if not wanted:
            return


def test_every_stream_begins_with_the_runs_that_have_not_ended(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/first.db"
    with running(url) as serving, client(serving) as api, Engine(url, runner=None) as engine:
        wanted = {(engine.start(workflow()).id, "PENDING") for _ in range(3)}
        with api.stream("GET", "/api/v1/events") as stream:
            until_told(events_of(stream.iter_lines()), wanted)
            told(api, wanted)  # also the second, while the first one goes on


def test_a_client_without_headers_resumes_with_after(tmp_path: Path) -> None:
    """As the stream of a browser does, which cannot send Last-Event-ID when it opens anew."""
    url = f"sqlite:///{tmp_path}/after.db"
    with running(url) as serving, client(serving) as api, Engine(url) as engine:
        place = engine.store.now()
        run = engine.run(workflow())
        with api.stream("GET", "/api/v1/events", params={"after": place}) as stream:
            until_told(events_of(stream.iter_lines()), {(run.id, "COMPLETED")})


def test_a_change_in_a_large_backlog_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "RUNS_AT_ONCE", 5)
    url = f"sqlite:///{tmp_path}/many.db"
    with running(url) as serving, client(serving) as api, Engine(url, runner=None) as engine:
        runs = engine.start_many([workflow()] * 43)
        with api.stream("GET", "/api/v1/events") as stream:
            lines = events_of(stream.iter_lines())
            until_told(lines, {(run.id, "PENDING") for run in runs})
            runs[17].pause()
            until_told(lines, {(runs[17].id, "PAUSED")})
            runs[17].resume()
            until_told(lines, {(runs[17].id, "RUNNING")})
            for run in runs[3::10]:  # by the server itself
                assert api.post(f"/api/v1/runs/{run.id}/pause").status_code == 200
                until_told(lines, {(run.id, "PAUSED")})


def test_who_breaks_off_in_the_middle_of_what_came_together_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that had ended long before it was sent: here nothing that is older than a place is told again."""
    monkeypatch.setattr(feed, "SLACK", 0)
    monkeypatch.setattr(events, "SLACK", 0)
    store = open_store(f"sqlite:///{tmp_path}/broken.db")
    service = ServerProcess(store)

    async def read(stream: AsyncIterator[bytes]) -> list[tuple[str, str | None, Any]]:
        text = (await asyncio.wait_for(anext(stream), SECONDS)).decode()
        return list(events_of(iter(text.split("\n"))))

    async def follow() -> None:
        first: Any = events._all_events(service, None, AnyVisitor(), ListRuns())  # type: ignore[arg-type]
        assert await read(first) == []  # how long to wait before it comes back
        assert await read(first) == []  # where it begins
        assert await read(first) == []  # the runs that have not ended: there are none
        with Engine(store.url) as engine:
            reading = asyncio.ensure_future(read(first))
            runs = [await asyncio.to_thread(engine.run, workflow()) for _ in range(3)]
        ((_, place, _),) = await reading
        assert place is not None
        await first.aclose()
        again: Any = events._all_events(service, int(place), AnyVisitor(), ListRuns())  # type: ignore[arg-type]
        missing = {run.id for run in runs}
        while missing:
            missing -= {data["id"] for _, _, data in await read(again) if data["status"] == "COMPLETED"}
        await again.aclose()

    try:
        asyncio.run(follow())
    finally:
        service.close()
        store.close()
