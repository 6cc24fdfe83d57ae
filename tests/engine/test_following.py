"""`engine.events()` gives what `client.events()` gives: the journal of a run, or every run when it changes."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import pytest

from stepwell import Engine, Workflow, step
from stepwell.core.store import reader
from stepwell.engine.runs.records import journal_record
from stepwell.errors import InputError, RunNotFound
from tests.engine.conftest import OpenEngine


class Order(Workflow):
    @step
    def validate(self) -> None: ...

    @step
    def charge(self) -> None: ...


def test_the_events_of_a_run_are_its_journal_and_then_its_end(engine: Engine) -> None:
    run = engine.start(Order())
    *entries, end = engine.events(run, until="ended")
    journal = reader.list_journal(engine.store, run.id)
    assert [event.data for event in entries] == [journal_record(row, run.graph.order) for row in journal]
    assert [(event.kind, event.id) for event in entries] == [("journal", str(row.seq)) for row in journal]
    assert end == ("end", None, {"run": run.id, "status": "COMPLETED"})


def test_events_go_on_after_the_last_that_was_received(engine: Engine) -> None:
    run = engine.run(Order())
    *entries, end = engine.events(run.id, until="ended")
    for place, event in enumerate(entries):
        assert [*engine.events(run, event.id, until="ended")] == [*entries[place + 1 :], end]


def test_a_run_that_is_not_the_one_it_was_resets_its_events(engine: Engine) -> None:
    run = engine.run(Order())
    first, *rest = engine.events(run, "1000", until="ended")
    assert first == ("reset", None, {"run": run.id, "seq": run.row.seq})
    assert rest == [*engine.events(run, until="ended")]
    events = engine.events(run)
    assert next(events).kind == "journal"
    run.delete()
    assert [event for event in events if event.kind != "journal"] == [("reset", None, {"run": run.id, "seq": None})]


def test_the_events_of_all_runs_begin_with_those_that_have_not_ended(open_sqlite: OpenEngine) -> None:
    looking, worker = open_sqlite(runner=None), open_sqlite()
    worker.run(Order(), run_id="before")
    waits = looking.start(Order(), run_id="waits")
    events = looking.events()
    seen = [next(event for event in events if event.data["id"] == "waits")]
    assert (seen[0].kind, seen[0].data["status"], seen[0].data["nodes_total"]) == ("run", "PENDING", 2)
    worker.adopt(waits.id)
    while seen[-1].data["status"] != "COMPLETED":
        seen.append(next(event for event in events if event.data["id"] == "waits"))
    steps = [event.data["seq"] for event in seen]
    assert steps == sorted(set(steps))
    assert next(islice(looking.events(last=seen[0].id), 1)).data["id"] in ("before", "waits")


@pytest.mark.parametrize("wrong", [{"run": "x", "until": "ends"}, {"until": "ended"}, {"last": "first"}, {"last": 7}])
def test_what_makes_no_sense_is_refused_at_once(engine: Engine, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"until=|last="):
        engine.events(**wrong)
    with pytest.raises(RunNotFound):
        engine.events("nowhere")


def test_coroutines_get_the_same_events(sqlite_url: str) -> None:
    async def look() -> None:
        async with Engine(sqlite_url) as engine:
            run = await engine.start(Order())
            events = [event async for event in engine.events(run, until="ended")]
            assert events == [*engine.sync.events(run.id, until="ended")]
            assert events[-1].kind == "end"
            async for event in engine.events(last="0"):
                assert event.data["id"] == run.id
                break

    asyncio.run(look())
