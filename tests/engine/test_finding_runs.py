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


def test_runs_are_found_by_when_they_were_created(engine: Engine) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=5)
    start_some(engine)
    assert len(engine.runs(since=begun)) == len(engine.runs(since=timedelta(hours=1))) == 6
    assert engine.runs(since=datetime.now(UTC) + timedelta(hours=1)) == []


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


@pytest.mark.parametrize("wrong", [{"since": "yesterday"}, {"since": datetime(2026, 1, 1)}, {"prefix": 7}])
def test_what_is_no_time_or_prefix_is_refused(engine: Engine, wrong: Any) -> None:
    with pytest.raises(InputError, match="expected "):
        engine.runs(**wrong)
