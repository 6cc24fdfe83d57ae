"""`stepwell bulk VERB`: it shows what it would do, asks, and does it to the runs that it has shown."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shop
from tests.cli.test_terminal import on_a_terminal


@pytest.fixture
def failed(shop: Shop) -> Shop:
    """Two orders that failed, and one that did not."""
    for run, number in (("bad-1", -1), ("bad-2", -2), ("good", 1)):
        shop("run", "shop:Order", "-i", f"order_id={number}", "--run-id", run, code=0 if number > 0 else 1)
    return shop


def statuses(shop: Shop) -> dict[str, str]:
    return {run["id"]: run["status"] for run in shop("ls", "--json").json}


RETRY = ("bulk", "retry", "--workflow", "Order", "--status", "failed")
ALL_FAILED = {"bad-1": "FAILED", "bad-2": "FAILED", "good": "COMPLETED"}


def test_a_dry_run_shows_what_would_be_done(failed: Shop) -> None:
    shown = failed(*RETRY, "--dry-run")
    assert "retry would change 4 nodes of 2 runs" in shown.out
    assert "bad-1" in shown.out
    assert "good" not in shown.out
    record = failed(*RETRY, "--dry-run", "--json").json
    assert (record["dry_run"], record["done"], len(record["preview"])) == (True, 2, 2)
    assert statuses(failed) == ALL_FAILED


def test_nothing_is_done_without_a_yes(failed: Shop) -> None:
    ended = failed(*RETRY, code=2)
    assert "nothing was done: --yes has retry done to these runs, --dry-run only shows them" in ended.err
    assert statuses(failed) == ALL_FAILED


def test_with_yes_it_is_done_and_kept_in_the_audit_log(failed: Shop) -> None:
    ended = failed(*RETRY, "--yes", "--reason", "typing mistakes")
    assert "retry was requested of 2 runs\n" in ended.out
    assert statuses(failed) == {"bad-1": "RUNNING", "bad-2": "RUNNING", "good": "COMPLETED"}
    (entry,) = failed("audit-log", "bad-1", "--json").json[:1]
    assert (entry["action"], entry["via"], entry["reason"]) == ("retry", "cli", "typing mistakes")
    assert failed("bulk", "cancel", "--status", "running", "--yes", "--json").json["done"] == 2


def test_on_a_terminal_it_asks(failed: Shop) -> None:
    code, seen = on_a_terminal(failed, *RETRY, typed=b"n\n")
    assert code == 0
    assert "retry 2 runs? [y/N]" in seen
    assert "nothing was done" in seen
    assert statuses(failed) == ALL_FAILED
    code, seen = on_a_terminal(failed, *RETRY, typed=b"y\n")
    assert (code, "retry was requested of 2 runs" in seen) == (0, True)
    assert statuses(failed)["bad-1"] == "RUNNING"


def test_runs_that_refuse_it_are_named(failed: Shop) -> None:
    ended = failed("bulk", "reattempt", "--node", "validate", "--yes")
    assert "1 run would refuse it" in ended.out
    assert "cascade" in ended.out
    assert statuses(failed) == {"bad-1": "RUNNING", "bad-2": "RUNNING", "good": "COMPLETED"}


def test_what_matches_nothing_does_nothing(failed: Shop) -> None:
    assert "pause would change 0 nodes of 0 runs" in failed("bulk", "pause", "--yes").out
    assert "expected one of retry" in failed("bulk", "delete", "--yes", code=2).err
    assert "retry takes no key" in failed("bulk", "retry", "--key", "k", "--yes", code=2).err


def test_forks_are_made_once_for_each_key(failed: Shop) -> None:
    fork = ("bulk", "fork", "--id", "good", "--at", "ship", "--key", "again", "--yes")
    assert "good: forked as good-again" in failed(*fork).out
    assert [run["id"] for run in failed("ls", "--fork-of", "good", "--json").json] == ["good-again"]
