"""Every example runs as it says, as a module and by the command line, and the same command again is the same runs."""

from __future__ import annotations

import json

import pytest

from tests.examples.conftest import Scheduler

LINES = {
    "orders": ("order-7", ["book_carrier     COMPLETED  attempts: 3", "'paid': 32800, 'pieces': 3}"]),
    "mutations": ("mutations-1", ["mutations with 1 attempt: 199", "mutations with 2 attempts: 1"]),
    "deploy": ("ada", ["SKIPPED (healed_late)", "CANCELLED (removed)", "billed once, under the key ada:charge"]),
    "repair": ("pay-1", ["pay_london failed for good", "London was paid by the bank of leeds"]),
    "report": ("nightly-2026-01-15", ["2026-01-15: 1244 a shop, between 1204 and 1284"]),
}
"""By example: a run it starts, and what its output must tell."""

TARGETS = [
    ("examples.orders:OrderWorkflow --input order_id=7", 0),
    ("examples.orders:OrderWorkflow --input order_id=0", 1),
    ("examples.mutations:mutations", 1),
    ("examples.deploy:Onboarding --input customer=ada", 0),
    ("examples.repair:Payroll --input month=2026-01", 6),
    ("examples.report:nightly", 0),
]


@pytest.mark.parametrize("name", LINES)
def test_an_example_runs_on_a_temporary_file_and_leaves_nothing_behind(scheduler: Scheduler, name: str) -> None:
    ended = scheduler(f"python -m examples.{name}")
    assert [line for line in LINES[name][1] if line not in ended.out] == [], ended
    assert list(scheduler.folder.iterdir()) == []


@pytest.mark.parametrize("name", LINES)
def test_the_same_command_again_is_the_same_runs(scheduler: Scheduler, name: str) -> None:
    run_id, _ = LINES[name]
    scheduler(f"python -m examples.{name} runs.db")
    first = scheduler.look("runs.db", run_id)
    assert {node.status for node in first.values()} <= {"COMPLETED", "SKIPPED"}
    again = scheduler(f"python -m examples.{name} runs.db")
    assert scheduler.look("runs.db", run_id) == first
    assert LINES[name][1][-1] in again.out


@pytest.mark.parametrize(("target", "code"), TARGETS)
def test_the_workflow_of_an_example_runs_by_the_command_line(scheduler: Scheduler, target: str, code: int) -> None:
    scheduler(f"stepwell run {target} --run-id it", code=code)
    assert json.loads(scheduler("stepwell show it --json").out)["id"] == "it"
    assert "every invariant holds" in scheduler("stepwell audit it").out


def test_many_more_fetches_are_under_way_than_there_are_threads(scheduler: Scheduler) -> None:
    told = scheduler("python -m examples.report").out.splitlines()[-1]
    assert int(told.removeprefix("requests under way at once: ")) > 8
