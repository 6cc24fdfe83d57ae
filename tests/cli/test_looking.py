"""`ls`, `show` and `graph`: for people, and with --json for scripts."""

from __future__ import annotations

import re
from datetime import datetime

from stepwell.core.graph import from_frozen
from tests.cli.conftest import Shop

RUN_KEYS = {
    "origin",
    "id",
    "workflow",
    "target",
    "status",
    "reason",
    "error",
    "priority",
    "idempotency_key",
    "tags",
    "nodes_total",
    "nodes_open",
    "nodes_failed",
    "created_at",
    "started_at",
    "ended_at",
    "deadline_at",
    "seconds",
    "seq",
    "parent",
    "parent_node",
    "root",
    "depth",
    "path",
}
NODE_KEYS = {
    "id",
    "name",
    "status",
    "reason",
    "attempts",
    "failures",
    "index",
    "queue",
    "started_at",
    "ended_at",
    "due_at",
    "child",
    "seconds",
    "error",
    "progress",
}


def test_ls_lists_the_newest_first(old_shop: Shop) -> None:
    lines = [line.split() for line in old_shop("ls").out.splitlines()]
    assert lines[0] == ["run", "workflow", "status", "nodes", "began", "took"]
    assert [line[:3] for line in lines[3:]] == [
        ["fan-100", "fan", "FAILED"],
        ["shop:failed", "Order", "FAILED"],
        ["fan-12", "fan", "COMPLETED"],
        ["again", "Again", "COMPLETED"],
    ]


def test_ls_as_json_has_keys_that_stay(old_shop: Shop) -> None:
    (run,) = old_shop("ls", "--json", "--workflow", "Order").json
    assert set(run) == RUN_KEYS
    assert (run["workflow"], run["target"], run["status"]) == ("Order", "shop:Order", "FAILED")
    assert (run["nodes_total"], run["nodes_open"], run["nodes_failed"]) == (2, 0, 1)
    assert run["idempotency_key"] == "k"
    created, ended = (datetime.fromisoformat(run[key]) for key in ("created_at", "ended_at"))
    assert created.tzinfo is not None
    assert created <= ended
    assert run["created_at"].endswith("Z")


def test_ls_chooses_by_workflow_status_and_number(old_shop: Shop) -> None:
    def listed(*words: str) -> list[str]:
        return [run["id"] for run in old_shop("ls", "--json", *words).json]

    newest, *others = listed()
    assert others == ["fan-100", "shop:failed", "fan-12", "again"]
    assert listed("--workflow", "Again") == [newest, "again"]
    assert listed("--status", "failed") == ["fan-100", "shop:failed"]
    assert listed("--limit", "2") == [newest, "fan-100"]
    assert listed("--workflow", "Again", "--status", "FAILED") == []
    assert listed("--error", "ValueError") == ["fan-100", "shop:failed"]
    assert listed("--search", "valueerr", "--until", "0s") == ["fan-100", "shop:failed"]
    assert set(listed("--order", "duration", "--limit", "3")) <= {newest, *others}
    assert listed("--order", "ended", "--status", "failed") == ["fan-100", "shop:failed"]
    assert "none of these is RUNNING" in old_shop("ls", "--order", "ended", "--status", "running", code=2).err
    assert "one of created, ended, duration" in old_shop("ls", "--order", "length", code=2).err


def test_no_runs_are_no_error_and_make_no_store(shop: Shop) -> None:
    ended = shop("ls")
    assert (ended.out, ended.err) == ("", "no runs in sqlite:///.stepwell/stepwell.db\n")
    assert shop("ls", "--json").json == []
    assert not (shop.folder / ".stepwell").exists()


def test_show_tells_a_run_and_its_nodes(old_shop: Shop) -> None:
    shown = old_shop("show", "shop:failed").out
    assert shown.startswith("Order  FAILED")
    for fact in (
        "run       shop:failed",
        "target    shop:Order",
        '"order_id":-1',
        "nodes     1 failed, 1 upstream failed",
        "attempts  1 (1 failed)",
        "reason    validate failed",
    ):
        assert fact in shown
    assert "ValueError: there is no order -1" in shown
    assert "Traceback" not in shown


def test_show_has_tracebacks_when_asked(old_shop: Shop) -> None:
    shown = old_shop("show", "shop:failed", "--traceback").out
    assert "Traceback (most recent call last):" in shown
    assert 'raise ValueError(f"there is no order {self.order_id}")' in shown


def test_show_as_json_has_keys_that_stay(old_shop: Shop) -> None:
    run = old_shop("show", "shop:failed", "--json").json
    more = {"input", "digest", "document", "counts", "result", "forks", "ancestors", "metrics", "nodes", "heals"}
    assert set(run) == RUN_KEYS | more | {"removed_nodes"}
    assert run["input"]["order_id"] == -1
    assert run["result"] is None
    assert {status: number for status, number in run["counts"].items() if number} == {"FAILED": 1, "UPSTREAM_FAILED": 1}
    assert run["counts"]["COMPLETED"] == 0
    failed, below = run["nodes"]
    assert set(failed) == set(below) == NODE_KEYS
    assert (failed["name"], failed["status"], failed["attempts"]) == ("validate", "FAILED", 1)
    assert failed["error"] == {"type": "ValueError", "message": "there is no order -1", "traceback": None}
    assert (below["status"], below["reason"]) == ("UPSTREAM_FAILED", "upstream: validate")
    assert (below["attempts"], below["seconds"]) == (0, None)
    assert (run["metrics"]["executed"], run["metrics"]["attempts"], run["metrics"]["retries"]) == (1, 1, 0)
    traced = old_shop("show", "shop:failed", "--json", "--traceback").json
    assert traced["nodes"][0]["error"]["traceback"].startswith("Traceback")


def test_show_has_the_result_and_forgets_errors_that_were_made_good(old_shop: Shop) -> None:
    run = old_shop("show", "again", "--json").json
    assert (run["status"], run["result"]) == ("COMPLETED", 2)
    assert (run["nodes"][0]["attempts"], run["nodes"][0]["error"]) == (2, None)


def test_show_tells_in_one_line_how_long_things_took(old_shop: Shop) -> None:
    (line,) = (line for line in old_shop("show", "again").out.splitlines() if line.startswith("took "))
    assert re.fullmatch(
        r"took +[\d.]+ s a step, 95 % within [\d.]+ s; [\d.]+ s for a worker; [\d.]+ claimed at a time; 1 tried again",
        line,
    )


def test_show_draws_the_nodes_as_a_tree(old_shop: Shop) -> None:
    shown = old_shop("show", "shop:failed").out.splitlines()
    head = shown.index("")
    assert [line[:28].rstrip() for line in shown[head + 1 :]] == [
        "✗ validate  FAILED",
        "  ValueError: there is no or",
        "⊘ ship      UPSTREAM_FAILED",
    ]


def test_show_of_a_large_run_folds_what_is_alike(old_shop: Shop) -> None:
    shown = old_shop("show", "fan-100").out
    assert "99 completed, 1 failed, 1 upstream failed" in shown
    assert "─ ✓ part_0 .. part_99  99 × COMPLETED" in shown
    assert "─ ✗ part_77" in shown
    assert "ValueError: 77 is odd" in shown
    assert "upstream: part_77, also after part_" in shown
    assert "part_12" not in shown
    assert "--all shows all 101 nodes" in shown
    assert len(old_shop("show", "fan-100", "--json").json["nodes"]) == 101


def test_show_has_every_node_when_asked(old_shop: Shop) -> None:
    shown = old_shop("show", "fan-100", "--all").out
    assert shown.count("✓ part_") == 99
    assert "--all" not in shown


def test_show_fits_the_terminal(old_shop: Shop) -> None:
    for columns in (60, 80, 200):
        for run in ("shop:failed", "fan-12", "fan-100"):
            shown = old_shop("show", run, COLUMNS=str(columns)).out
            assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns


def test_show_is_plain_where_there_is_no_unicode(old_shop: Shop) -> None:
    shown = old_shop("show", "fan-100", PYTHONIOENCODING="ascii").out
    assert shown.isascii()
    assert "- + part_0 .. part_99  99 x COMPLETED" in shown
    assert "\\u" not in shown


def test_no_message_moves_the_cursor(shop: Shop) -> None:
    shop.write(
        "odd.py",
        "from stepwell import Builder\n"
        "def fail(): raise ValueError('\\x1b[2J\\x07 cleared\\nscreen')\n"
        "def build():\n"
        "    b = Builder('odd')\n"
        "    b.node('a', job=fail)\n"
        "    return b\n",
    )
    shop("run", "odd:build", "--run-id", "odd", code=1)
    shown = shop("show", "odd", "--traceback").out
    assert "ValueError: \ufffd[2J cleared screen" in shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b"}


def test_nodes_are_listed_level_by_level_as_they_were_declared(old_shop: Shop) -> None:
    names = [node["name"] for node in old_shop("show", "fan-12", "--json").json["nodes"]]
    assert names == [*(f"part_{item}" for item in range(12)), "total"]


def test_the_beginning_of_a_run_id_is_enough(old_shop: Shop) -> None:
    run_id = old_shop("ls", "--json", "--limit", "1").json[0]["id"]
    assert old_shop("ls").out.splitlines()[2].split()[0] == run_id[:12]
    assert old_shop("show", run_id[:4], "--json").json["id"] == run_id
    old_shop("show", run_id[:3], code=3)


def test_a_beginning_that_fits_several_runs_is_refused(old_shop: Shop) -> None:
    refused = old_shop("show", "fan-1", code=2)
    assert "'fan-1' begins the ids of 2 runs; give more of it:" in refused.err
    assert "fan-12" in refused.err
    assert "fan-100" in refused.err


def test_a_whole_id_is_never_ambiguous(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "order-1")
    shop("run", "shop:Again", "--run-id", "order-17")
    assert shop("show", "order-1", "--json").json["id"] == "order-1"


def test_graph_of_a_target_needs_no_store_and_no_input(shop: Shop) -> None:
    drawn = shop("graph", "shop:Order").out
    assert drawn.startswith("flowchart TD\n")
    assert 'n0["validate"]' in drawn
    assert drawn == shop("graph", "shop:Order", "--mermaid").out
    assert shop("graph", "shop:Order", "--dot").out.startswith("digraph {\n")
    assert not (shop.folder / ".stepwell").exists()


def test_graph_of_a_function_takes_its_input(shop: Shop) -> None:
    assert shop("graph", "shop:fan", "-i", "width=7", "--json").json["nodes"]["names"][-1] == "total"
    assert shop("graph", "shop:fan", "-i", "width=7").out.count("-->") == 7


def test_graph_of_a_run_is_coloured_by_status(old_shop: Shop) -> None:
    drawn = old_shop("graph", "shop:failed").out
    assert "validate<br/>FAILED" in drawn
    assert "classDef UPSTREAM_FAILED" in drawn
    graph = old_shop("graph", "shop:failed", "--json").json
    assert graph["nodes"]["names"] == ["validate", "ship"]
    assert graph["nodes"]["statuses"] == ["FAILED", "UPSTREAM_FAILED"]
    assert graph["edges"] == {"offsets": [0, 0, 1], "parents": [0]}
    before = old_shop("graph", "shop:failed", "--json", "--at", "1").json
    assert before["nodes"]["statuses"] == ["READY", "PENDING"]
    old_shop("graph", "shop:failed", "--at", "1", code=2)
    old_shop("graph", "shop:failed", "--at", "10000", "--json", code=2)


def test_a_group_of_a_graph_is_opened(old_shop: Shop) -> None:
    closed = old_shop("graph", "fan-12", "--json").json
    (group,) = closed["groups"]["ids"]
    assert closed["groups"]["counts"] == [{"COMPLETED": 12}]
    opened = old_shop("graph", "fan-12", "--json", "--open", group).json
    assert opened["groups"]["is_open"] == [True]
    assert len(opened["nodes"]["ids"]) == len(closed["nodes"]["ids"]) + 12


def test_graph_of_a_run_can_be_kept_in_its_frozen_form(old_shop: Shop) -> None:
    frozen = old_shop("graph", "fan-12", "--frozen")
    assert set(frozen.json) == {"version", "signature", "frozen_at", "nodes"}
    shown = old_shop("graph", "fan-12", "--json").json
    assert from_frozen(frozen.out).digest == shown["digest"]
    created = old_shop("show", "fan-12", "--json").json["created_at"]
    assert frozen.json["frozen_at"] == created[:19] + "Z"
    assert "no run 'shop:Order'" in old_shop("graph", "shop:Order", "--frozen", code=3).err
    assert "only one of" in old_shop("graph", "fan-12", "--frozen", "--dot", code=2).err


def test_version_says_which(shop: Shop) -> None:
    assert shop("--version").out.startswith("stepwell ")
    assert shop("version").out.startswith("stepwell ")
    assert set(shop("version", "--json").json) == {"stepwell", "python", "sqlite"}


def test_graph_can_be_a_picture(old_shop: Shop) -> None:
    told = old_shop("graph", "shop:failed", "--svg", "failed.svg")
    assert (told.out, told.err) == ("", "drew 2 nodes into failed.svg\n")
    picture = (old_shop.folder / "failed.svg").read_text("utf-8")
    assert picture.startswith("<svg ")
    assert "<title>validate: FAILED</title>" in picture
    assert old_shop("graph", "shop:failed", "--svg", "-").out == picture
    assert old_shop("graph", "shop:failed", "--svg", "-", PYTHONIOENCODING="ascii").out == picture


def test_a_picture_that_cannot_be_drawn_says_why(old_shop: Shop) -> None:
    assert "it cannot be written" in old_shop("graph", "fan-12", "--svg", "no/such/folder.svg", code=2).err
    told = old_shop("graph", "shop:fan", "-i", "width=10000", "--svg", "large.svg", code=2).err
    assert "10,001 nodes" in told
    assert "stepwell show" in told
    assert not (old_shop.folder / "large.svg").exists()
    assert "only one of" in old_shop("graph", "fan-12", "--svg", "-", "--json", code=2).err


def test_ls_chooses_by_tag_time_and_the_beginning_of_an_id(shop: Shop) -> None:
    for number in (1, 2):
        shop(
            "run",
            "shop:Order",
            "-i",
            f"order_id={number}",
            "--run-id",
            f"order-{number}",
            "--tag",
            f"customer={number}",
        )
    assert [run["id"] for run in shop("ls", "--tag", "customer=2", "--json").json] == ["order-2"]
    assert [run["id"] for run in shop("ls", "--id", "order-1", "--since", "1h", "--json").json] == ["order-1"]
    assert shop("ls", "--json").json[0]["tags"] == {"customer": "2"}
    assert shop("ls", "--tag", "customer=3", "--status", "completed", "--json").json == []
    for wrong in (("--tag", "customer"), ("--since", "yesterday")):
        assert ", as in" in shop("ls", *wrong, code=2).err
