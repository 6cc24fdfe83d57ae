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


def test_no_runs_are_no_error_and_make_no_store(shop: Shop) -> None:
    ended = shop("ls")
    assert (ended.out, ended.err) == ("", "no runs in sqlite:///.stepwell/stepwell.db\n")
    assert shop("ls", "--json").json == []
    assert not (shop.folder / ".stepwell").exists()


def test_show_tells_a_run_and_its_nodes(old_shop: Shop) -> None:
    shown = old_shop("show", "shop:failed").out
    assert shown.startswith("Order  FAILED")
    for fact in (
        "run      shop:failed",
        "target   shop:Order",
        '"order_id":-1',
        "nodes    1 failed, 1 upstream failed",
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
    assert set(run) == RUN_KEYS | {"input", "digest", "counts", "result", "nodes"}
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
    traced = old_shop("show", "shop:failed", "--json", "--traceback").json
    assert traced["nodes"][0]["error"]["traceback"].startswith("Traceback")


def test_show_has_the_result_and_forgets_errors_that_were_made_good(old_shop: Shop) -> None:
    run = old_shop("show", "again", "--json").json
    assert (run["status"], run["result"]) == ("COMPLETED", 2)
    assert (run["nodes"][0]["attempts"], run["nodes"][0]["error"]) == (2, None)


def test_show_of_a_large_run_lists_what_failed(old_shop: Shop) -> None:
    shown = old_shop("show", "fan-100").out
    assert "99 completed, 1 failed, 1 upstream failed" in shown
    assert "part_77" in shown
    assert "part_12" not in shown
    assert len(old_shop("show", "fan-100", "--json").json["nodes"]) == 101


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
    assert shop("graph", "shop:fan", "-i", "width=7", "--json").json["nodes"][-1]["name"] == "total"
    assert shop("graph", "shop:fan", "-i", "width=7").out.count("-->") == 7


def test_graph_of_a_run_is_coloured_by_status(old_shop: Shop) -> None:
    drawn = old_shop("graph", "shop:failed").out
    assert "validate<br/>FAILED" in drawn
    assert "classDef UPSTREAM_FAILED" in drawn
    graph = old_shop("graph", "shop:failed", "--json").json
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
