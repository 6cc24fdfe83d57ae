"""A page of runs that are searched costs no more than a limited number of runs, and says where to go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell.core.model import CountRuns, ListRuns
from stepwell.core.store import Store, reader
from stepwell.stores import open_store
from tests.conformance.ops import enlist, graph, start, work
from tests.postgres_server import PostgresServer

SEARCHED = 4


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(f"stepwell.stores.{request.param}.run_rows.SEARCHED", SEARCHED)
    url = f"sqlite:///{tmp_path}/runs.db"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_url()
    store = open_store(url)
    enlist(store)
    for number in range(10):
        start(store, graph(a=""), f"run-{number}", tags=(("kind", "rare" if number == 1 else "common"),))
        work(store, runs=(f"run-{number}",))
    yield store
    store.close()


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "RARE"},
        {"order": "ended", "tags": (("kind", "rare"),)},
        {"order": "ended", "text": "rare"},
        {"order": "duration", "prefix": "run-1"},
    ],
)
def test_a_page_may_be_empty_and_the_next_one_goes_on(store: Store, asked: dict[str, Any]) -> None:
    pages, query = [], ListRuns(2, **asked)
    while True:
        page = reader.list_runs(store, query)
        pages.append([row.id for row in page.runs])
        if page.cursor is None:
            break
        query = query._replace(before=page.cursor)
    assert len(pages) == 3
    assert [run for page in pages for run in page] == ["run-1"]
    (counted,) = store.read([CountRuns(ListRuns(**asked), "status")])
    assert not counted.exact


def test_an_order_that_leaves_out_nothing_is_read_page_by_page(store: Store) -> None:
    page = reader.list_runs(store, ListRuns(8, order="ended"))
    assert [row.id for row in page.runs] == [f"run-{number}" for number in range(9, 1, -1)]
    (counted,) = store.read([CountRuns(ListRuns(order="ended"), "status")])
    assert (counted.counts, counted.exact) == ((("COMPLETED", 10),), True)


def test_where_nothing_is_searched_for_a_page_is_as_long_as_is_asked(store: Store) -> None:
    page = reader.list_runs(store, ListRuns(8))
    assert [row.id for row in page.runs] == [f"run-{number}" for number in range(9, 1, -1)]
    last = reader.list_runs(store, ListRuns(8, before=page.cursor))
    assert ([row.id for row in last.runs], last.cursor) == (["run-1", "run-0"], None)
    (counted,) = store.read([CountRuns(ListRuns(), "status")])
    assert (counted.counts, counted.exact) == ((("COMPLETED", 10),), True)
