"""A paused run starts nothing new; what runs may end and is recorded. Somebody pauses it, or a failure does."""

from __future__ import annotations

import threading
import time

import pytest

from stepwell import Engine, Retry, Run
from stepwell.errors import RunConflict, RunFailed, RunPaused, RunStillActive
from tests.engine.conftest import OpenEngine
from tests.engine.steered import Play, attempts, becomes, statuses
from tests.engine.waiting import eventually

CHAIN = {"a": None, "b": "a", "c": "b"}
FORK = {"top": None, "left": "top", "right": "top", "below": "left", "aside": "right"}


def is_paused(run: Run, reason: str) -> None:
    row = run.row
    assert (row.status, row.reason) == ("PAUSED", reason)
    assert run.audit() == []


def test_what_runs_may_end_and_nothing_new_starts_until_it_is_resumed(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("a")
    is_paused(run.pause(), "paused")
    play.release("a")
    becomes(run, a="COMPLETED")
    assert run.output("a") == "a"
    # Something that starts later and ends proves that the engine had the time to start the rest of this one.
    engine.run(Play().workflow(**CHAIN), wait=30)
    assert not play.entered["b"]
    is_paused(run, "paused")
    assert run.resume().wait(30).status == "COMPLETED"
    assert play.entered == {"a": 1, "b": 1, "c": 1}
    assert run.audit() == []


def test_a_run_that_nobody_works_on_yet_is_paused_too(open_sqlite: OpenEngine) -> None:
    play = Play()
    workflow = play.workflow(**CHAIN)
    run = open_sqlite(runner=None).start(workflow)
    run.pause()
    server = open_sqlite(workflows=[type(workflow)])
    server.run(Play().workflow(**CHAIN), wait=30)
    assert not play.entered
    is_paused(run, "paused")
    server.get(run.id).resume().wait(30).check()


def test_pausing_twice_is_pausing_once(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("a")
    run.pause()
    seq = run.row.seq
    assert run.pause().row.seq == seq
    play.release("a")
    run.resume().wait(30).check()


def test_resuming_twice_is_resuming_once(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("a")
    run.pause().resume()
    assert run.resume().status == "RUNNING"
    play.release("a")
    run.wait(30).check()
    assert play.entered == {"a": 1, "b": 1, "c": 1}
    with pytest.raises(RunConflict, match="is COMPLETED; only a paused run can be resumed"):
        run.resume()


def test_what_has_ended_cannot_be_paused(engine: Engine) -> None:
    run = engine.run(Play().workflow(a=None))
    with pytest.raises(RunConflict, match="is COMPLETED; only a run that has not ended can be paused"):
        run.pause()
    failed = engine.run(Play(broken="a").workflow(a=None), check=False)
    with pytest.raises(RunConflict, match="is FAILED"):
        failed.pause()


def test_a_run_whose_last_node_ends_while_it_is_paused_completes_when_it_is_resumed(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(a=None))
    play.begins("a")
    run.pause()
    play.release("a")
    becomes(run, a="COMPLETED")
    is_paused(run, "paused")
    assert run.resume().wait(30).status == "COMPLETED"


def test_who_waits_for_a_run_waits_through_a_pause_of_somebody(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("a")
    run.pause()
    with pytest.raises(RunStillActive, match="still PAUSED"):
        run.wait(0.05)
    ended: list[str] = []
    waiting = threading.Thread(target=lambda: ended.append(run.wait(60).status))
    waiting.start()
    play.release("a")
    becomes(run, a="COMPLETED")
    assert waiting.is_alive()
    run.resume()
    waiting.join(60)
    assert ended == ["COMPLETED"]


def test_a_failed_node_is_retried_when_its_time_has_come_but_not_while_the_run_is_paused(engine: Engine) -> None:
    play = Play(broken="a")
    run = engine.start(play.workflow(options={"retry": Retry(2, base_delay=0.5)}, a=None))
    becomes(run, a="WAITING")
    run.pause()
    due_at = run.node("a").due_at
    play.broken.clear()
    eventually(lambda: due_at is not None and time.time() > due_at)
    engine.run(Play().workflow(**CHAIN), wait=30)
    assert play.entered["a"] == 1, "the retry is due, and nothing may come of it"
    run.resume().wait(30).check()


def test_a_failure_pauses_a_run_that_wants_it(engine: Engine) -> None:
    play = Play(held="right", broken="left")
    run = engine.start(play.workflow("pause", **FORK))
    with pytest.raises(
        RunPaused, match=r"paused: node '\w+' failed, attempt 1: .*\n.*run\.retry\(\).*run\.resume\(\)"
    ) as paused:
        run.wait(30).check()
    assert paused.value.reason == "node_failed"
    assert (paused.value.node, paused.value.attempt) == ("left", 1)
    assert (paused.value.error_type, paused.value.error_message) == ("ValueError", "left is broken")
    assert run.progress == (5, 2, 1, 1)
    assert run.node("right").status == "RUNNING", "what runs is not asked to stop"
    play.release("right")
    becomes(run, right="COMPLETED")
    is_paused(run, "node_failed")
    assert statuses(run) == {
        "top": "COMPLETED",
        "left": "FAILED",
        "right": "COMPLETED",
        "below": "PENDING",
        "aside": "PENDING",
    }


def test_a_retry_of_a_run_that_paused_runs_the_node_again(engine: Engine) -> None:
    play = Play(broken="left")
    run = engine.start(play.workflow("pause", **FORK))
    assert run.wait(30).status == "PAUSED"
    assert run.retry().wait(30).status == "PAUSED", "it fails again, and so the run pauses again"
    play.broken.clear()
    run.retry().wait(30).check()
    assert play.entered == {"top": 1, "left": 3, "right": 1, "below": 1, "aside": 1}
    assert attempts(run, "left") == ["FAILED", "FAILED", "COMPLETED"]
    assert run.audit() == []


def test_a_run_that_was_resumed_pauses_again_at_the_next_failure(engine: Engine) -> None:
    play = Play(broken="left aside", held="right")
    run = engine.start(play.workflow("pause", **FORK))
    eventually(lambda: run.status == "PAUSED")
    play.release("right")
    assert run.resume().wait(30).status == "PAUSED"
    assert (statuses(run)["left"], statuses(run)["aside"]) == ("FAILED", "FAILED")
    play.broken.clear()
    run.retry().wait(30).check()
    assert run.row.on_failure == "pause"
    assert run.audit() == []


def test_resuming_a_run_that_paused_does_the_rest_and_then_fails(engine: Engine) -> None:
    play = Play(broken="left")
    run = engine.start(play.workflow("pause", **FORK))
    assert run.wait(30).status == "PAUSED"
    assert run.resume().wait(30).status == "FAILED"
    assert statuses(run) == {
        "top": "COMPLETED",
        "left": "FAILED",
        "right": "COMPLETED",
        "below": "UPSTREAM_FAILED",
        "aside": "COMPLETED",
    }
    assert play.entered["left"] == 1
    assert run.audit() == []
    with pytest.raises(RunFailed, match="left is broken"):
        run.check()


def test_a_paused_run_can_be_cancelled(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("a")
    assert run.pause().cancel().wait(30).status == "CANCELLED"
    assert statuses(run) == {"a": "CANCELLED", "b": "CANCELLED", "c": "CANCELLED"}
    assert run.audit() == []


def test_a_run_that_paused_for_a_failure_can_be_cancelled_and_retried(engine: Engine) -> None:
    play = Play(broken="left")
    run = engine.start(play.workflow("pause", **FORK))
    assert run.wait(30).status == "PAUSED"
    assert run.cancel().wait(30).status == "CANCELLED"
    assert run.node("left").status == "FAILED"
    play.broken.clear()
    run.retry().wait(30).check()


def test_a_pause_is_heeded_by_an_engine_elsewhere(open_sqlite: OpenEngine) -> None:
    play = Play(held="a")
    run = open_sqlite().start(play.workflow(**CHAIN))
    play.begins("a")
    asks = open_sqlite(runner=None)
    asks.get(run.id).pause()
    play.release("a")
    becomes(run, a="COMPLETED")
    assert not play.entered["b"]
    asks.get(run.id).resume()
    run.wait(30).check()
