"""Runs are found by what people know of them: tags, workflow, status, time, the beginning of an id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell import Engine, Workflow, step
from stepwell.errors import InputError


class Order(Workflow):
    number: int

    @step
    def check(self) -> int:
        if self.number == 3:
            raise ValueError("three")
        return self.number


def start_some(engine: Engine) -> None:
    for number in range(6):
        tags = {"customer": str(number % 2), "kind": "test"}
        engine.start(Order(number=number), run_id=f"order-{number}", tags=tags).wait(10)


def ids(runs: Any) -> list[str]:
    return [run.id.removeprefix("order-") for run in runs]


def test_runs_are_found_by_tag_status_and_id(engine: Engine) -> None:
    start_some(engine)
    assert ids(engine.runs(tag={"customer": "1"})) == ["5", "3", "1"]
    assert ids(engine.runs(tag={"customer": "1", "kind": "test"}, status="failed")) == ["3"]
    assert ids(engine.runs(status="Completed", workflow="Order", prefix="order-4")) == ["4"]
    assert ids(engine.runs(tag={"customer": "7"})) == []


def test_runs_are_found_by_their_error_a_text_and_their_origin(engine: Engine) -> None:
    start_some(engine)
    assert ids(engine.runs(error="ValueError")) == ids(engine.runs(search="valueE")) == ["3"]
    assert ids(engine.runs(error="KeyError")) == []
    assert ids(engine.runs(search="customer=1", status="completed")) == ["5", "1"]
    fork = engine.get("order-2").fork("check").wait(10)
    assert [run.id for run in engine.runs(fork_of="order-2")] == [fork.id]
    assert engine.get("order-3").row.error == "ValueError"


def test_runs_are_listed_in_the_order_of_their_ends_and_lengths(engine: Engine) -> None:
    start_some(engine)
    assert ids(engine.runs(order="ended", limit=4).all()) == ["5", "4", "3", "2", "1", "0"]
    seconds = {run.id: run.row.ended_at - run.row.started_at for run in engine.runs()}  # type: ignore[operator]
    longest_first = [run.id for run in engine.runs(order="duration", limit=2).all()]
    assert [seconds[run] for run in longest_first] == sorted(seconds.values(), reverse=True)
    with pytest.raises(InputError, match="order=ended lists runs that have ended, and none of these is RUNNING"):
        engine.runs(order="ended", status="running")


def test_runs_are_counted_by_what_they_are_found_by(engine: Engine) -> None:
    start_some(engine)
    assert engine.count_runs(tag={"customer": "1"})["counts"] == [
        {"value": "COMPLETED", "count": 2, "exact": True},
        {"value": "FAILED", "count": 1, "exact": True},
    ]
    assert engine.count_runs("workflow", error="ValueError")["total"] == 1
    with pytest.raises(InputError, match="by='colour': expected one of status, workflow, hour, day"):
        engine.count_runs("colour")  # type: ignore[arg-type]


def test_the_pages_of_a_search_go_on_although_one_of_them_is_empty(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepwell.stores.sqlite.run_rows.SEARCHED", 2)
    start_some(engine)
    assert ids(engine.runs(search="order-0")) == ["0"]
    assert ids(engine.runs(search="customer=1", limit=2).all()) == ["5", "3", "1"]


def test_runs_are_found_by_when_they_were_created(engine: Engine) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=5)
    start_some(engine)
    assert len(engine.runs(since=begun)) == len(engine.runs(since=timedelta(hours=1))) == 6
    assert engine.runs(since=datetime.now(UTC) + timedelta(hours=1)) == engine.runs(until=begun) == []


def test_pages_follow_each_other_and_all_of_them_can_be_gone_through(engine: Engine) -> None:
    start_some(engine)
    page = engine.runs(limit=4)
    assert ids(page) == ["5", "4", "3", "2"]
    assert ids(page.next()) == ["1", "0"]
    assert page.next().next() == []
    assert ids(engine.runs(limit=2, tag={"kind": "test"}).all()) == ["5", "4", "3", "2", "1", "0"]


def test_a_fork_has_the_tags_of_its_origin_and_its_own_row_says_so(engine: Engine) -> None:
    run = engine.run(Order(number=1), tags={"customer": "7"})
    fork = run.fork("check").wait(10)
    assert fork.row.tags == run.row.tags == (("customer", "7"),)
    assert fork.row.origin == run.id


@pytest.mark.parametrize(
    "tags",
    [
        "customer=7",
        {"customer": 7},
        {"": "7"},
        {"customer": ""},
        {"a": "x" * 501},
        {"a": "\x00"},
        {"a": "\ud800"},
        {f"name-{number}": "1" for number in range(33)},
    ],
    ids=lambda tags: ascii(tags)[:20],
)
def test_tags_that_cannot_be_kept_are_refused(engine: Engine, tags: Any) -> None:
    with pytest.raises(InputError, match="tags="):
        engine.start(Order(number=1), tags=tags)
    with pytest.raises(InputError, match="tags="):
        engine.runs(tag=tags)
    assert engine.runs() == []


@pytest.mark.parametrize(
    "wrong", [{"since": "yesterday"}, {"since": datetime(2026, 1, 1)}, {"prefix": 7}, {"error": 7}, {"order": "x"}]
)
def test_what_is_no_time_or_name_is_refused(engine: Engine, wrong: Any) -> None:
    with pytest.raises(InputError, match="expected "):
        engine.runs(**wrong)
