"""Small texts that people stumble over."""

from __future__ import annotations

import os
import re
import signal

from stepwell.base.ids import NodeId
from stepwell.core.graph import Graph, NodeSpec
from stepwell.engine.code.versions import changes
from stepwell.errors import RunFailed
from tests.cli.conftest import Shop


def test_a_run_that_took_too_long_is_no_failure_of_a_node(shop: Shop) -> None:
    failed = shop("run", "shop:Slow", "--run-id", "slow", "--deadline", "0.5", code=1).err
    assert "error: run slow failed: it did not end within its deadline\n" in failed
    assert "(run)" not in str(RunFailed("r", node="(run)", attempt=0, error_type="deadline", error_message="late"))


def test_a_short_beginning_of_an_id_is_explained(shop: Shop) -> None:
    assert "needs at least 4 characters" in shop("show", "f0", code=3).err


def test_hints_name_the_store_that_was_named(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "o", "--store", "sqlite:///our orders.db", code=1)
    option = "--store 'sqlite:///our orders.db'"
    assert f"`stepwell ls {option}` lists" in shop("show", "none", "--store", "sqlite:///our orders.db", code=3).err
    for words in (("why", "o"), ("why", "o", "--json")):
        assert f"`stepwell retry o {option}`" in shop(*words, "--store", "sqlite:///our orders.db").out


def test_work_takes_modules(shop: Shop) -> None:
    assert "give the module only, as in `stepwell work shop`" in shop("work", "shop:Order", "--once", code=2).err


def test_a_missing_job_says_in_lines_what_to_do(shop: Shop) -> None:
    shop.write(
        "gone.py",
        "from stepwell import Builder\ndef build():\n    b = Builder('g')\n    b.node('a', job='no:job')\n    return b\n",
    )
    failed = shop("run", "gone:build", "--run-id", "g", code=1).err
    assert "\n  - edit the graph: " in failed
    happened = r"MissingJob: the job of node 'a' \(n_\w+\) of run g is missing: no:job: [^\n]*"
    for text in (failed, shop("show", "g").out):
        assert re.search(rf"^  {happened}[^. ]\n", text, re.MULTILINE), "in a tree only what happened, and all of it"
    why = shop("why", "g").out
    assert re.search(rf"failed at [\d:]+: {happened}\n", why)
    *_, head, restore, cancel, edit, retry = why.splitlines()
    assert head.endswith("names it, so there are three ways out:")
    assert restore == "      - restore no:job where this worker runs, and `run.retry()`"
    assert cancel.startswith("      - give up: ")
    assert edit.endswith("`run.import_graph(...)`, `run.retry()`")
    assert retry == "→ `run.retry()` or `stepwell retry g` runs only what did not complete"


def test_unknown_nodes_are_answered_with_names_and_ids(shop: Shop) -> None:
    shop("run", "shop:fan", "-i", "width=2", "--run-id", "fan-2")
    told = {shop(verb, "fan-2", "nix", code=2).err for verb in ("why", "reattempt", "logs")}
    assert len(told) == 1
    assert "part_0 (" in told.pop()


def test_what_is_left_out_of_a_summary_is_counted() -> None:
    def graph(*names: str) -> Graph:
        return Graph([NodeSpec(NodeId(name), name) for name in names])

    assert changes(graph("a"), graph("a", *"bcdefg")) == "6 new: b, c, d and 3 more"


def test_a_pause_of_a_run_whose_worker_is_dead_promises_no_end(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    shop.until(lambda: shop("show", "slow", "--json").json["nodes"][1]["status"] == "RUNNING")
    assert "1 node at work may end" in shop("pause", "slow").out
    shop("resume", "slow", "--no-wait")
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    paused = shop("pause", "slow").out
    assert "may end" not in paused
    assert "no worker is left that could end the 1 node it was at" in paused
