"""A cancel reaches the bodies of a run in another process within half a second of the call."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stepwell import Builder, Engine
from tests.chaos import work
from tests.chaos.conftest import StartChild
from tests.engine.ledger import noted
from tests.engine.waiting import eventually, in_time


@pytest.mark.parametrize("job", [work.stop_when_told, work.stop_on_the_loop])
def test_bodies_of_another_process_are_told_within_half_a_second(
    tmp_path: Path, url: str, start_child: StartChild, job: object
) -> None:
    began, stopped = tmp_path / "began", tmp_path / "stopped"
    w = Builder("elsewhere")
    w.fan_out(
        range(3), job=job, args=lambda _: {"began": str(began), "stopped": str(stopped)}, depends_on=None
    )  # several bodies: none of them may be forgotten
    with Engine(url, runner=None) as asks:
        start_child(work.serve, url)

        def seconds() -> float:
            for ledger in (began, stopped):
                ledger.unlink(missing_ok=True)
            run = asks.start(w)
            eventually(lambda: len(noted(began)) == 3, "the bodies never began")
            before = time.monotonic()
            run.cancel(grace_seconds=60)
            eventually(lambda: len(noted(stopped)) == 3, "the bodies were never told", show=lambda: noted(stopped))
            assert run.wait(30).status == "CANCELLED"
            assert run.audit() == []
            return max(map(float, noted(stopped))) - before

        in_time(0.5, seconds)
