"""A run whose worker was killed goes on elsewhere; what its journal tells is what is stored, and it can be replayed."""

from __future__ import annotations

import os
import signal

import pytest

from stepwell import Engine
from stepwell.base.codec import encode
from stepwell.core.kernel.audit import fold
from stepwell.core.model import AttemptStatus
from stepwell.core.store import reader
from tests.chaos import replaying, work
from tests.chaos.conftest import StartChild
from tests.conformance.audit import audit
from tests.engine.ledger import noted
from tests.engine.waiting import eventually


@pytest.fixture
def killed(url: str, ledger: str, start_child: StartChild) -> str:
    """The id of a run that a worker was killed with and another has completed."""
    with Engine(url, runner=None) as starter:
        run = starter.start(replaying.workflow(ledger))
        child = start_child(work.serve, url)
        eventually(lambda: "waiting" in noted(ledger), seconds=60)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    with Engine(url) as engine:
        engine.adopt(run.id).wait(100).check()
    return run.id


def test_the_journal_of_a_killed_and_resumed_run_folds_to_the_stored_rows_byte_for_byte(url: str, killed: str) -> None:
    with Engine(url, runner=None) as engine:
        run = engine.get(killed)
        rows, attempts = reader.all_nodes(engine.store, run.id), reader.list_attempts(engine.store, run.id)
        assert AttemptStatus.LOST in {attempt.status for attempt in attempts}, "it was really killed"
        folded = fold(run.graph, reader.list_journal(engine.store, run.id))
        assert folded.problems == []
        told = [[index, status] for index, status in enumerate(folded.nodes)]
        assert encode(told) == encode([[row.index, row.status] for row in rows])
        told = [[*place, status] for place, status in sorted(folded.attempts.items())]
        assert encode(told) == encode([[row.index, row.number, row.status] for row in attempts])
        audit(engine.store)


def test_it_is_replayed_and_its_checkpoints_are_there(url: str, killed: str) -> None:
    with Engine(url, runner=None) as engine:
        run = engine.get(killed)
        report = run.replay()
        assert (len(report.executed), report.effects) == (25, 25)
        assert [label.label for label in run.checkpoints()] == ["at 0", "at 10", "at 20"]
        assert len(run.checkpoint("at 20").effects) == 21 * 2, (
            "what was asked and when, of each; nothing of the lost attempt"
        )
