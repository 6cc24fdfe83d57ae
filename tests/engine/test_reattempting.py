"""`run.reattempt(node)` runs one node again that has ended, with what did not complete below it; with `cascade=True` all."""

from __future__ import annotations

import pytest

from stepwell import Engine, Retry, Run
from stepwell.errors import RunConflict, RunFailed
from tests.engine.conftest import OpenEngine
from tests.engine.steered import Play, attempts, becomes, statuses
from tests.engine.waiting import eventually

CHAIN = {"a": None, "b": "a", "c": "b"}
PAIR = {"top": None, "left": "top", "right": "top", "below": "left", "aside": "right"}


def refused(run: Run, node: str, words: str, *, cascade: bool = False) -> None:
    before = run.row.seq
    with pytest.raises(RunConflict, match=words):
        run.reattempt(node, cascade=cascade, dry_run=True)
    assert run.row.seq == before
    with pytest.raises(RunConflict, match=words):
        run.reattempt(node, cascade=cascade)
    assert run.audit() == []


def test_a_failed_node_and_what_waits_for_it_run(engine: Engine) -> None:
    play = Play(broken="b")
    run = engine.run(play.workflow(**CHAIN), check=False)
    play.broken.clear()
    run.reattempt("b").wait(30).check()
    assert play.entered == {"a": 1, "b": 2, "c": 1}
    assert attempts(run, "b") == ["FAILED", "COMPLETED"]
    assert len(set(play.keys["b"])) == 1, "the key changes only when a completed attempt is superseded"
    assert run.audit() == []


def test_a_node_that_timed_out(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.run(play.workflow(options={"timeout": 0.1}, **CHAIN), check=False)
    assert attempts(run, "a") == ["TIMED_OUT"]
    play.release("a")
    run.reattempt("a").wait(30).check()
    assert attempts(run, "a") == ["TIMED_OUT", "COMPLETED"]
    assert len(set(play.keys["a"])) == 1


def test_a_cancelled_node(engine: Engine) -> None:
    play = Play(held="a")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("a")
    run.cancel().wait(30)
    play.release("a")
    run.reattempt("a").wait(30).check()
    assert attempts(run, "a") == ["CANCELLED", "COMPLETED"]
    assert len(set(play.keys["a"])) == 1


def test_an_interrupted_node(open_sqlite: OpenEngine) -> None:
    play = Play(held="a", ignoring_stops="a")
    first = open_sqlite()
    run = first.start(play.workflow(options={"on_lost": "interrupt"}, **CHAIN))
    play.begins("a")
    first.close(0)
    looks = open_sqlite(runner=None).get(run.id)
    becomes(looks, a="INTERRUPTED")
    play.release("a")
    second = open_sqlite(workflows=[type(play.workflow(options={"on_lost": "interrupt"}, **CHAIN))])
    found = second.get(run.id)
    eventually(lambda: found.status == "FAILED")
    found.reattempt("a").wait(30).check()
    assert attempts(found, "a")[-1] == "COMPLETED"
    assert found.audit() == []


def test_a_completed_leaf_is_superseded_and_gets_a_key_of_its_own(engine: Engine) -> None:
    play = Play()
    run = engine.run(play.workflow(**CHAIN))
    for number in range(2, 4):
        run.reattempt("c").wait(30).check()
        assert attempts(run, "c") == ["SUPERSEDED"] * (number - 1) + ["COMPLETED"]
        assert len(set(play.keys["c"])) == number
    assert play.entered == {"a": 1, "b": 1, "c": 3}
    assert run.output("c") == "c"
    assert run.audit() == []


def test_a_superseded_node_that_then_fails_keeps_its_new_key_when_it_is_retried(engine: Engine) -> None:
    play = Play()
    run = engine.run(play.workflow(**CHAIN))
    play.broken.add("c")
    assert run.reattempt("c").wait(30).status == "FAILED"
    with pytest.raises(KeyError, match="has not completed"):
        run.output("c")
    play.broken.clear()
    run.retry().wait(30).check()
    assert attempts(run, "c") == ["SUPERSEDED", "FAILED", "COMPLETED"]
    first, *others = play.keys["c"]
    assert len(set(others)) == 1
    assert first not in others


def test_a_completed_node_whose_children_have_not_started(engine: Engine) -> None:
    """It is run again while the run goes on, and its child waits for it."""
    play = Play(held="y")
    run = engine.start(play.workflow(x=None, y=None, join=("x", "y")))
    becomes(run, x="COMPLETED")
    play.begins("y")
    play.held.add("x")
    run.reattempt("x")
    eventually(lambda: play.entered["x"] == 2)
    play.release("y")
    becomes(run, y="COMPLETED")
    assert run.node("join").status == "PENDING"
    play.release("x")
    run.wait(30).check()
    assert play.entered == {"x": 2, "y": 1, "join": 1}
    assert run.audit() == []


def test_what_failed_below_a_node_goes_again_with_it(engine: Engine) -> None:
    """Step 1 gave bad data, step 2 failed on it: step 1 runs again."""
    play = Play(broken="b")
    run = engine.run(play.workflow(**CHAIN), check=False)
    play.broken.clear()
    run.reattempt("a").wait(30).check()
    assert {node: attempts(run, node) for node in CHAIN} == {
        "a": ["SUPERSEDED", "COMPLETED"],
        "b": ["FAILED", "COMPLETED"],
        "c": ["COMPLETED"],
    }
    assert len(set(play.keys["a"])) == 2
    assert len(set(play.keys["b"])) == 1, "no completed attempt of it was superseded"
    assert run.audit() == []


def test_what_was_cancelled_or_interrupted_below_a_node_goes_again_with_it(engine: Engine) -> None:
    play = Play(held="b c")
    run = engine.start(play.workflow(options={"on_lost": "interrupt"}, a=None, b="a", c="a", d=("b", "c")))
    play.begins("b", "c")
    run.cancel().wait(30)
    assert statuses(run) == {"a": "COMPLETED", "b": "INTERRUPTED", "c": "INTERRUPTED", "d": "CANCELLED"}
    play.release("b", "c")
    run.reattempt("a").wait(30).check()
    assert play.entered == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert run.audit() == []


def test_what_waits_to_be_retried_below_a_node_waits_for_it_instead(engine: Engine) -> None:
    play = Play(broken="b")
    run = engine.start(play.workflow(options={"retry": Retry(3, base_delay=60)}, **CHAIN))
    becomes(run, b="WAITING")
    play.broken.clear()
    run.reattempt("a").wait(30).check()
    assert attempts(run, "b") == ["FAILED", "COMPLETED"]
    assert run.audit() == []


def test_it_is_refused_when_something_below_has_completed(engine: Engine) -> None:
    play = Play(broken="c")
    run = engine.run(play.workflow(**CHAIN), check=False)
    words = (
        r"node 'a' cannot be attempted again alone: .* \('b'\); cascade=True \(--cascade\) .* fork does it in a new run"
    )
    refused(run, "a", words)
    assert run.status == "FAILED"


@pytest.mark.parametrize("cascade", [False, True])
def test_it_is_refused_while_something_below_is_running(engine: Engine, cascade: bool) -> None:
    play = Play(held="b")
    run = engine.start(play.workflow(**CHAIN))
    play.begins("b")
    words = r"node 'a' cannot be attempted again while what is below it is running \('b'\); wait for its end"
    refused(run, "a", words, cascade=cascade)
    play.release("b")
    run.wait(30).check()


def test_a_cascade_runs_again_what_completed_below_too(engine: Engine) -> None:
    play = Play()
    run = engine.run(play.workflow(**PAIR))
    touched = run.reattempt("left", cascade=True, dry_run=True)
    assert [(each.id, each.status, each.becomes) for each in touched] == [
        ("left", "COMPLETED", "PENDING"),
        ("below", "COMPLETED", "PENDING"),
    ]
    run.reattempt("left", cascade=True).wait(30).check()
    assert play.entered == {"top": 1, "left": 2, "right": 1, "below": 2, "aside": 1}
    assert attempts(run, "below") == ["SUPERSEDED", "COMPLETED"]
    assert len(set(play.keys["left"])) == len(set(play.keys["below"])) == 2, "new work has keys of its own"
    run.reattempt("top", cascade=True).wait(30).check()
    assert play.entered == {"top": 2, "left": 3, "right": 2, "below": 3, "aside": 2}
    assert len(set(play.keys["below"])) == 3
    assert run.audit() == []


def test_a_cascade_over_a_node_that_then_fails(engine: Engine) -> None:
    play = Play()
    run = engine.run(play.workflow(**CHAIN))
    play.broken.add("b")
    assert run.reattempt("a", cascade=True).wait(30).status == "FAILED"
    assert statuses(run) == {"a": "COMPLETED", "b": "FAILED", "c": "UPSTREAM_FAILED"}
    assert run.outputs == {"a": "a"}, "what was superseded is not taken for today's"
    play.broken.clear()
    run.retry().wait(30).check()
    assert play.entered == {"a": 2, "b": 3, "c": 2}
    assert run.audit() == []


def test_a_run_can_be_forked_from_any_point_of_a_cascade(engine: Engine) -> None:
    """At every `seq`, also in the middle of it, what is completed stands on completed parents."""
    run = engine.run(Play().workflow(**CHAIN))
    run.reattempt("a", cascade=True).wait(30).check()
    forks = [run.fork(seq) for seq in range(1, run.row.seq + 1)]
    for fork in forks:
        fork.wait(30).check()
        assert fork.audit() == []
        assert fork.outputs == run.outputs


def test_a_cascade_beside_another_failure(engine: Engine) -> None:
    play = Play(broken="right")
    run = engine.run(play.workflow("finish", **PAIR), check=False)
    assert run.reattempt("left", cascade=True).wait(30).status == "FAILED"
    assert play.entered == {"top": 1, "left": 2, "right": 1, "below": 2}
    play.broken.clear()
    run.reattempt("top", cascade=True).wait(30).check()
    assert play.entered == {"top": 2, "left": 3, "right": 2, "below": 3, "aside": 1}
    assert run.audit() == []


def test_it_is_refused_for_what_has_not_ended_or_never_began(engine: Engine) -> None:
    play = Play(held="left", broken="right")
    run = engine.start(play.workflow("finish", **PAIR))
    becomes(run, right="FAILED")
    refused(run, "left", "node 'left' is RUNNING: only a node that has ended can be attempted again")
    refused(run, "below", "node 'below' is PENDING: only a node that has ended can be attempted again")
    play.release("left")
    run.wait(30)
    refused(run, "aside", r"node 'aside' has never run \(upstream: right\); attempt that one again, or retry the run")


def test_it_is_refused_for_a_node_that_was_skipped(open_sqlite: OpenEngine) -> None:
    play = Play(broken="b")
    run_id = open_sqlite().run(play.workflow(**CHAIN), check=False).id
    play.broken.clear()
    now = type(play.workflow(zero=None, a="zero", b="a", c="b"))
    run = open_sqlite(workflows=[now]).get(run_id).retry().wait(30).check()
    assert statuses(run)["zero"] == "SKIPPED"
    refused(run, "zero", r"node 'zero' was skipped \(healed_late\) and has nothing to attempt again")


def test_what_came_too_late_is_in_time_when_all_below_it_runs_again(open_sqlite: OpenEngine) -> None:
    """Skipped it would be no reason for `b` to wait, which would run beside `a`."""
    play = Play(broken="c")
    run_id = open_sqlite().run(play.workflow(**CHAIN), check=False).id
    play.broken.clear()
    now = type(play.workflow(a=None, late="a", b="late", c="b"))
    run = open_sqlite(workflows=[now]).get(run_id).retry().wait(30).check()
    assert statuses(run) == {"a": "COMPLETED", "late": "SKIPPED", "b": "COMPLETED", "c": "COMPLETED"}
    play.held.add("a")
    run.reattempt("a", cascade=True)
    eventually(lambda: play.entered["a"] == 2)
    assert {node: status for node, status in statuses(run).items() if node != "a"} == dict.fromkeys(
        ("late", "b", "c"), "PENDING"
    )
    play.release("a")
    run.wait(30).check()
    assert play.entered == {"a": 2, "late": 1, "b": 2, "c": 3}
    assert run.audit() == []


def test_a_ready_node_below_is_told_and_waits(open_sqlite: OpenEngine) -> None:
    play = Play()
    run = open_sqlite(max_concurrent_nodes=1).run(play.workflow(**CHAIN))
    steers = open_sqlite(runner=None).get(run.id)
    steers.reattempt("b", cascade=True)
    assert statuses(run) == {"a": "COMPLETED", "b": "READY", "c": "PENDING"}
    touched = steers.reattempt("a", dry_run=True)
    assert [(each.id, each.status) for each in touched] == [("a", "COMPLETED"), ("b", "READY")]
    steers.reattempt("a")
    assert statuses(run) == {"a": "READY", "b": "PENDING", "c": "PENDING"}
    assert run.audit() == []


def test_of_two_that_failed_only_one_is_run_again(engine: Engine) -> None:
    play = Play(broken="left right")
    run = engine.run(play.workflow("finish", **PAIR), check=False)
    play.broken.clear()
    assert run.reattempt("left").wait(30).status == "FAILED"
    assert statuses(run) == {
        "top": "COMPLETED",
        "left": "COMPLETED",
        "right": "FAILED",
        "below": "COMPLETED",
        "aside": "UPSTREAM_FAILED",
    }
    assert play.entered["right"] == 1
    with pytest.raises(RunFailed, match="right is broken"):
        run.check()
    run.reattempt("right").wait(30).check()
    assert play.entered == {"top": 1, "left": 2, "right": 2, "below": 1, "aside": 1}
    assert run.audit() == []


def test_a_late_success_after_a_failure_is_kept_and_not_repeated(engine: Engine) -> None:
    play = Play(held="left", broken="right", ignoring_stops="left")
    run = engine.start(play.workflow(**PAIR))
    becomes(run, right="FAILED")
    play.release("left")
    run.wait(30)
    assert run.status == "FAILED"
    becomes(run, left="COMPLETED")
    assert run.node("below").status != "COMPLETED", "it moves nothing forward"
    play.broken.clear()
    run.retry().wait(30).check()
    assert play.entered == {"top": 1, "left": 1, "right": 2, "below": 1, "aside": 1}
    assert run.audit() == []


def test_a_node_of_a_paused_run_is_attempted_again_and_the_run_goes_on(engine: Engine) -> None:
    play = Play(broken="left")
    run = engine.start(play.workflow("pause", **PAIR))
    eventually(lambda: run.status == "PAUSED")
    play.broken.clear()
    run.reattempt("left").wait(30).check()
    assert play.entered["left"] == 2


def test_a_node_that_is_not_there(engine: Engine) -> None:
    run = engine.run(Play().workflow(**CHAIN))
    with pytest.raises(KeyError, match="has no node 'd': there are: a, b, c"):
        run.reattempt("d")


def test_an_engine_without_a_runner_leaves_the_work_to_others(open_sqlite: OpenEngine) -> None:
    play = Play()
    workflow = play.workflow(**CHAIN)
    run = open_sqlite().run(workflow)
    asked = open_sqlite(runner=None).get(run.id).reattempt("c")
    assert asked.status == "RUNNING"
    open_sqlite(workflows=[type(workflow)])
    asked.wait(30).check()
    assert play.entered["c"] == 2


def test_nothing_that_was_refused_is_worked_on(open_sqlite: OpenEngine) -> None:
    play = Play(held="a")
    workflow = play.workflow(**CHAIN)
    run = open_sqlite().start(workflow)
    play.begins("a")
    other = open_sqlite()
    other.parts.code.remember(other.parts.code.definition_of(workflow))
    with pytest.raises(RunConflict, match="only a FAILED, CANCELLED or PAUSED run can be retried"):
        other.get(run.id).retry()
    assert other.parts.work.runner is not None
    assert run.id not in other.parts.work.runner.scheduler.facts
    play.release("a")
    run.wait(30).check()


def test_beside_another_failure_a_new_one_still_fails_the_run_at_once(engine: Engine) -> None:
    """What had failed is tolerated, and nothing more."""
    play = Play(broken="a b", held="a b slow", ignoring_stops="b slow")
    run = engine.start(play.workflow("fail_fast", a=None, b=None, slow=None, after="slow"))
    play.begins("a", "b", "slow")
    play.release("a", "b")
    eventually(lambda: statuses(run)["a"] == "FAILED" and statuses(run)["b"] == "FAILED" and run.status == "FAILED")
    run.reattempt("a")
    eventually(lambda: attempts(run, "a") == ["FAILED", "FAILED"] and run.status == "FAILED")
    play.broken.discard("a")
    play.release("slow")
    assert run.reattempt("a").wait(30).status == "FAILED"
    assert statuses(run) == {"a": "COMPLETED", "b": "FAILED", "slow": "COMPLETED", "after": "COMPLETED"}
    assert run.audit() == []
