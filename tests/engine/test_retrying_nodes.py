"""A node that fails is tried again after a delay that its run's seed decides; waiting holds no worker."""

from __future__ import annotations

import itertools
import time

import pytest

from stepwell import Builder, Context, Engine, PermanentError, Retry, RetryLater, TransientError, Workflow, step
from stepwell.base.clock import MAX_SECONDS
from stepwell.base.ids import NodeId
from stepwell.core.graph import NodeSpec
from stepwell.core.kernel.settling import Failure, Verdict, after_failure, delay_seconds
from stepwell.engine import NodeView
from stepwell.engine.bodies.raised import Raised
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually

FOUR = Retry(4, base_delay=0.02, max_delay=0.05)


class Flaky(Workflow):
    fails: int

    @step(retry=FOUR)
    def charge(self, ctx: Context) -> int:
        if ctx.attempt <= self.fails:
            raise ConnectionError(f"attempt {ctx.attempt}")
        return ctx.attempt


def pauses(node: NodeView) -> list[float]:
    """Seconds between the end of an attempt and the start of the next, by the store's clock."""
    attempts = node.attempts
    return [after.started_at - (before.ended_at or 0) for before, after in itertools.pairwise(attempts)]


def test_a_node_is_tried_until_it_succeeds(engine: Engine) -> None:
    node = engine.run(Flaky(fails=2)).node("charge")
    assert [attempt.status for attempt in node.attempts] == ["FAILED", "FAILED", "COMPLETED"]
    assert [attempt.error and attempt.error.message for attempt in node.attempts] == ["attempt 1", "attempt 2", None]


def test_a_node_is_tried_as_often_as_asked_and_no_more(engine: Engine) -> None:
    run = engine.run(Flaky(fails=9), check=False)
    assert run.status == "FAILED"
    assert [attempt.number for attempt in run.node("charge").attempts] == [1, 2, 3, 4]


def test_the_schedule_is_that_of_the_seed_and_never_early(engine: Engine) -> None:
    run = engine.run(Flaky(fails=3), seed=77)
    planned = [delay_seconds(FOUR, attempt, seed=77, node="charge") for attempt in (1, 2, 3)]
    assert planned == [delay_seconds(FOUR, attempt, seed=77, node="charge") for attempt in (1, 2, 3)]
    for paused, delay in zip(pauses(run.node("charge")), planned, strict=True):
        assert delay <= paused < delay + 0.25


def test_delays_double_have_jitter_and_a_limit() -> None:
    retry = Retry(9, base_delay=1.0, max_delay=20.0)
    delays = [delay_seconds(retry, attempt, seed=5, node="n") for attempt in range(1, 8)]
    for attempt, delay in enumerate(delays, 1):
        assert min(2 ** (attempt - 1), 20) <= delay <= min(2 ** (attempt - 1) + 1, 20)
    assert len({delay_seconds(retry, 1, seed=seed, node="n") for seed in range(20)}) == 20
    assert delay_seconds(retry, 1, seed=5, node="n") != delay_seconds(retry, 1, seed=5, node="m")


def test_waiting_for_a_retry_holds_no_worker(open_engine: OpenEngine) -> None:
    """One thread only: others run while one waits."""
    order: list[str] = []

    class Patient(Workflow, name="patient"):
        @step(retry=Retry(2, base_delay=0.3, max_delay=0.3))
        def charge(self, ctx: Context) -> None:
            order.append(f"charge {ctx.attempt}")
            if ctx.attempt == 1:
                raise ConnectionError

    class Quick(Workflow):
        @step
        def work(self) -> None:
            order.append("work")

    engine = open_engine(max_concurrent_nodes=1)
    patient = engine.start(Patient())
    eventually(lambda: patient.node("charge").status == "WAITING")
    node = patient.node("charge")
    assert node.due_at is not None
    assert engine.parts.work.runner is not None
    assert not engine.parts.work.runner.scheduler.held
    engine.run(Quick())
    patient.wait(30)
    assert order == ["charge 1", "work", "charge 2"]


def test_only_the_errors_asked_for_are_retried(engine: Engine) -> None:
    class Picky(Workflow):
        which: str

        @step(retry=Retry(3, base_delay=0.001, retry_on=(ConnectionError, "decimal.InvalidOperation")))
        def charge(self) -> None:
            from decimal import InvalidOperation

            raise {"sub": ConnectionResetError, "named": InvalidOperation, "other": ValueError}[self.which]("no")

    tried = {
        which: len(engine.run(Picky(which=which), check=False).node("charge").attempts)
        for which in ("sub", "named", "other")
    }
    assert tried == {"sub": 3, "named": 3, "other": 1}


def test_a_body_may_ask_to_be_tried_later(engine: Engine) -> None:
    class Polite(Workflow):
        @step
        def charge(self, ctx: Context) -> int:
            if ctx.attempt == 1:
                raise RetryLater(0.2)
            return ctx.attempt

    run = engine.run(Polite())
    node = run.node("charge")
    assert run.output("charge") == 2
    assert 0.2 <= pauses(node)[0] < 0.45
    assert str(node.attempts[0].error) == "RetryLater: asked to be retried in 0.2 s"


@pytest.mark.parametrize(
    "retry", [None, Retry(2, base_delay=0.001), Retry(2, base_delay=0.001, retry_on=ConnectionError)], ids=str
)
def test_asking_for_later_is_no_failure_whatever_the_retry_says(engine: Engine, retry: Retry | None) -> None:
    class Polls(Workflow):
        @step(retry=retry)
        def poll(self, ctx: Context) -> int:
            if ctx.attempt <= 5:
                raise RetryLater(0)
            if ctx.attempt == 6 and retry is not None:
                raise ConnectionError("the first failure")
            return ctx.attempt

    run = engine.run(Polls(), wait=20)
    assert run.output("poll") == (6 if retry is None else 7)
    assert run.audit() == []


def test_after_asking_for_later_a_failure_is_judged_as_the_first(engine: Engine) -> None:
    class Unlucky(Workflow):
        @step(retry=Retry(2, base_delay=0.001, retry_on=ConnectionError))
        def poll(self, ctx: Context) -> None:
            if ctx.attempt <= 3:
                raise RetryLater(0)
            raise ConnectionError if ctx.attempt == 4 else ValueError

    node = engine.run(Unlucky(), check=False, wait=20).node("poll")
    assert [attempt.error.type for attempt in node.attempts if attempt.error] == [
        *["RetryLater"] * 3,
        "ConnectionError",
        "ValueError",
    ]


def test_asking_for_later_has_a_limit_that_a_retry_of_the_run_begins_anew(engine: Engine) -> None:
    class Polls(Workflow):
        @step(retry=5)
        def poll(self, ctx: Context) -> int:
            if ctx.attempt <= 6:
                raise RetryLater(0, "not there yet", limit=3)
            return ctx.attempt

    run = engine.run(Polls(), check=False, wait=20)
    node = run.node("poll")
    assert [attempt.status for attempt in node.attempts] == ["FAILED"] * 4
    assert str(node.error) == "RetryLater: not there yet\n  it has asked to be tried later 3 times, which is its limit"
    assert "poll failed for good: it was postponed 3 times, which is its limit" in str(run.why("poll"))
    assert run.retry().wait(20).output("poll") == 7
    assert run.audit() == []


def test_the_limit_of_asking_for_later_is_a_thousand() -> None:
    spec = NodeSpec(NodeId("poll"), "poll", retry=Retry(1, retry_on=ConnectionError))
    later = Raised.of(RetryLater(7)).later
    assert later is not None

    def after(postponed: int) -> Verdict:
        return after_failure(spec, Failure([], later=later), failures=0, postponed=postponed, seed=1)

    assert after(999) == ("FAILED", "WAITING", 7_000_000, True, None)
    assert after(1_000) == ("FAILED", "FAILED", None, False, None)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", None])
def test_the_limit_of_asking_for_later_is_a_whole_number(limit: object) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 1"):
        RetryLater(1, limit=limit)  # type: ignore[arg-type]


def test_a_body_that_may_run_only_once_may_ask_to_be_tried_later(engine: Engine) -> None:
    class Once(Workflow):
        @step(on_lost="interrupt")
        def charge(self, ctx: Context) -> int:
            if ctx.attempt <= 4:
                raise RetryLater(0)
            return ctx.attempt

    assert engine.run(Once(), wait=20).output("charge") == 5


def test_a_process_may_ask_to_be_tried_later(sqlite_engine: Engine) -> None:
    w = Builder("polls")
    w.node("poll", job=jobs.poll, isolation="process")
    assert sqlite_engine.run(w, wait=30).output("poll") == 5


@pytest.mark.parametrize(
    ("seconds", "error"),
    [("soon", "ValueError"), (None, "TypeError"), (-1, "ValueError"), (float("nan"), "ValueError")],
)
def test_asking_for_nonsense_fails_the_attempt_and_nothing_else(engine: Engine, seconds: object, error: str) -> None:
    class Odd(Workflow):
        @step
        def later(self) -> None:
            raise RetryLater(seconds)  # type: ignore[arg-type]

    node = engine.run(Odd(), check=False, wait=10).node("later")
    assert node.error is not None
    assert node.error.type == error


def test_a_text_with_seconds_as_servers_send_it_is_understood() -> None:
    assert RetryLater("120").seconds == 120.0  # type: ignore[arg-type]


def test_no_delay_is_longer_than_a_store_can_count(engine: Engine) -> None:
    """One absurd number must not keep the store from taking the batch it is in."""
    w = Builder("absurd", on_failure="finish")
    w.node("later", job=jobs.later, args={"seconds": 1e300}, depends_on=None)
    w.node("backs_off", job=jobs.fail, retry=Retry(2, base_delay=MAX_SECONDS, max_delay=MAX_SECONDS), depends_on=None)
    w.node("fine", job=jobs.nothing, depends_on=None)
    run = engine.start(w)
    eventually(lambda: run.node("fine").status == "COMPLETED")
    eventually(lambda: [run.node(name).status for name in ("later", "backs_off")] == ["WAITING"] * 2)
    due_at = run.node("later").due_at
    assert due_at is not None
    assert due_at - time.time() == pytest.approx(MAX_SECONDS, abs=60)
    run.cancel().wait(30)


def test_failures_before_a_retry_of_the_run_do_not_count_after_it(engine: Engine) -> None:
    class Stubborn(Workflow):
        @step(retry=Retry(2, base_delay=0.001))
        def charge(self, ctx: Context) -> int:
            if ctx.attempt < 4:
                raise ConnectionError
            return ctx.attempt

    run = engine.run(Stubborn(), check=False)
    assert len(run.node("charge").attempts) == 2
    assert run.retry().wait(30).output("charge") == 4


def test_a_node_that_may_run_only_once_is_not_retried_when_its_time_is_up() -> None:
    spec = NodeSpec("n", "n", retry=Retry(3, retry_on=TimeoutError), on_lost="interrupt")
    verdict = after_failure(spec, Failure(["builtins.TimeoutError"], timed_out=True), failures=0, postponed=0, seed=1)
    assert (verdict.status, verdict.node) == ("TIMED_OUT", "INTERRUPTED")


def test_many_retries_due_at_once_all_come_back(engine: Engine) -> None:
    class Bouncing(Workflow):
        number: int

        @step(retry=Retry(2, base_delay=0.05, max_delay=0.05))
        def once_more(self, ctx: Context) -> None:
            if ctx.attempt == 1:
                raise ConnectionError

    for run in engine.start_many(Bouncing(number=number) for number in range(120)):
        assert run.wait(20).status == "COMPLETED"


def test_a_node_that_completed_on_a_retry_has_no_error_any_more(engine: Engine) -> None:
    class Flaky(Workflow):
        @step(retry=Retry(2, base_delay=0.001))
        def charge(self, ctx: Context) -> None:
            if ctx.attempt == 1:
                raise ConnectionError("busy")

    node = engine.run(Flaky()).node("charge")
    assert (node.status, node.error) == ("COMPLETED", None)
    assert [str(attempt.error) for attempt in node.attempts] == ["ConnectionError: busy", "None"]


class Told(Workflow):
    kind: str

    @step(retry=FOUR)
    def ask(self, ctx: Context) -> int:
        if self.kind == "permanent":
            raise PermanentError("the card is blocked")
        if ctx.attempt == 1:
            raise TransientError("too many", retry_after=0.3)
        raise TransientError("too many")


def test_a_transient_error_counts_and_is_not_tried_before_it_was_told_to(engine: Engine) -> None:
    node = engine.run(Told(kind="transient"), check=False).node("ask")
    assert [attempt.status for attempt in node.attempts] == ["FAILED"] * 4
    first, second, _ = pauses(node)
    assert 0.3 <= first < 0.6
    assert second < 0.3


def test_a_permanent_error_is_not_tried_again(engine: Engine) -> None:
    node = engine.run(Told(kind="permanent"), check=False).node("ask")
    assert [attempt.status for attempt in node.attempts] == ["FAILED"]


def test_a_transient_error_that_forgot_what_it_was_told_is_one_like_any_other() -> None:
    error = TransientError("x")
    error.retry_after = "soon"  # type: ignore[assignment]
    assert Raised.of(error).retry_after is None
    assert Raised.of(TransientError("x", retry_after=2)).retry_after == 2
    with pytest.raises(ValueError, match="expected a number of seconds from 0"):
        TransientError("x", retry_after=-1)
