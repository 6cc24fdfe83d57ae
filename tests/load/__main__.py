"""`python -m tests.load [CASE ...]`: large shapes on a real file; what they take, and that every promise still holds."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from stepwell.core.model import RunStatus
from stepwell.core.store import reader
from stepwell.engine.reports.audit import audit_run
from stepwell.stores.sqlite import SqliteStore

from .load_cases import CASES, MIB

SAMPLE = 100
"""How many runs of a case are audited; each at its full size."""


class Measured(NamedTuple):
    seconds: float
    begun: int
    """Memory when everything was started,"""
    peak: int
    """and at its peak."""
    size: int
    problems: list[str]


def measure(name: str, folder: Path) -> Measured:
    path = folder / f"{name}.db"
    command = [sys.executable, "-m", "tests.load.load_cases", name, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = _peak_memory(process)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        return Measured(0.0, 0, peak, 0, [f"the process ended with {process.returncode}"])
    seconds, begun = said.split()
    problems = []
    if peak > CASES[name].megabytes * MIB:
        problems.append(f"more than {CASES[name].megabytes} MiB of memory")
    if peak - int(begun) > CASES[name].growth * MIB:
        problems.append(f"memory grew by more than {CASES[name].growth} MiB")
    return Measured(float(seconds), int(begun), peak, path.stat().st_size, problems + audited(name, path))


def _peak_memory(process: subprocess.Popen[str]) -> int:
    watched, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss)
        except psutil.Error:
            break
        time.sleep(0.02)
    process.wait()
    return peak


def audited(name: str, path: Path) -> list[str]:
    """What is wrong with what is stored: with how much there is of it, and with a sample of the runs."""
    store = SqliteStore(path)
    runs = list(reader.all_runs(store))
    nodes = sum(run.nodes for run in runs)
    problems = [f"{run.id} is {run.status}" for run in runs if run.status is not RunStatus.COMPLETED]
    problems += [] if nodes == CASES[name].nodes else [f"{nodes} nodes instead of {CASES[name].nodes}"]
    for run in random.Random(0).sample(runs, min(SAMPLE, len(runs))):
        problems += [f"{run.id}: {problem}" for problem in audit_run(store, run.id)]
    store.close()
    return problems


def main(chosen: list[str]) -> int:
    unknown = set(chosen) - CASES.keys()
    if unknown:
        print(f"no case {', '.join(sorted(unknown))}; there are: {', '.join(CASES)}", file=sys.stderr)
        return 2
    table = Table("work", title="Stepwell under load")
    for column in ("seconds", "nodes/s", "begun MiB", "peak MiB", "file MiB", "bytes/node"):
        table.add_column(column, justify="right")
    table.add_column("audit")
    failed = False
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".load-") as folder:
        for name in chosen or CASES:
            case, found = CASES[name], measure(name, Path(folder))
            failed = failed or bool(found.problems)
            table.add_row(
                case.title,
                f"{found.seconds:.2f}",
                f"{case.nodes / found.seconds:,.0f}" if found.seconds else "",
                f"{found.begun / MIB:.0f}",
                f"{found.peak / MIB:.0f} of {case.megabytes}",
                f"{found.size / MIB:.1f}",
                f"{found.size / case.nodes:,.0f}",
                "; ".join(found.problems[:5]) or "holds",
            )
    Console().print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
