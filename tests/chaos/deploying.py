"""Two versions of one module in two folders, and worker processes that serve one or the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from stepwell import Engine, Run
from stepwell.base.codec import decode
from stepwell.core.store import reader
from tests.engine.ledger import noted
from tests.engine.waiting import eventually

HEAD = """
import os, time
from pathlib import Path
from stepwell import Engine, Workflow, step

def enter(run, node):
    descriptor = os.open("../ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{run} {node} {os.getpid()}\\n".encode())
    os.close(descriptor)

def wait_for(file):
    while not Path("..", file).exists():
        time.sleep(0.005)

class Orders(Workflow):
    @step
    def take(self, ctx):
        enter(ctx.run_id, "take")
    @step
    def charge(self, ctx):
        enter(ctx.run_id, "charge")
        wait_for("go")
"""
SHIP = """
    @step
    def ship(self, ctx):
        wait_for("ship")
        enter(ctx.run_id, "ship")
"""
THANK = """
    @step
    def thank(self, ctx):
        enter(ctx.run_id, "thank")
"""
OLD, NEW = HEAD + SHIP, HEAD + THANK + SHIP


class Worker:
    """A `stepwell work` process in the folder of one version."""

    def __init__(self, folder: Path, url: str, *, lease_seconds: float) -> None:
        self._said = (folder / f"stderr-{os.urandom(4).hex()}").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stepwell", "work", "orders", "--store", url],
            cwd=folder,
            env=os.environ | {"STEPWELL_LEASE_SECONDS": str(lease_seconds), "STEPWELL_MAX_CONCURRENT_NODES": "4"},
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def printed(self) -> str:
        self._said.flush()
        return Path(self._said.name).read_text()

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.alive:
            os.kill(self.pid, number)
            self.process.wait(60)

    def close(self) -> None:
        self.kill()
        self._said.close()


class Site:
    """One store, two versions of the code, what bodies did, and files that bodies wait for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/stepwell.db"
        self._workers: list[Worker] = []
        for version, text in (("old", OLD), ("new", NEW)):
            (folder / version).mkdir()
            (folder / version / "orders.py").write_text(text)

    def start(self, number: int) -> list[str]:
        """Start runs of the older version; nobody works on them yet."""
        code = (
            "import sys; from orders import Engine, Orders\n"
            "with Engine(sys.argv[1], runner=None) as engine:\n"
            "    print(*(run.id for run in engine.start_many([Orders()] * int(sys.argv[2]))))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.url, str(number)],
            cwd=self.folder / "old",
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return done.stdout.split()

    def work(self, version: str, *, lease_seconds: float = 30) -> Worker:
        worker = Worker(self.folder / version, self.url, lease_seconds=lease_seconds)
        self._workers.append(worker)
        return worker

    def let(self, file: str) -> None:
        (self.folder / file).touch()

    def entries(self) -> list[tuple[str, str, int]]:
        """(run, node, pid) of every body that began, in order."""
        found = (line.split() for line in noted(self.folder / "ledger"))
        return [(run, node, int(pid)) for run, node, pid in found]

    def bodies(self) -> Counter[tuple[str, str]]:
        return Counter((run, node) for run, node, _ in self.entries())

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


def served_by(engine: Engine) -> dict[int, list[str]]:
    """By pid: which workflows the workers say they have."""
    infos = [decode(worker.info) for worker in reader.list_workers(engine.store)]
    return {info["pid"]: [name for name, _ in info["serves"]] for info in infos}


def wait_for_heals(runs: list[Run], heals: int) -> None:
    eventually(
        lambda: all(run.row.heals == heals and run.row.purpose is None for run in runs),
        seconds=90,
        show=lambda: Counter((run.row.heals, str(run.row.status), run.row.purpose) for run in runs),
    )


def check_ended(runs: list[Run], heals: int) -> None:
    """Every run completed, was healed exactly so often, and holds together."""
    eventually(
        lambda: all(run.status == "COMPLETED" for run in runs),
        seconds=90,
        show=lambda: Counter(str(run.status) for run in runs),
    )
    for run in runs:
        journal = reader.list_journal(run._parts.store, run.id)
        assert [entry.kind for entry in journal].count("healed") == run.row.heals == heals
        assert run.audit() == []
