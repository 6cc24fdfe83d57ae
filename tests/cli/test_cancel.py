"""`stepwell cancel`: seen by whoever works on the run, and final when nobody does."""

from __future__ import annotations

import os
import signal

from tests.cli.conftest import Shop


def test_cancelling_ends_the_process_that_works_on_the_run_with_exit_code_5(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    assert shop("cancel", "slow").out == "run slow is CANCELLED\n"
    ended = shop.end(running, code=5)
    assert "error: run slow was cancelled\n" in ended.err
    assert "stepwell retry slow" in ended.err
    assert shop.ledger() == ["first", "second"]


def test_a_run_that_nobody_works_on_is_cancelled_all_the_same(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert shop("cancel", "slow", "--grace", "0.1").out == "run slow is CANCELLED\n"


def test_a_cancelled_run_can_be_retried(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    shop("cancel", "slow")
    shop.end(running, code=5)
    shop.touch("go")
    assert shop("retry", "slow").json == "12"


def test_cancelling_twice_is_no_error_and_an_ended_run_is_a_conflict(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "done")
    assert "run done is COMPLETED; it has ended and cannot be cancelled" in shop("cancel", "done", code=6).err
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    shop("cancel", "slow")
    shop.end(running, code=5)
    assert shop("cancel", "slow").out == "run slow is CANCELLED\n"
