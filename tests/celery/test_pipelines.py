"""Celery workers make the states of a pipeline that a scanner elsewhere has found stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.celery import states
from tests.pipeline.blog import write
from tests.servers.fleet import Fleet


def test_a_worker_makes_what_a_scanner_elsewhere_found_stale(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    monkeypatch.setenv("STATES_ROOT", str(root))
    for number in range(20):
        write(root, f"in/{number}.txt", f"text {number}")
    worker = fleet.worker("tests.celery.states", processes=1)
    with fleet.engine() as engine:
        report = states.make(root).build(engine=engine)
        assert len(report.produced) == 40, (report, worker.said)
        assert states.make(root).build(engine=engine).produced == ()
        write(root, "in/7.txt", "another")
        assert set(states.make(root).build(engine=engine).produced) == {"upper 7", "pids 7"}
    made = [(root / f"pids/{number}").read_text().rpartition(" ") for number in range(20)]
    assert {int(pid) for _, _, pid in made} <= set(worker.children)
    assert made[7][0] == "ANOTHER"
