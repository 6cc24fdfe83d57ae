"""The page about child runs: its program prints what stands below it, and its table is what the kernel does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from stepwell.base.ids import Digest, RunId
from stepwell.core.kernel.children import told_children
from stepwell.core.kernel.plans import NotNow, Plan
from stepwell.core.model import PARENT_PAUSED, Finish, GateState, NodeChange, NodeStatus, RunRow, RunStatus

PAGE = (Path(__file__).parents[2] / "docs" / "child-runs.md").read_text("utf-8")
RUN = RunRow(
    RunId("r"), "w", None, Digest("d"), RunStatus.RUNNING, "fail_fast", b"{}", 1, 0, None, GateState.HELD, None, False,
    1, 1, 1, 0, 1, 0, 0, None, None, None,
)  # fmt: skip
COLUMNS = {
    "a child that runs": [(RunStatus.RUNNING, None), (RunStatus.PENDING, None)],
    "PAUSED by itself": [(RunStatus.PAUSED, "paused"), (RunStatus.PAUSED, "node_failed")],
    "PAUSED with its parent": [(RunStatus.PAUSED, PARENT_PAUSED)],
    "CANCELLING": [(RunStatus.CANCELLING, None)],
    "COMPLETED": [(RunStatus.COMPLETED, None)],
    "FAILED or CANCELLED": [(RunStatus.FAILED, None), (RunStatus.CANCELLED, None)],
}
AGAIN = [NodeChange(0, NodeStatus.FAILED, 2, NodeStatus.PENDING, fresh=True)]
ROWS: dict[str, tuple[str, RunStatus, Plan, frozenset[int]]] = {
    "fails, or passes its deadline": (
        "failed",
        RunStatus.RUNNING,
        Plan([], Finish(RunStatus.FAILED, False)),
        frozenset(),
    ),
    "is cancelled": ("cancel", RunStatus.RUNNING, Plan([], Finish(RunStatus.CANCELLING, False)), frozenset()),
    "is paused": ("pause", RunStatus.RUNNING, Plan([], Finish(RunStatus.PAUSED, False)), frozenset()),
    "is resumed": ("resume", RunStatus.PAUSED, Plan([], Finish(RunStatus.RUNNING, True)), frozenset()),
    "is retried": ("retry", RunStatus.FAILED, Plan(AGAIN, Finish(RunStatus.RUNNING, True)), frozenset()),
    "loses the node by a heal": ("heal", RunStatus.RUNNING, Plan([], Finish(RunStatus.RUNNING, True)), frozenset({0})),
}


def told(row: str, status: RunStatus, reason: str | None) -> str:
    purpose, was, plan, removed = ROWS[row]
    child = RUN._replace(id=RunId("r.c"), status=status, reason=reason, parent=RUN.id, parent_node=0)
    answer: Any = told_children(purpose, RUN._replace(status=was), plan, [child], removed)
    if isinstance(answer, NotNow):
        return "refused"
    return answer[0].verb if answer else "–"


def test_the_table_is_what_the_kernel_does() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    header, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    assert header[1:] == list(COLUMNS)
    assert [re.sub(r"\[(\w+)\]\([^)]*\)", r"\1", row[0]) for row in rows] == list(ROWS)
    for name, row in zip(ROWS, rows, strict=True):
        for cell, states in zip(row[1:], COLUMNS.values(), strict=True):
            assert {told(name, *state) for state in states} == {cell}, (name, states)


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    ((code, text),) = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    program = tmp_path / "page.py"
    program.write_text(code, "utf-8")
    printed = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed == text
