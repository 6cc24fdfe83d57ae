"""`stepwell run`: the work, its result on stdout, everything else on stderr."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shop


def test_a_run_ends_with_its_result_alone_on_stdout(shop: Shop) -> None:
    ended = shop("run", "shop:Order", "--input", "order_id=7")
    assert ended.json["shipped"]["order_id"] == 7
    assert shop.ledger() == ["validate", "ship"]
    assert (shop.folder / ".stepwell" / "stepwell.db").exists()


def test_stderr_tells_the_run_its_nodes_and_its_end_in_plain_lines(shop: Shop) -> None:
    ended = shop("run", "shop:Order", "--input", "order_id=7", "--run-id", "order-7")
    assert "\x1b" not in ended.err
    lines = [line.split() for line in ended.err.splitlines() if line.strip()]
    assert lines[0] == ["Order", "2", "nodes", "run", "order-7"]
    assert [line[:3] for line in lines[1:-1]] == [["✓", "validate", "COMPLETED"], ["✓", "ship", "COMPLETED"]]
    assert lines[-1][1] == "COMPLETED"


def test_a_long_run_prints_a_line_now_and_then_and_no_more(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow")
    assert running.stderr is not None
    seen = [running.stderr.readline()]
    while not seen[-1].endswith("s: 1/3 done, 1 running, 1 waiting, 0 failed: second\n"):
        seen.append(running.stderr.readline())
    assert len(seen) < 5
    shop.touch("go")
    ended = shop.end(running, code=0)
    assert ended.json == "12"
    assert " done, " not in ended.err


def test_the_same_run_id_is_the_same_run_and_with_another_input_a_conflict(shop: Shop) -> None:
    first = shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "order-7")
    again = shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "order-7")
    assert first.json == again.json
    assert shop.ledger() == ["validate", "ship"]
    refused = shop("run", "shop:Order", "-i", "order_id=8", "--run-id", "order-7", code=6)
    assert refused.err.startswith("error: run order-7 exists already")


def test_the_same_key_is_the_same_run(shop: Shop) -> None:
    for _ in range(2):
        shop("run", "shop:Order", "-i", "order_id=7", "--key", "k", "--priority", "5")
    (run,) = shop("ls", "--json").json
    assert (run["idempotency_key"], run["priority"]) == ("k", 5)


def test_a_failed_run_is_exit_code_1_and_says_where_and_what_next(shop: Shop) -> None:
    failed = shop("run", "shop:Order", "-i", "order_id=-7", "--run-id", "order-7", code=1)
    assert failed.out == ""
    assert "error: run order-7 failed at node 'validate', attempt 1: ValueError: there is no order -7\n" in failed.err
    assert "stepwell show order-7 --traceback" in failed.err
    assert "stepwell retry order-7 " in failed.err


def test_a_run_that_exceeds_its_timeout_failed(shop: Shop) -> None:
    failed = shop("run", "shop:Slow", "--deadline", "0.2", "--run-id", "late", code=1)
    assert "deadline" in failed.err
    assert shop("show", "late", "--json").json["reason"] == "deadline"


def test_a_retried_node_shows_its_attempts(shop: Shop) -> None:
    ended = shop("run", "shop:Again")
    assert ended.json == 2
    (line,) = [line.split() for line in ended.err.splitlines() if "flaky" in line]
    assert line[:3] == ["✓", "flaky", "COMPLETED"]
    assert line[-2:] == ["2", "attempts"]


def test_a_function_that_returns_a_builder_is_a_target(shop: Shop) -> None:
    assert shop("run", "shop:fan").json == 3
    assert shop("run", "shop:fan", "-i", "width=5").json == 10


def test_several_last_nodes_give_a_result_by_name(shop: Shop) -> None:
    assert shop("run", "shop:fan", "-i", "join=no").json == {"part_0": 0, "part_1": 1, "part_2": 2}


def test_many_nodes_are_counted_instead_of_listed(shop: Shop) -> None:
    ended = shop("run", "shop:fan", "-i", "width=200")
    assert "201 completed" in ended.err
    assert "part_17" not in ended.err


def test_nothing_is_a_result_too(shop: Shop) -> None:
    shop.write(
        "quiet.py", "from stepwell import Workflow, step\nclass Quiet(Workflow):\n    @step\n    def say(self): ...\n"
    )
    assert shop("run", "quiet:Quiet").out == "null\n"


def test_input_comes_from_a_file_and_from_options_which_win(shop: Shop) -> None:
    shop.write("order.json", json.dumps({"order_id": 7, "express": True, "tags": ["a"]}))
    ended = shop("run", "shop:Order", "--input-file", "order.json", "--input", "order_id=8")
    assert ended.json["shipped"] | {"order_id": 8, "express": True, "tags": ["a"]} == ended.json["shipped"]
    piped = shop("run", "shop:Order", "--input-file", "-", stdin='{"order_id": 9}')
    assert piped.json["shipped"]["order_id"] == 9


@pytest.mark.parametrize("where", ["before", "after", "environment"])
def test_the_store_can_be_named_before_and_after_the_command_and_outside(shop: Shop, where: str) -> None:
    url = "sqlite:///elsewhere/orders.db"
    if where == "before":
        shop("--store", url, "run", "shop:Again")
    elif where == "after":
        shop("run", "shop:Again", "--store", url)
    else:
        shop("run", "shop:Again", STEPWELL_STORE=url)
    assert (shop.folder / "elsewhere" / "orders.db").exists()
    assert not (shop.folder / ".stepwell").exists()


def test_what_to_do_next_names_the_store_that_was_named(shop: Shop) -> None:
    failed = shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "r", "--store", "sqlite:///x.db", code=1)
    assert "stepwell retry r --store sqlite:///x.db " in failed.err
