"""Every example may be killed in the middle: the same command, or the command line, takes it to the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell.engine import NodeView
from tests.examples.conftest import Ended, Scheduler, until, until_in_time
from tests.examples.test_examples import LINES
from tests.forking.template import Template


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("orders", "enrich"),
        ("orders", "pack"),
        ("deploy", "activate"),
        ("report", "fetch_1"),
        ("report", "estimate"),
    ],
)
def test_a_killed_example_goes_on_with_the_same_command(
    tmp_path: Path, utf8_template: Template, name: str, node: str
) -> None:
    run_id, lines = LINES[name]

    def story(scheduler: Scheduler) -> None:
        running = scheduler.start(f"exec python -m examples.{name} runs.db")
        scheduler.kill_while(running, "runs.db", run_id=run_id, node=node)
        before = scheduler.look("runs.db", run_id)
        again = scheduler(f"python -m examples.{name} runs.db", code=None)
        if name == "orders" and before["charge"].status == "RUNNING":
            assert again.code == 1, again
            assert "charge was interrupted" in again.err
            scheduler("stepwell --store sqlite:///runs.db retry order-7")
            again = scheduler(f"python -m examples.{name} runs.db")
        assert again.code == 0, again
        assert lines[-1] in again.out
        after = scheduler.look("runs.db", run_id)
        assert [each for each in before if was_repeated(before[each], after.get(each))] == []

    until_in_time(tmp_path, utf8_template, story)


def was_repeated(before: NodeView, after: NodeView | None) -> bool:
    """A node that had completed has more attempts than it had."""
    return before.status == "COMPLETED" and after is not None and after.attempts != before.attempts


@pytest.mark.parametrize("completed", [0, 1, 50, 150])
@pytest.mark.parametrize("name", ["mutations", "repair"])
def test_an_example_of_quick_nodes_may_be_killed_anywhere(scheduler: Scheduler, name: str, completed: int) -> None:
    run_id, lines = LINES[name]
    running = scheduler.start(f"exec python -m examples.{name} runs.db")

    def so_many() -> bool:
        nodes = scheduler.look("runs.db", run_id)
        return bool(nodes) and sum(node.status == "COMPLETED" for node in nodes.values()) >= completed

    until(lambda: running.poll() is not None or so_many())
    scheduler.kill(running)
    again = go_on(scheduler, f"python -m examples.{name} runs.db")
    # Of the one that is tried twice an attempt may have been lost besides.
    assert lines[-1].split(":")[0].split(" with ")[0] in again.out
    nodes = scheduler.look("runs.db", run_id)
    assert {node.status for node in nodes.values()} == {"COMPLETED"}
    if name == "mutations":
        assert (scheduler.folder / "report.txt").read_text() == "".join(
            f"{line}\n" for line in ("TP53 49 0.454", "KRAS 50 0.35", "EGFR 50 0.302", "PTEN 50 0.253", "BRCA2 1 0.121")
        )


def go_on(scheduler: Scheduler, command: str) -> Ended:
    """The same command again, at once: also what a process left that was killed inside `run.retry()` need not be waited for."""
    ended = scheduler.end(scheduler.start(command))
    assert ended.code == 0, ended
    return ended


def test_a_report_killed_in_its_sum_is_resumed_by_the_command_line(tmp_path: Path, utf8_template: Template) -> None:
    """What the shops said is there: nobody is asked again."""

    def story(scheduler: Scheduler) -> None:
        running = scheduler.start("exec python -m examples.report runs.db")
        scheduler.kill_while(running, "runs.db", run_id="nightly-2026-01-15", node="estimate")
        before = scheduler.look("runs.db", "nightly-2026-01-15")
        ended = scheduler("stepwell --store sqlite:///runs.db resume nightly-2026-01-15")
        assert ended.out == '"2026-01-15: 1244 a shop, between 1204 and 1284"\n'
        after = scheduler.look("runs.db", "nightly-2026-01-15")
        fetched = [name for name in before if name.startswith("fetch_")]
        assert len(fetched) == 50
        assert {name: after[name] for name in fetched} == {name: before[name] for name in fetched}
        assert [attempt.status for attempt in after["estimate"].attempts] == ["LOST", "COMPLETED"]

    until_in_time(tmp_path, utf8_template, story)
