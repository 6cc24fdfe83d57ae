"""`dry_run=True` lists exactly the nodes that the request changes, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepwell import Builder, Engine, Run
from stepwell.core.store import reader
from stepwell.errors import RunConflict
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.steered import Play, becomes, statuses
from tests.engine.waiting import eventually
from tests.sizes import in_seconds, sized

PAIR = {"top": None, "left": "top", "right": "top", "below": "left", "aside": "right"}


def told(run: Run, verb: str, *words: str) -> dict[str, tuple[str, str]]:
    """What a dry run says; it leaves the run and its journal as they are."""
    before = run.row, run.nodes()
    found = getattr(run, verb)(*words, dry_run=True)
    assert (run.row, run.nodes()) == before
    assert [each.id for each in found] == [each.name for each in found]
    return {each.id: (str(each.status), str(each.becomes)) for each in found}


def rewritten(run: Run, since: int) -> set[str]:
    """The nodes that were changed by a request since then, as the journal has it."""
    entries = [entry for entry in reader.list_journal(run._parts.store, run.id) if entry.seq > since]
    order = run.graph.order
    return {order[entry.index] for entry in entries if entry.kind == "rewrote" and entry.index is not None}


def test_a_retry(open_sqlite: OpenEngine) -> None:
    play = Play(broken="left")
    run = open_sqlite().run(play.workflow("finish", **PAIR), check=False)
    expected = told(run, "retry")
    assert expected == {"left": ("FAILED", "PENDING"), "below": ("UPSTREAM_FAILED", "PENDING")}
    since = run.row.seq
    open_sqlite(runner=None).get(run.id).retry()
    assert rewritten(run, since) == set(expected)


@pytest.mark.parametrize("at", [None, "left", "top", "aside", 1, 6])
def test_a_fork(open_sqlite: OpenEngine, at: str | int | None) -> None:
    play = Play(broken="left")
    engine = open_sqlite()
    run = engine.run(play.workflow("finish", **PAIR), check=False)
    before = run.row, run.nodes(), run.forks()
    expected = [each.id for each in run.fork(at, dry_run=True)]
    assert (run.row, run.nodes(), run.forks()) == before
    fork = open_sqlite(runner=None).get(run.id).fork(at)
    assert expected == [node.id for node in fork.nodes() if node.status in ("PENDING", "READY")]


def test_a_reattempt(open_sqlite: OpenEngine) -> None:
    play = Play(broken="left right")
    run = open_sqlite().run(play.workflow("finish", **PAIR), check=False)
    expected = told(run, "reattempt", "left")
    assert expected == {"left": ("FAILED", "PENDING"), "below": ("UPSTREAM_FAILED", "PENDING")}
    since = run.row.seq
    open_sqlite(runner=None).get(run.id).reattempt("left")
    assert rewritten(run, since) == set(expected)


def test_a_reattempt_of_what_completed(open_sqlite: OpenEngine) -> None:
    run = open_sqlite().run(Play().workflow(**PAIR))
    assert told(run, "reattempt", "aside") == {"aside": ("COMPLETED", "PENDING")}
    since = run.row.seq
    open_sqlite(runner=None).get(run.id).reattempt("aside")
    assert rewritten(run, since) == {"aside"}


def test_a_cancel(engine: Engine) -> None:
    play = Play(held="left", broken="")
    run = engine.start(play.workflow(**PAIR))
    becomes(run, left="RUNNING", aside="COMPLETED")
    expected = told(run, "cancel")
    assert expected == {"left": ("RUNNING", "CANCELLED"), "below": ("PENDING", "CANCELLED")}
    before = statuses(run)
    run.cancel().wait(30)
    after = statuses(run)
    assert {node: (before[node], after[node]) for node in after if after[node] != before[node]} == expected


def test_a_pause_and_a_resume_change_no_node(engine: Engine) -> None:
    play = Play(held="top")
    run = engine.start(play.workflow(**PAIR))
    play.begins("top")
    assert told(run, "pause") == {}
    since = run.row.seq
    run.pause()
    assert told(run, "resume") == {}
    play.release("top")
    run.resume().wait(30).check()
    assert rewritten(run, since) == set()


def test_a_retry_and_a_cancel_of_a_run_that_paused(engine: Engine) -> None:
    play = Play(held="left", broken="left")
    run = engine.start(play.workflow("pause", **PAIR))
    becomes(run, right="COMPLETED", aside="COMPLETED")
    play.release("left")
    eventually(lambda: run.status == "PAUSED")
    assert told(run, "retry") == {"left": ("FAILED", "PENDING")}
    assert told(run, "resume") == {}
    assert set(told(run, "cancel").values()) == {("PENDING", "CANCELLED")}, "what runs has ended"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda run, **dry: run.retry(**dry), "only a FAILED, CANCELLED or PAUSED run can be retried"),
        (lambda run, **dry: run.cancel(**dry), "it has ended and cannot be cancelled"),
        (lambda run, **dry: run.pause(**dry), "only a run that has not ended can be paused"),
        (lambda run, **dry: run.resume(**dry), "only a paused run can be resumed"),
    ],
)
def test_what_would_be_refused_is_refused_in_the_same_words(
    engine: Engine, ask: Callable[..., Any], words: str
) -> None:
    run = engine.run(Play().workflow(a=None))
    with pytest.raises(RunConflict, match=f"run {run.id} is COMPLETED; {words}"):
        ask(run)
    with pytest.raises(RunConflict, match=f"run {run.id} is COMPLETED; {words}"):
        ask(run, dry_run=True)


def test_what_changes_nothing_is_no_conflict_in_a_dry_run_either(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(a=None))
    play.begins("a")
    assert told(run, "resume") == {}
    run.resume()
    run.pause()
    assert told(run, "pause") == {}
    run.pause()
    run.cancel().wait(30)
    assert told(run, "cancel") == {}
    run.cancel()


@pytest.mark.full_size
def test_a_run_of_100_000_nodes_is_previewed_and_retried_in_seconds(open_sqlite: OpenEngine) -> None:
    size = sized(100_000)
    w = Builder("wide")
    w.node("first", job=jobs.fail)
    w.fan_out(range(size - 1), job=jobs.same)
    engine = open_sqlite(runner=None)
    run = engine.start(w)
    run.cancel()
    assert run.status == "CANCELLED"
    with in_seconds(40):
        assert len(run.retry(dry_run=True)) == size
        run.retry()
    assert run.status == "RUNNING"
    assert reader.count_nodes(engine.store, run.id) == {"READY": 1, "PENDING": size - 1}
    assert run.audit() == []
