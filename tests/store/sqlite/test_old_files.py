"""Files that older versions wrote are read as they were meant: numbers that stand for statuses never change their meaning."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepwell.clock import ManualClock
from stepwell.model import AttemptStatus, GateState, NodeStatus, RunStatus
from stepwell.store import Store, reader
from stepwell.store.rules.codes import ATTEMPT_CODE, ENDS, GATE_CODE, KIND_CODE, NODE_CODE, RUN_CODE
from stepwell.store.sqlite import SqliteStore
from stepwell.testing.audit import audit
from stepwell.testing.ops import claim, completed, create, enlist, sweep

FILES = Path(__file__).with_name("files")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that version 0.1 wrote, with schema 1: runs of all kinds, as they stood in `version-1.json`."""
    return Path(shutil.copy(FILES / "version-1.db", tmp_path / "old.db"))


def test_a_file_of_the_first_schema_reads_as_it_was_written(old: Path) -> None:
    store = SqliteStore(old)
    assert as_data(store) == json.loads((FILES / "version-1.json").read_text())
    audit(store)
    store.close()


def test_what_a_file_of_the_first_schema_left_undone_goes_on(old: Path) -> None:
    store = SqliteStore(old, clock=ManualClock(2**51))  # in the year 2041
    enlist(store)
    assert claim(store) == ()  # what is left was due an hour later, or is paused
    assert sweep(store).woken == 1
    (grant,) = claim(store, serves=[("Retrying", reader.require_run(store, "waiting").digest)])
    assert (grant.run_id, grant.number) == ("waiting", 2)
    store.commit([completed(grant)])
    assert reader.require_run(store, "waiting").status is RunStatus.COMPLETED
    audit(store)
    store.close()


def test_a_key_of_the_first_schema_still_names_its_run(old: Path) -> None:
    store = SqliteStore(old)
    row = reader.require_run(store, "dynamic")
    op = create(_Digest(row.digest), "another", workflow=row.workflow, input=row.input, idempotency_key="k-1")
    (receipt,) = store.commit([op])
    assert (receipt.run_id, receipt.existed) == ("dynamic", True)  # type: ignore[union-attr]
    store.close()


class _Digest:
    def __init__(self, digest: str) -> None:
        self.digest = digest


def as_data(store: Store) -> dict[str, Any]:
    runs = {
        row.id: {
            "status": row.status,
            "nodes": {node.id: [node.status, node.attempt] for node in reader.all_nodes(store, row.id)},
            "attempts": [[each.index, each.number, each.status] for each in reader.list_attempts(store, row.id)],
            "journal": [
                [entry.seq, entry.kind, entry.index, entry.attempt, entry.status]
                for entry in reader.list_journal(store, row.id)
            ],
        }
        for row in reader.all_runs(store)
    }
    return json.loads(json.dumps(runs))  # type: ignore[no-any-return]


def test_the_numbers_in_files_are_frozen() -> None:
    """A line that fails here would make every file there is be misread. New names get new numbers, at the end."""
    assert {str(status): code for status, code in RUN_CODE.items()} == {
        "PENDING": 0,
        "RUNNING": 1,
        "PAUSED": 2,
        "CANCELLING": 3,
        "COMPLETED": 4,
        "FAILED": 5,
        "CANCELLED": 6,
    }
    assert {str(status): code for status, code in NODE_CODE.items()} == {
        "PENDING": 0,
        "READY": 1,
        "RUNNING": 2,
        "WAITING": 3,
        "COMPLETED": 4,
        "FAILED": 5,
        "UPSTREAM_FAILED": 6,
        "SKIPPED": 7,
        "CANCELLED": 8,
        "INTERRUPTED": 9,
    }
    assert {str(status): code for status, code in ATTEMPT_CODE.items()} == {
        "RUNNING": 0,
        "COMPLETED": 1,
        "FAILED": 2,
        "TIMED_OUT": 3,
        "LOST": 4,
        "RELEASED": 5,
        "CANCELLED": 6,
        "SUPERSEDED": 7,
    }
    assert {str(state): code for state, code in GATE_CODE.items()} == {"OPEN": 0, "HELD": 1, "SHUT": 2}
    names = "created claimed completed failed timed_out lost released cancelled superseded woken rewrote gate run healed shared"
    assert {name: code for code, name in enumerate(names.split())} == KIND_CODE


def test_every_status_has_a_number_of_its_own() -> None:
    for codes, known in (
        (RUN_CODE, RunStatus),
        (NODE_CODE, NodeStatus),
        (ATTEMPT_CODE, AttemptStatus),
        (GATE_CODE, GateState),
    ):
        assert set(codes) == set(known)
        assert len(set(codes.values())) == len(codes)
    assert len(set(KIND_CODE.values())) == len(KIND_CODE)
    for status in set(AttemptStatus) - {AttemptStatus.RUNNING}:
        assert KIND_CODE[status.lower()] == ATTEMPT_CODE[status] + ENDS
