"""`ls`, `show` and `graph`: for people, and with --json for scripts."""

from __future__ import annotations

from datetime import datetime

from tests.cli.conftest import Shop

RUN_KEYS = {
    "id",
    "workflow",
    "target",
    "status",
    "reason",
    "priority",
    "idempotency_key",
    "nodes_total",
    "nodes_open",
    "nodes_failed",
    "created_at",
    "started_at",
    "ended_at",
    "deadline_at",
    "seconds",
}
NODE_KEYS = {
    "id",
    "name",
    "status",
    "reason",
    "attempts",
    "started_at",
    "ended_at",
    "due_at",
    "seconds",
    "error",
}


def test_ls_lists_the_newest_first(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "older")
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "newer", code=1)
    lines = [line.split() for line in shop("ls").out.splitlines()]
    assert lines[0] == ["run", "workflow", "status", "nodes", "began", "took"]
    assert [line[:3] for line in lines[2:]] == [["newer", "Order", "FAILED"], ["older", "Again", "COMPLETED"]]


def test_ls_as_json_has_keys_that_stay(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", code=1)
    (run,) = shop("ls", "--json").json
    assert set(run) == RUN_KEYS
    assert (run["workflow"], run["target"], run["status"]) == ("Order", "shop:Order", "FAILED")
    assert (run["nodes_total"], run["nodes_open"], run["nodes_failed"]) == (2, 0, 1)
    created, ended = (datetime.fromisoformat(run[key]) for key in ("created_at", "ended_at"))
    assert created.tzinfo is not None
    assert created <= ended
    assert run["created_at"].endswith("Z")


def test_ls_chooses_by_workflow_status_and_number(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "a")
    shop("run", "shop:Again", "--run-id", "b")
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "c", code=1)

    def listed(*words: str) -> list[str]:
        return [run["id"] for run in shop("ls", "--json", *words).json]

    assert listed() == ["c", "b", "a"]
    assert listed("--workflow", "Again") == ["b", "a"]
    assert listed("--status", "failed") == ["c"]
    assert listed("--limit", "2") == ["c", "b"]
    assert listed("--workflow", "Again", "--status", "FAILED") == []


def test_no_runs_are_no_error_and_make_no_store(shop: Shop) -> None:
    ended = shop("ls")
    assert (ended.out, ended.err) == ("", "no runs in sqlite:///.stepwell/stepwell.db\n")
    assert shop("ls", "--json").json == []
    assert not (shop.folder / ".stepwell").exists()


def test_show_tells_a_run_and_its_nodes(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "order-1", code=1)
    shown = shop("show", "order-1").out
    assert shown.startswith("Order  FAILED")
    for fact in ("run      order-1", "target   shop:Order", '"order_id":-1', "nodes    1 failed, 1 upstream failed"):
        assert fact in shown
    assert "ValueError: there is no order -1" in shown
    assert "Traceback" not in shown


def test_show_has_tracebacks_when_asked(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "order-1", code=1)
    shown = shop("show", "order-1", "--traceback").out
    assert "Traceback (most recent call last):" in shown
    assert 'raise ValueError(f"there is no order {self.order_id}")' in shown


def test_show_as_json_has_keys_that_stay(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "order-1", code=1)
    run = shop("show", "order-1", "--json").json
    assert set(run) == RUN_KEYS | {"input", "digest", "counts", "result", "nodes"}
    assert run["input"]["order_id"] == -1
    assert run["result"] is None
    assert {status: number for status, number in run["counts"].items() if number} == {"FAILED": 1, "UPSTREAM_FAILED": 1}
    assert run["counts"]["COMPLETED"] == 0
    failed, below = run["nodes"]
    assert set(failed) == set(below) == NODE_KEYS
    assert (failed["name"], failed["status"], failed["attempts"]) == ("validate", "FAILED", 1)
    assert failed["error"] == {"type": "ValueError", "message": "there is no order -1", "traceback": None}
    assert (below["status"], below["reason"], below["attempts"], below["seconds"]) == (
        "UPSTREAM_FAILED",
        "upstream: validate",
        0,
        None,
    )
    traced = shop("show", "order-1", "--json", "--traceback").json
    assert traced["nodes"][0]["error"]["traceback"].startswith("Traceback")


def test_show_has_the_result_and_forgets_errors_that_were_made_good(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "again")
    run = shop("show", "again", "--json").json
    assert (run["status"], run["result"]) == ("COMPLETED", 2)
    assert (run["nodes"][0]["attempts"], run["nodes"][0]["error"]) == (2, None)


def test_show_of_a_large_run_lists_what_failed(shop: Shop) -> None:
    shop.write(
        "many.py",
        "from stepwell import Builder\n"
        "def odd(item):\n"
        "    if item == 77: raise ValueError('odd')\n"
        "def many():\n"
        "    b = Builder('many', on_failure='finish')\n"
        "    b.fan_out(range(100), job=odd)\n"
        "    return b\n",
    )
    shop("run", "many:many", "--run-id", "many", code=1)
    shown = shop("show", "many").out
    assert "99 completed, 1 failed" in shown
    assert "odd_77" in shown
    assert "odd_12" not in shown
    assert len(shop("show", "many", "--json").json["nodes"]) == 100


def test_nodes_are_listed_level_by_level_as_they_were_declared(shop: Shop) -> None:
    shop("run", "shop:fan", "-i", "width=12", "--run-id", "fan")
    names = [node["name"] for node in shop("show", "fan", "--json").json["nodes"]]
    assert names == [*(f"part_{item}" for item in range(12)), "total"]


def test_the_beginning_of_a_run_id_is_enough(shop: Shop) -> None:
    shop("run", "shop:Again")
    run_id = shop("ls", "--json").json[0]["id"]
    assert shop("show", run_id[:4], "--json").json["id"] == run_id
    assert shop("ls").out.splitlines()[-1].split()[0] == run_id[:12]
    shop("show", run_id[:3], code=3)


def test_a_beginning_that_fits_several_runs_is_refused(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "order-17")
    shop("run", "shop:Again", "--run-id", "order-18")
    refused = shop("show", "order-1", code=2)
    assert "'order-1' begins the ids of 2 runs; give more of it:" in refused.err
    assert "order-17" in refused.err
    assert "order-18" in refused.err


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
    assert shop("graph", "shop:fan", "-i", "width=7", "--json").json["nodes"][-1]["name"] == "total"
    assert shop("graph", "shop:fan", "-i", "width=7").out.count("-->") == 7


def test_graph_of_a_run_is_coloured_by_status(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=-1", "--run-id", "shop:1", code=1)
    drawn = shop("graph", "shop:1").out
    assert "validate<br/>FAILED" in drawn
    assert "classDef UPSTREAM_FAILED" in drawn
    graph = shop("graph", "shop:1", "--json").json
    assert set(graph) == {"workflow", "digest", "signature", "nodes"}
    assert [(node["name"], node["status"]) for node in graph["nodes"]] == [
        ("validate", "FAILED"),
        ("ship", "UPSTREAM_FAILED"),
    ]
    assert set(graph["nodes"][0]) == {"id", "name", "kind", "job", "depends_on", "level", "status"}


def test_version_says_which(shop: Shop) -> None:
    assert shop("--version").out.startswith("stepwell ")
    assert shop("version").out.startswith("stepwell ")
    assert set(shop("version", "--json").json) == {"stepwell", "python", "sqlite"}
