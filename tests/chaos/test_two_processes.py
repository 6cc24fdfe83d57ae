"""Two processes on one file: both make progress, and everything is done once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import noted
from tests.engine.waiting import eventually

SHARED, OWN = 200, 20


def test_two_processes_share_the_runs_of_one_file(
    tmp_path: Path, url: str, ledger: str, start_child: StartChild
) -> None:
    done = tmp_path / "done"
    w = Builder("shared")
    w.node("first", job=work.together, args={"ledger": ledger})
    w.node("second", job=work.small, args={"ledger": ledger})
    with Engine(url, runner=None) as looking:
        looking.start_many([w] * SHARED)
        children = [start_child(work.serve_until_done, url, OWN, ledger, str(done)) for _ in range(2)]
        total = SHARED + 2 * OWN
        eventually(lambda: len(looking.runs(limit=1_000, status="COMPLETED")) == total, seconds=60)
        done.touch()
        for child in children:
            child.join(30)
            assert child.exitcode == 0
        entries: Counter[tuple[str, str]] = Counter()
        workers: set[str] = set()
        for line in noted(ledger):
            run, node, pid = line.split()
            entries[run, node] += 1
            workers.add(pid)
        assert len(entries) == 2 * total
        assert set(entries.values()) == {1}, "no worker died, so no body ran twice"
        assert workers == {str(child.pid) for child in children}
        audit(looking.store)


def test_a_process_that_is_killed_leaves_its_share_to_the_other(
    tmp_path: Path, url: str, ledger: str, start_child: StartChild
) -> None:
    w = Builder("shared")
    w.fan_out(range(20), job=work.slower, args=lambda _: {"ledger": ledger})
    with Engine(url, runner=None) as looking:
        looking.start_many([w] * 30)

        def all_done() -> bool:
            return len(looking.runs(limit=100, status="COMPLETED")) == 30

        def has_worked(pid: int | None) -> bool:
            return any(line.endswith(f" {pid}") for line in noted(ledger))

        survivor, killed = start_child(work.serve, url, max_concurrent_nodes=2), 0
        while killed < 4:
            victim = start_child(work.serve, url, max_concurrent_nodes=2)
            eventually(lambda victim=victim: has_worked(victim.pid) or all_done(), seconds=60)
            if all_done():  # the survivor was faster than this one began
                break
            victim.kill()
            victim.join()
            killed += 1
        eventually(all_done, seconds=60)
        assert survivor.is_alive()
        assert killed
        assert len({tuple(line.split()[:2]) for line in noted(ledger)}) == 600
        audit(looking.store)
