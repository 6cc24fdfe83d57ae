"""`why`: for people, and with --json for scripts."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.cli.conftest import Shop


def told(text: str) -> list[str]:
    text = re.sub(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d", "T", text)
    text = re.sub(r"process \d+ on \S+", "process P", text)
    return re.sub(r" \((in )?[\d.]+ [smh]( \d\d [smh])?\)", "", text).splitlines()


FAILED = [
    "  validate failed for good: it has no retry=",
    "    attempt 1 failed at T: ValueError: there is no order -1",
    "→ `run.retry()` or `stepwell retry shop:failed` runs only what did not complete",
]


def test_of_a_run_and_of_a_node(old_shop: Shop) -> None:
    assert told(old_shop("why", "shop:failed").out) == [
        "run shop:failed of Order failed at T: 2 nodes, 1 failed, 1 upstream failed",
        *FAILED,
    ]
    assert told(old_shop("why", "shop:f", "ship").out) == ["ship did not run: it depends on validate", *FAILED]


def test_nodes_go_by_name_or_id(old_shop: Shop) -> None:
    by_name = old_shop("why", "fan-100", "part_77").out
    assert told(by_name)[1] == "  attempt 1 failed at T: ValueError: 77 is odd"
    found = old_shop("why", "fan-100", "part_77", "--json").json["node"]
    assert found.startswith("n_")
    assert old_shop("why", "fan-100", found).out == by_name


def test_as_json_it_has_keys_that_stay(old_shop: Shop) -> None:
    answer = old_shop("why", "shop:failed", "ship", "--json").json
    assert set(answer) == {
        "run",
        "workflow",
        "run_status",
        "node",
        "name",
        "status",
        "reason",
        "causes",
        "advice",
        "text",
        "config",
    }
    assert (answer["run"], answer["node"], answer["status"]) == ("shop:failed", "ship", "UPSTREAM_FAILED")
    (cause,) = answer["causes"]
    assert set(cause) == {"kind", "node", "name", "attempt", "at", "detail", "because"}
    (failed,) = cause["because"]
    assert (cause["kind"], failed["kind"], failed["node"]) == ("upstream_failed", "failed", "validate")
    (attempt,) = failed["because"]
    assert attempt["detail"] == {"type": "ValueError", "message": "there is no order -1"}
    assert attempt["at"].endswith("Z")
    whole = old_shop("why", "shop:failed", "--json").json
    assert (whole["node"], whole["status"]) == (None, "FAILED")
    assert whole["text"].startswith("run shop:failed of Order failed at ")


def test_there_is_no_such_run_or_node(old_shop: Shop) -> None:
    assert "no run 'nothing'" in old_shop("why", "nothing", code=3).err
    refused = old_shop("why", "shop:failed", "nix", code=2)
    assert refused.err == "error: run shop:failed has no node 'nix': there are: validate, ship\n"
    assert refused.out == ""
    old_shop("why", code=2)


def test_what_to_type_names_the_store_that_was_named(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "o", "--store", "sqlite:///other.db", code=1)
    told_there = shop("why", "o", "--store", "sqlite:///other.db").out
    assert "`stepwell retry o --store sqlite:///other.db`" in told_there


def test_looking_makes_no_store(shop: Shop) -> None:
    shop("why", "nothing", code=3)
    assert not (shop.folder / ".stepwell").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_after_a_kill_it_says_who_is_gone_and_how_to_go_on(shop: Shop) -> None:
    worker = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    assert told(shop("why", "slow", "third").out) == [
        "third waits for second",
        "  second is running since T, process P",
    ]
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(10)
    go_on = "→ `stepwell work shop` works on it, or `stepwell resume slow` on this run alone"
    gone = "the worker of attempt 1 is gone; the next sweep runs it again"
    assert told(shop("why", "slow", "third").out) == [
        "third waits for second",
        "  second is recorded as running since T",
        f"    {gone}",
        "    no worker is alive",
        go_on,
    ]
    assert told(shop("why", "slow").out)[1:] == [
        "  no worker is alive",
        "  second is recorded as running since T",
        f"    {gone}",
        go_on,
    ]
    shop.touch("go")
    shop("resume", "slow")
    assert told(shop("why", "slow", "second").out) == [
        "second completed at T, in attempt 2",
        "  attempt 1 was lost at T: its worker died or did not answer in time",
        "    first completed at T",
    ]
