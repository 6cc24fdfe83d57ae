"""`stepwell gc`: deletes what ended long ago, and nothing else."""

from __future__ import annotations

import os
import signal

from tests.cli.conftest import Shop


def ids(shop: Shop) -> list[str]:
    return [run["id"] for run in shop("ls", "--json").json]


def test_gc_deletes_ended_runs_that_are_old_enough(shop: Shop) -> None:
    for name in ("a", "b"):
        shop("run", "shop:Again", "--run-id", name)
    shop("run", "shop:Mended", "--run-id", "failed", code=1)
    assert "deleted 0 runs that ended more than 30d ago" in shop("gc").out
    assert ids(shop) == ["failed", "b", "a"]
    told = shop("gc", "--older-than", "0s").out
    assert [line.split()[:3] for line in told.splitlines()[:3]] == [
        ["FAILED", "failed", "Mended"],
        ["COMPLETED", "b", "Again"],
        ["COMPLETED", "a", "Again"],
    ]
    assert "deleted 3 runs" in told
    assert ids(shop) == []


def test_gc_never_deletes_an_unfinished_run(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    shop("gc", "--older-than", "0s")
    assert ids(shop) == ["slow"]


def test_gc_keeps_the_newest(shop: Shop) -> None:
    for name in ("a", "b", "c"):
        shop("run", "shop:Again", "--run-id", name)
    shop("gc", "--older-than", "0s", "--keep", "2")
    assert ids(shop) == ["c", "b"]


def test_a_dry_run_only_says_what_it_would_do(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "a")
    assert "would delete 1 run " in shop("gc", "--older-than", "0s", "--dry-run").out
    record = shop("gc", "--older-than", "0s", "--dry-run", "--json").json
    assert set(record) == {"dry_run", "deleted", "runs", "graphs", "audit_log"}
    assert (record["dry_run"], record["deleted"], [run["id"] for run in record["runs"]]) == (True, 0, ["a"])
    assert ids(shop) == ["a"]
    assert shop("gc", "--older-than", "0s", "--json").json["deleted"] == 1
