"""`pause`, `resume`, `reattempt`, `freeze`, `import` and `--dry-run`: what they say, and what they leave."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.cli.conftest import Shop

PAUSED = "error: run c is paused: node 'broken' failed, attempt "
WAYS_ON = (
    "  stepwell retry c   runs again what failed\n"
    "  stepwell resume c  goes on without it\n"
    "  stepwell cancel c  ends it\n"
)


def careful(shop: Shop) -> None:
    """A run `c` that is paused, because a node failed."""
    shop.touch("go")
    shop("run", "shop:Careful", "--run-id", "c", code=6)


def left_running(shop: Shop) -> None:
    """A run `slow` that nobody works on, in the middle of it."""
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def statuses(shop: Shop, run: str) -> dict[str, str]:
    return {node["name"]: node["status"] for node in shop("show", run, "--json").json["nodes"]}


def entries(shop: Shop, run: str) -> int:
    """How long the journal of a run is: whatever changes it makes it longer."""
    found: int = shop("audit", run, "--json").json["journal_entries"]
    return found


def test_a_run_that_pauses_for_a_failure_ends_the_command_and_says_how_to_go_on(shop: Shop) -> None:
    shop.touch("go")
    ended = shop("run", "shop:Careful", "--run-id", "c", code=6)
    assert ended.out == ""
    assert f"{PAUSED}1: " in ended.err
    assert f"\n{WAYS_ON}  stepwell why c     says more\n" in ended.err
    assert "PAUSED: 1 pending, 2 completed, 1 failed\n" in ended.err


def test_what_runs_when_a_run_pauses_may_end_before_the_command_does(shop: Shop) -> None:
    running = shop.start("run", "shop:Careful", "--run-id", "c")
    shop.until(lambda: "broken" in shop.ledger() and shop.status("c") == "PAUSED")
    assert running.poll() is None
    shop.touch("go")
    shop.end(running, code=6)
    assert statuses(shop, "c")["beside"] == "COMPLETED"


def test_a_paused_run_is_retried(shop: Shop) -> None:
    careful(shop)
    assert f"{PAUSED}2: " in shop("retry", "c", code=6).err
    shop.touch("mended")
    assert shop("retry", "c").json == {"after": "after", "beside": "beside"}
    assert shop.ledger().count("beside") == 1


def test_a_paused_run_is_resumed_without_what_failed(shop: Shop) -> None:
    careful(shop)
    assert "run c failed at node 'broken'" in shop("resume", "c", code=1).err
    assert statuses(shop, "c") == {
        "before": "COMPLETED",
        "broken": "FAILED",
        "after": "UPSTREAM_FAILED",
        "beside": "COMPLETED",
    }


def test_ls_and_show_say_why_a_run_is_paused(shop: Shop) -> None:
    left_running(shop)
    shop("pause", "slow")
    careful(shop)
    listed = shop("ls").out
    assert "PAUSED: a node failed" in listed
    assert "PAUSED: on request" in listed
    shown = shop("show", "c").out
    assert "reason    broken failed\n" in shown
    assert "next      `stepwell retry c` runs again what failed, `stepwell resume c` goes on without it" in shown
    shown = shop("show", "slow").out
    assert "reason    paused on request\n" in shown
    assert "next      `stepwell resume slow` goes on" in shown


def test_a_run_is_paused_while_another_process_works_on_it_and_resumed(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    paused = shop("pause", "slow")
    assert paused.out == (
        "run slow is PAUSED: nothing more is started; 1 node at work may end, and what it did is kept\n"
    )
    assert "  stepwell resume slow  goes on\n" in paused.err
    shop.touch("go")
    shop.until(lambda: statuses(shop, "slow")["second"] == "COMPLETED")
    assert statuses(shop, "slow")["third"] == "PENDING"
    assert running.poll() is None, "a pause is no end: who waits goes on waiting"
    assert shop("resume", "slow", "--no-wait").out == (
        "run slow is RUNNING again: 1 node to run, when somebody works on it\n  stepwell resume slow\n"
    )
    assert shop.end(running, code=0).json == "12"
    assert shop.ledger() == ["first", "second", "third"]


def test_resume_works_on_a_paused_run_to_its_end(shop: Shop) -> None:
    left_running(shop)
    shop("pause", "slow")
    shop.touch("go")
    assert shop("resume", "slow").json == "12"


def test_a_node_is_attempted_again(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "o")
    assert shop("reattempt", "o", "ship").json["shipped"]["order_id"] == 7
    assert shop.ledger() == ["validate", "ship", "ship"]
    refused = shop("reattempt", "o", "validate", code=6).err
    assert "node 'validate' cannot be attempted again alone: what is below it has completed" in refused
    assert "  stepwell reattempt o NODE --cascade  runs a node again, and all that is below it\n" in refused
    assert "  stepwell fork o --at NODE            does so in a new run, and keeps this one\n" in refused


def test_a_node_is_attempted_again_with_what_completed_below_it(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "o")
    told = shop("reattempt", "o", "validate", "--cascade", "--dry-run", "--json").json
    assert [(node["name"], node["status"], node["becomes"]) for node in told["nodes"]] == [
        ("validate", "COMPLETED", "PENDING"),
        ("ship", "COMPLETED", "PENDING"),
    ]
    assert shop("reattempt", "o", "validate", "--cascade").json["shipped"]["order_id"] == 7
    assert shop.ledger() == ["validate", "ship", "validate", "ship"]


def test_a_reattempt_without_waiting_only_records_it(shop: Shop) -> None:
    shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "o")
    assert shop("reattempt", "o", "ship", "--no-wait").out.startswith("run o is RUNNING again: 1 node to run")
    assert shop.ledger().count("ship") == 1
    shop("resume", "o")
    assert shop.ledger().count("ship") == 2


@pytest.mark.parametrize("words", [("reattempt", "o", "sihp"), ("reattempt", "o", "sihp", "--dry-run")])
def test_a_node_that_is_not_there_is_wrong_usage(shop: Shop, words: tuple[str, ...]) -> None:
    shop("run", "shop:Order", "-i", "order_id=7", "--run-id", "o")
    assert "run o has no node 'sihp': there are: validate, ship" in shop(*words, code=2).err


def test_a_dry_run_says_what_would_change_and_changes_nothing(shop: Shop) -> None:
    careful(shop)
    before = entries(shop, "c")
    told = shop("retry", "c", "--dry-run").out
    assert [line.split() for line in told.splitlines()[2:3]] == [["broken", "FAILED", "PENDING"]]
    assert "run c is PAUSED and would be RUNNING: 1 node would change; nothing has been done\n" in told
    assert "its class was not looked at" in told
    resumed = shop("resume", "c", "--dry-run").out
    assert "cannot run (after: UPSTREAM_FAILED at the end), so the run will end FAILED; `stepwell retry c`" in resumed
    broken = {"id": "broken", "name": "broken", "status": "FAILED", "becomes": "PENDING"}
    after = {"id": "after", "name": "after", "status": "PENDING", "becomes": "CANCELLED"}
    for words, becomes, nodes in [
        (("retry", "c"), "RUNNING", [broken]),
        (("reattempt", "c", "broken"), "RUNNING", [broken]),
        (("resume", "c"), "RUNNING", []),
        (("cancel", "c"), "CANCELLED", [after]),
    ]:
        assert shop(*words, "--dry-run", "--json").json == {
            "run": "c",
            "status": "PAUSED",
            "becomes": becomes,
            "dry_run": True,
            "nodes": nodes,
        }
    assert "run c is PAUSED and would be PAUSED: no node would change" in shop("pause", "c", "--dry-run").out
    assert entries(shop, "c") == before


def test_a_fork_says_what_it_would_run(shop: Shop) -> None:
    shop("run", "shop:Order", "--input", "order_id=7", "--run-id", "f")
    told = shop("fork", "f", "--at", "ship", "--dry-run").out
    assert "a fork of run f would run 1 node and share the others; nothing has been done" in told
    assert [node["id"] for node in shop("fork", "f", "--at", "ship", "--dry-run", "--json").json["nodes"]] == ["ship"]
    shop("fork", "f", "--at", "nowhere", "--dry-run", code=2)


def test_json_is_for_dry_runs(shop: Shop) -> None:
    for words in (("retry", "r"), ("reattempt", "r", "n"), ("cancel", "r"), ("pause", "r"), ("resume", "r")):
        assert "--json goes with --dry-run" in shop(*words, "--json", code=2).err


def test_what_is_refused_says_what_can_be_done_instead(shop: Shop) -> None:
    shop("run", "shop:Mended", "--run-id", "failed", code=1)
    left_running(shop)
    for words in (("pause", "failed"), ("cancel", "failed"), ("resume", "failed")):
        assert "  stepwell retry failed           runs what did not complete\n" in shop(*words, code=6).err
    assert "  stepwell resume slow  works on it to its end\n" in shop("retry", "slow", code=6).err
    assert "stepwell resume slow --store sqlite:///.stepwell/stepwell.db" in (
        shop("retry", "slow", "--store", "sqlite:///.stepwell/stepwell.db", code=6).err
    )
    for words in (("pause", "nobody"), ("freeze", "nobody"), ("reattempt", "nobody", "n"), ("import", "nobody", "-")):
        shop(*words, code=3, stdin="{}")


RENAMED = """
from stepwell import Workflow, step
class Job(Workflow):
    @step
    def {first}(self): open("ledger.txt", "a").write("{first}\\n")
    @step
    def last(self):
        from pathlib import Path
        assert Path("mended").exists(), "not mended"
"""


def renamed(shop: Shop) -> None:
    """A run `j` that failed, of a class that has lost a node and gained one since."""
    shop.write("job.py", RENAMED.format(first="charge"))
    shop("run", "job:Job", "--run-id", "j", code=1)
    shop.write("job.py", RENAMED.format(first="settle"))
    shop.touch("mended")


def test_a_possible_rename_is_told_and_accepted(shop: Shop) -> None:
    renamed(shop)
    refused = shop("retry", "j", code=6).err
    assert "gone after an attempt: 'charge'; new: 'settle'" in refused
    assert "  stepwell retry j --accept  goes on" in refused
    shop("retry", "j", "--accept")
    assert shop.ledger() == ["charge", "settle"]
    shown = shop("show", "j").out
    assert "no longer in the workflow: charge COMPLETED" in shown
    assert list(statuses(shop, "j")) == ["settle", "last"]


def test_a_frozen_run_does_not_follow_its_class(shop: Shop) -> None:
    renamed(shop)
    assert shop("freeze", "j").out == "run j keeps the graph it has, whatever becomes of its class\n"
    shop("retry", "j")
    assert shop.ledger() == ["charge"]


def test_a_doubt_pauses_an_unfinished_run_which_resume_takes_up_when_it_is_accepted(shop: Shop) -> None:
    shop.write("job.py", RENAMED.format(first="charge").replace('\\n")', '\\n"); import time; time.sleep(60)'))
    running = shop.start("run", "job:Job", "--run-id", "j")
    shop.until(lambda: "charge" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    shop.write("job.py", RENAMED.format(first="settle"))
    shop.touch("mended")
    refused = shop("resume", "j", code=6).err
    assert "run j is paused: is it a rename? gone after an attempt: 'charge'; new: 'settle'" in refused
    assert "  stepwell resume j --accept  goes on" in refused
    assert "PAUSED: a node renamed?" in shop("ls").out
    assert "is it a rename?" in shop("resume", "j", code=6).err
    shop("resume", "j", "--accept")
    assert shop.ledger() == ["charge", "settle"]


def test_accepting_beforehand_takes_up_an_unfinished_run_at_once(shop: Shop) -> None:
    renamed(shop)
    shop("freeze", "j")
    shop("retry", "j", "--no-wait")
    shop("resume", "j", "--accept")
    assert shop.ledger() == ["charge"]


def test_a_run_goes_on_with_an_edited_graph(shop: Shop) -> None:
    shop("run", "shop:fan", "-i", "width=3", "-i", "odd=1", "--run-id", "f", code=1)
    form = shop("graph", "f", "--frozen").json
    broken = next(node for node in form["nodes"].values() if node["name"] == "part_1")
    broken["args"]["odd"] = None
    shop.write("edited.json", json.dumps(form))
    imported = shop("import", "f", "edited.json")
    assert imported.out == (
        "run f goes on with the graph of edited.json: 4 nodes (the same nodes, otherwise connected or with other options)\n"
        "its code or arguments are new to the run: allow their modules where it is worked on, with --jobs or `jobs`\n"
    )
    assert "  stepwell retry f           runs what did not complete\n" in imported.err
    assert shop("import", "f", "-", stdin=json.dumps(form)).out == "run f has this graph already, and keeps it\n"
    assert shop("retry", "f", "--jobs", "shop").json == 3
    assert sorted(shop.ledger()) == ["part 0", "part 1", "part 1", "part 2"]


def test_an_import_tells_everything_that_is_wrong_at_once(shop: Shop) -> None:
    shop("run", "shop:fan", "-i", "width=200", "-i", "odd=1", "--run-id", "f", code=1)
    form = shop("graph", "f", "--frozen").json
    before = entries(shop, "f")
    for node in form["nodes"].values():
        node["args"]["odd"] = 7
    refused = shop("import", "f", "-", stdin=json.dumps(form), code=2).err
    assert refused.startswith("error: -: 199 problems; nothing was changed\n  - $.nodes.")
    assert refused.count("has completed, so its args cannot change") == 199
    assert "1 problem; nothing was changed\n  - $: it is not JSON" in shop("import", "f", "-", stdin="{", code=2).err
    assert "there.json: it cannot be read" in shop("import", "f", "there.json", code=2).err
    assert entries(shop, "f") == before


def test_a_command_that_follows_a_healed_run_shows_its_new_nodes(shop: Shop) -> None:
    shop.write("job.py", RENAMED.format(first="charge"))
    shop("run", "job:Job", "--run-id", "j", code=1)
    shop.write("job.py", RENAMED.format(first="charge") + "    @step\n    def more(self): return 'more'\n")
    shop.touch("mended")
    ended = shop("retry", "j")
    assert ended.json == "more"
    assert "3 completed" in ended.err
