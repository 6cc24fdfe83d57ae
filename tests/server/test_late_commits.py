"""A commit may become visible after another one with a later time. What it changed is told all the same, on every stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from stepwell import Builder, Engine
from stepwell.base.clock import Clock, ManualClock
from stepwell.core.model import ListEnded, ListLines, ListRuns, Query
from stepwell.core.model.queries import Page, RunPage
from stepwell.core.store import Store
from stepwell.core.store.memory import MemoryStore
from stepwell.errors import StoreError
from stepwell.server.api import events
from stepwell.server.serving import Serving
from stepwell.server.streams import feed
from tests.server.running import client, serving_of
from tests.server.test_all_events import told, until_told, workflow
from tests.server.test_events import events_of

ALL = "/api/v1/events"
PAGE = 2


class Delayed:
    """A store that lists some rows later than they have their times, as a database does with transactions that overlap."""

    def __init__(self, store: Store, *, embedded: bool) -> None:
        self._store = store
        self.embedded = embedded
        self.delays: Callable[[Any], bool] = lambda row: False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, queries: Sequence[Query]) -> list[Any]:
        asked = [query._replace(limit=PAGE) if isinstance(query, ListEnded) else query for query in queries]
        return [self._visible(*each) for each in zip(asked, self._store.read(asked), strict=True)]

    def _visible(self, query: Query, answer: Any) -> Any:
        if isinstance(query, ListRuns):
            return RunPage(tuple(row for row in answer.runs if not self.delays(row)), answer.cursor)
        if isinstance(query, (ListEnded, ListLines)):
            return Page((row for row in answer if not self.delays(row)), answer.cursor)
        return answer


@contextmanager
def delayed(
    *, embedded: bool, clock: Clock | None = None, **options: Any
) -> Iterator[tuple[Serving, Delayed, httpx.Client, Engine]]:
    store: Any = Delayed(MemoryStore(clock), embedded=embedded)
    with serving_of(store, **options) as serving, client(serving) as api:
        yield serving, store, api, serving.service.engine


@pytest.mark.parametrize(("embedded", "seconds"), [(True, 1), (False, 10)])
def test_an_end_that_becomes_visible_late_is_told(embedded: bool, seconds: int) -> None:
    clock = ManualClock()
    with delayed(embedded=embedded, clock=clock) as (serving, store, api, engine), api.stream("GET", ALL) as stream:
        lines = events_of(stream.iter_lines())
        for _ in range(3):  # wherever the stream is
            late, prompt = engine.start_many([workflow(), workflow()])
            until_told(lines, {(late.id, "PENDING"), (prompt.id, "PENDING")})
            store.delays = lambda row, late=late: row.id == late.id
            late.cancel()
            clock.advance(seconds)
            prompt.cancel()
            until_told(lines, {(prompt.id, "CANCELLED")})
            store.delays = lambda row: False
            serving.service.feed.poke()
            until_told(lines, {(late.id, "CANCELLED")})


@pytest.mark.parametrize("error", [StoreError("away"), KeyError("damaged")], ids=["a store", "a row"])
def test_streams_go_on_after_a_look_that_failed(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "TROUBLE_SECONDS", 0.01)
    with delayed(embedded=True) as (serving, store, api, engine), api.stream("GET", ALL) as stream:
        lines = events_of(stream.iter_lines())
        first = engine.start(workflow())
        until_told(lines, {(first.id, "PENDING")})
        failed = threading.Event()

        def fails(row: Any) -> bool:
            store.delays = lambda row: False
            failed.set()
            raise error

        store.delays = fails
        while not failed.wait(0.05):
            serving.service.feed.poke()
        first.cancel()
        until_told(lines, {(first.id, "CANCELLED")})


def test_an_end_that_becomes_visible_after_a_client_left_is_told_when_it_resumes() -> None:
    clock = ManualClock()
    with delayed(embedded=False, clock=clock) as (_, store, api, engine):
        late, *others = engine.start_many([workflow()] * 6)
        store.delays = lambda row: row.id == late.id
        late.cancel()
        clock.advance(10)
        with api.stream("GET", ALL) as stream:
            place = next(line for line in stream.iter_lines() if line.startswith("id: ")).removeprefix("id: ")
        assert int(place) == clock.now()
        clock.advance(5)
        for run in others:  # several pages at one moment, after the late one
            run.cancel()
        wanted = {(run.id, "CANCELLED") for run in (late, *others)}
        store.delays = lambda row: False
        told(api, wanted, **{"Last-Event-ID": place})


def test_an_end_that_becomes_visible_after_a_stream_began_is_told() -> None:
    clock = ManualClock()
    with delayed(embedded=False, clock=clock) as (serving, store, api, engine):
        late = engine.start(workflow())
        store.delays = lambda row: True
        late.cancel()
        clock.advance(10)
        with api.stream("GET", ALL) as stream:
            lines = stream.iter_lines()
            assert any(line.startswith("id: ") for line in lines)
            store.delays = lambda row: False
            serving.service.feed.poke()
            until_told(events_of(lines), {(late.id, "CANCELLED")})


def test_a_run_created_again_under_the_same_id_is_told_again() -> None:
    clock = ManualClock()
    with (
        delayed(embedded=True, clock=clock) as (serving, store, api, engine),
        api.stream("GET", ALL) as stream,
    ):
        lines = events_of(stream.iter_lines())
        for _ in range(2):
            store.delays = lambda row: True  # it is as far as before when it is seen
            run = engine.start(workflow(), run_id="again")
            run.cancel()
            store.delays = lambda row: False
            serving.service.feed.poke()
            until_told(lines, {("again", "CANCELLED")})
            run.delete()
            clock.advance(1)


def test_a_client_that_missed_too_much_lists_the_runs_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    for module in (feed, events):
        monkeypatch.setattr(module, "MAX_CHANGED", 2 * PAGE)
    with delayed(embedded=False, clock=clock) as (_, _, api, engine):
        for count in (2 * PAGE, 2 * PAGE + 1):
            place = {"Last-Event-ID": str(clock.now())}
            runs = engine.start_many([workflow()] * count)
            for run in runs:
                run.cancel()
            with api.stream("GET", ALL, headers=place) as stream:
                lines = events_of(stream.iter_lines())
                if count > 2 * PAGE:
                    assert "reset" in (kind for kind, _, _ in lines)
                else:
                    until_told(lines, {(run.id, "CANCELLED") for run in runs})
                    until_told(lines, {(engine.start(workflow()).id, "PENDING")})
            clock.advance(60)


def write(text: str) -> None:
    print(text)


@pytest.mark.parametrize("embedded", [True, False])
def test_a_line_that_becomes_visible_late_is_told(embedded: bool) -> None:
    builder = Builder("lines")
    builder.node("first", job=write, args={"text": "late"})
    builder.node("second", job=write, args={"text": "prompt"})
    with delayed(embedded=embedded, worker={}) as (serving, store, api, _):
        assert serving.worker is not None
        run = serving.worker.run(builder)
        path = f"/api/v1/runs/{run.id}/logs/events"
        for resumed in (False, True):
            store.delays = lambda row: b'"late"' in row.data
            with api.stream("GET", path) as stream:
                lines = events_of(stream.iter_lines())
                _, place, line = next(lines)
                assert line["message"] == "prompt"
                store.delays = lambda row: False
                if not resumed:
                    assert next(lines)[2]["message"] == "late"
            if resumed:
                with api.stream("GET", path, headers={"Last-Event-ID": str(place)}) as stream:
                    lines = events_of(stream.iter_lines())
                    assert {next(lines)[2]["message"] for _ in range(2)} == {"late", "prompt"}
        with api.stream("GET", path, params={"until": "ended"}) as stream:
            found = [data["message"] for kind, _, data in events_of(stream.iter_lines()) if kind == "log"]
        assert found == ["late", "prompt"]
