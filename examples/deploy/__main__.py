"""Deploys version 1, kills it half way, deploys version 2, and shows what became of the runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.common import database
from stepwell import Engine, Run, RunNotFound

HERE = Path(__file__).parent
CUSTOMERS = ["ada", "grace"]


def deploy(version: str, path: Path) -> subprocess.Popen[bytes]:
    """Put a version of the service where the other one was, and start it as a process."""
    shutil.copy(HERE / f"{version}.py", path.parent / "onboarding.py")
    command = [sys.executable, "-m", "onboarding", f"sqlite:///{path}", *CUSTOMERS]
    return subprocess.Popen(command, cwd=path.parent)


def half_way(engine: Engine) -> bool:
    """Ada was charged and waits for her account; grace has not answered the mail."""
    try:
        found = [engine.get(name).node(node).status for name, node in (("ada", "activate"), ("grace", "confirm"))]
    except RunNotFound:
        return False
    return found == ["RUNNING", "RUNNING"]


def statuses(run: Run) -> dict[str, str]:
    """By node, also those that only an earlier version had."""
    return {
        node.name: f"{node.status} ({node.reason})" if node.reason else str(node.status)
        for node in run.nodes(removed=True)
    }


def show(run: Run, before: dict[str, str]) -> None:
    table = Table("node", "when version 1 was killed", "when version 2 was done", title=run.id)
    for node, status in statuses(run).items():
        names = [node, *run.graph.nodes[node].was] if node in run.graph.nodes else [node]
        table.add_row(", was ".join(names), next((before[name] for name in names if name in before), "-"), status)
    Console(width=100).print(table)


def main() -> None:
    with database() as path, Engine(f"sqlite:///{path}", runner=None) as engine:
        no_answer = path.parent / "no-answer-of-grace"
        no_answer.touch()
        service = deploy("version_1", path)
        while service.poll() is None and not half_way(engine):
            time.sleep(0.02)
        service.kill()
        service.wait()
        before = {name: statuses(engine.get(name)) for name in CUSTOMERS}

        no_answer.unlink()
        deploy("version_2", path).wait()
        for name in CUSTOMERS:
            show(engine.get(name), before[name])
        run = engine.get("ada")
        print(run.why("check_address"), run.why("activate"), sep="\n")
        print("billed once, under the key", run.output("bill"))


if __name__ == "__main__":
    main()
