"""The same request to many runs, of an engine, of a client, and for coroutines: what was previewed is done, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stepwell import Client, Engine, Workflow, step
from stepwell.errors import InputError
from tests.server.running import serving_of

BROKEN: set[int] = set()


class Parcel(Workflow):
    number: int

    @step
    def weigh(self) -> int:
        return self.number

    @step
    def send(self, weigh: int) -> str:
        if weigh in BROKEN:
            raise ConnectionError("no courier")
        return "sent"


class Letter(Workflow):
    @step
    def send(self) -> None:
        raise ValueError("no stamps")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Parcels 1 to 3 failed, parcel 4 and a letter did something else."""
    url = f"sqlite:///{tmp_path}/bulk.db"
    BROKEN.update((1, 2, 3))
    with Engine(url, workflows=[Parcel, Letter]) as engine:
        for number in range(1, 5):
            engine.run(Parcel(number=number), run_id=f"parcel-{number}", check=False, tags={"day": "monday"})
        engine.run(Letter(), run_id="letter", check=False)
    BROKEN.clear()
    yield url
    BROKEN.clear()


@pytest.fixture(params=["engine", "client"])
def calls(url: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Without a runner, so that a run that is retried stays as the request left it."""
    with Engine(url, runner=None) as engine:
        if request.param == "engine":
            yield engine
            return
        with serving_of(engine.store) as serving, Client(serving.url) as client:
            yield client


def statuses(calls: Any) -> dict[str, str]:
    return {run.id: str(run.row.status) for run in calls.runs()}


FAILED = [f"parcel-{number}" for number in (3, 2, 1)]


def test_a_preview_does_nothing_and_what_it_shows_is_done(calls: Any) -> None:
    before = statuses(calls)
    preview = calls.preview_bulk("retry", workflow="Parcel", status="failed", tag={"day": "monday"})
    assert [each["run"] for each in preview.record["runs"]] == FAILED
    assert (preview.record["done"], preview.record["nodes"], preview.record["dry_run"]) == (3, 3, True)
    assert statuses(calls) == before
    record = preview.apply(reason="the courier is back")
    assert (record["done"], record["refused"], record["changed"], record["dry_run"]) == (3, 0, 0, False)
    assert statuses(calls) == before | dict.fromkeys(FAILED, "RUNNING")
    (entry,) = calls.audit_log("parcel-1", action="retry")
    assert entry.reason == "the courier is back"


def test_a_run_that_was_steered_since_is_left_alone(calls: Any) -> None:
    preview = calls.preview_bulk("retry", workflow="Parcel", since=timedelta(days=1))
    calls.get("parcel-2").retry()
    record = preview.apply()
    assert {each["run"]: each["outcome"] for each in record["runs"]} == {
        "parcel-3": "done",
        "parcel-2": "changed",
        "parcel-1": "done",
    }
    assert (record["done"], record["changed"]) == (2, 1)


def test_what_a_run_refuses_is_told_and_the_others_go_on(calls: Any) -> None:
    preview = calls.preview_bulk("reattempt", node="weigh", prefix="parcel-", limit=4)
    outcomes = {each["run"]: (each["outcome"], each["detail"]) for each in preview.record["runs"]}
    refused, why = outcomes.pop("parcel-4")
    assert refused == "refused"
    assert "cascade" in str(why)
    assert outcomes == dict.fromkeys(FAILED, ("done", None))
    assert preview.apply()["done"] == 3


def test_previews_go_on_where_more_runs_match(calls: Any) -> None:
    first = calls.preview_bulk("retry", error="ConnectionError", limit=2)
    assert ([each["run"] for each in first.record["runs"]], first.record["more"]) == (FAILED[:2], True)
    first.apply()
    second = first.next()
    assert ([each["run"] for each in second.record["runs"]], second.record["more"]) == (FAILED[2:], False)
    assert second.next() is None


def test_forks_with_a_key_are_made_once(calls: Any) -> None:
    preview = calls.preview_bulk("fork", workflow="Letter", key="again", at="send")
    made = [[each["fork"] for each in preview.apply()["runs"]] for _ in range(2)]
    assert made == [["letter-again"]] * 2
    assert [fork.id for fork in calls.get("letter").forks()] == ["letter-again"]


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        ("delete", {}, "verb='delete': expected one of retry, reattempt, cancel, pause, resume, fork"),
        ("retry", {"cascade": True}, "retry takes no cascade; it takes accept, input"),
        ("pause", {"node": "send"}, "pause takes no node; it takes no options"),
        ("reattempt", {}, "expected `node` for reattempt"),
        ("retry", {"status": "completed"}, "retry is for runs that are FAILED, CANCELLED, PAUSED"),
        ("retry", {"limit": 0}, "limit=0: expected a whole number from 1 to 1,000"),
        ("cancel", {"grace_seconds": -1}, "grace_seconds=-1: expected"),
    ],
)
def test_what_fits_no_verb_is_refused(calls: Any, verb: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calls.preview_bulk(verb, **options)


def test_coroutines_preview_and_request_too(url: str) -> None:
    async def look() -> None:
        async with Engine(url, runner=None) as engine:
            preview = await engine.preview_bulk("retry", workflow="Parcel", limit=2)
            assert preview.record["done"] == 2
            assert (await preview.apply())["done"] == 2
            rest = await preview.next()
            assert rest is not None
            assert rest.record["done"] == 1
            assert await rest.next() is None

    asyncio.run(look())


def test_an_engine_with_a_runner_works_on_what_it_retries(url: str) -> None:
    with Engine(url, workflows=[Parcel]) as engine:
        engine.preview_bulk("retry", workflow="Parcel").apply()
        for run_id in FAILED:
            assert engine.get(run_id).wait(30).status == "COMPLETED"
