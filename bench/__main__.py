"""`python -m bench [CASE ...]`: run the benchmarks, print the table, write RESULTS.md when all of them ran."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import tempfile
from pathlib import Path

import apsw
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from .cases import CASES
from .rows import Row

RESULTS = Path(__file__).with_name("RESULTS.md")
PEERS = """
For scale, measured on such a machine by others of us: DBOS on SQLite 3.9 ms a node in a chain and 4 to 6 ms in a fan,
LangGraph with its SQLite checkpointer 2.3 and 2.7 ms (growing with width), a bare commit with FULL 0.29 ms.
"""
_VERDICTS = {True: "[green]met[/]", False: "[red]not met[/]", None: "reported"}
_VERDICTS_IN_MARKDOWN = {True: "met", False: "**not met**", None: "reported"}


def main(chosen: list[str]) -> int:
    unknown = set(chosen) - CASES.keys()
    if unknown:
        print(f"no case {', '.join(sorted(unknown))}; there are: {', '.join(CASES)}", file=sys.stderr)
        return 2
    console = Console()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder, Progress(console=console) as progress:
        task = progress.add_task("benchmarks", total=len(chosen or CASES))
        for name in chosen or CASES:
            progress.update(task, description=name)
            case = Path(folder) / name
            case.mkdir()
            rows += CASES[name](case)
            progress.advance(task)
    console.print(_table(rows))
    if not chosen:
        RESULTS.write_text(_document(rows), "utf-8")
        console.print(f"written to {RESULTS.name}")
    return 1 if any(row.met is False for row in rows) else 0


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"


def _table(rows: list[Row]) -> Table:
    table = Table(title=f"Stepwell, {_machine()}")
    for column in ("work", "bar", "measured", ""):
        table.add_column(column)
    for row in rows:
        table.add_row(row.work, row.bar, row.measured, _VERDICTS[row.met])
    return table


def _document(rows: list[Row]) -> str:
    lines = [f"| {row.work} | {row.bar} | {row.measured} | {_VERDICTS_IN_MARKDOWN[row.met]} |" for row in rows]
    head = ["| work | bar | measured | |", "|---|---|---|---|"]
    today = datetime.datetime.now(datetime.UTC).date()
    return f"# Benchmarks\n\n`make bench`, {today}, {_machine()}.\n\n" + "\n".join(head + lines) + "\n" + PEERS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
