"""The auditor finds every contradiction between the rows of a run, and none in a run that is sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepwell.core.graph import Graph
from stepwell.core.kernel.audit import Stored, audit, earlier_graphs, fold
from stepwell.core.kernel.healing import arrange
from stepwell.core.kernel.plans import failed as plan_failure
from stepwell.core.model import AttemptStatus, GateState, JournalRow, NodeStatus, RunStatus
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from tests.conformance.ops import RUN, by_name, claim, completed, enlist, failed, finish, graph, hold, retried, start

OF = graph(a="", b="a", c="b", w="a")


def read(store: Store, of: Graph = OF) -> Stored:
    return Stored(
        reader.require_run(store, RUN),
        of,
        list(reader.all_nodes(store, RUN)),
        list(reader.list_attempts(store, RUN)),
        list(reader.list_journal(store, RUN)),
    )


@pytest.fixture
def running() -> Stored:
    """a has completed, b runs, c waits for it, w waits for its next attempt."""
    store = MemoryStore()
    start(store, OF)
    enlist(store)
    store.commit([completed(*claim(store))])
    held = by_name(OF, claim(store))
    store.commit([retried(held["w"], 60)])
    return read(store)


@pytest.fixture
def done() -> Stored:
    store = MemoryStore()
    start(store, OF)
    enlist(store)
    while grants := claim(store):
        store.commit([completed(grant) for grant in grants])
    return read(store)


@pytest.fixture
def broken() -> Stored:
    """b failed for good, c cannot run."""
    store = MemoryStore()
    of = graph(a="", b="a", c="b")
    start(store, of)
    enlist(store)
    store.commit([completed(*claim(store))])
    store.commit([failed(*claim(store))])
    hold(store, purpose="failed")
    rows = reader.all_nodes(store, RUN)
    plan = plan_failure(reader.require_run(store, RUN), rows, of.children)
    finish(store, RunStatus.FAILED, *plan.changes)
    return read(store, of)


def node(stored: Stored, name: str, **changes: Any) -> Stored:
    nodes = [row._replace(**changes) if row.id == name else row for row in stored.nodes]
    return stored._replace(nodes=nodes)


def attempt(stored: Stored, name: str, **changes: Any) -> Stored:
    index = stored.graph.index[name]
    attempts = [row._replace(**changes) if row.index == index else row for row in stored.attempts]
    return stored._replace(attempts=attempts)


def run(stored: Stored, **changes: Any) -> Stored:
    return stored._replace(run=stored.run._replace(**changes))


def told(stored: Stored, *entries: JournalRow, without: int = 0) -> Stored:
    """With other entries at the end of its journal, and the first so many left out."""
    journal = [*stored.journal[without:], *entries]
    return run(stored._replace(journal=journal), seq=stored.run.seq + len(entries))


def entry(stored: Stored, kind: str, name: str, number: int | None = None, status: str | None = None) -> JournalRow:
    return JournalRow(stored.run.seq + 1, 0, kind, stored.graph.index[name], number, status)


def test_sound_runs_have_no_problem(running: Stored, done: Stored, broken: Stored) -> None:
    assert [row.status for row in broken.nodes] == ["COMPLETED", "FAILED", "UPSTREAM_FAILED"]
    assert (audit(running), audit(done), audit(broken)) == ([], [], [])


Change = Callable[[Stored], Stored]
IN_A_RUNNING_RUN: list[tuple[str, Change]] = [
    ("a: attempts are not numbered 1 to 2", lambda s: node(s, "a", attempt=2)),
    ("a: attempts are not numbered 1 to 1", lambda s: attempt(s, "a", number=2)),
    ("b: it is READY and has 1 running attempts", lambda s: node(s, "b", status=NodeStatus.READY)),
    ("c: it is RUNNING and has 0 running attempts", lambda s: node(s, "c", status=NodeStatus.RUNNING)),
    ("c: it is COMPLETED and has 0 completed attempts", lambda s: node(s, "c", status=NodeStatus.COMPLETED)),
    ("a: it is FAILED and has 1 completed attempts", lambda s: node(s, "a", status=NodeStatus.FAILED)),
    ("w: it is WAITING and due at None", lambda s: node(s, "w", due_at=None)),
    ("b: it is RUNNING and due at 7", lambda s: node(s, "b", due_at=7)),
    ("b: 2 failures since it was asked for, more than its maximum", lambda s: node(s, "b", failures=2)),
    ("b: attempt 1 is RUNNING and ended at 7", lambda s: attempt(s, "b", ended_at=7)),
    ("a: attempt 1 is COMPLETED and ended at None", lambda s: attempt(s, "a", ended_at=None)),
    ("the run counts (4, 2, 0), its nodes say (3, 2, 0)", lambda s: run(s, open=4)),
    ("the run counts (3, 1, 0), its nodes say (3, 2, 0)", lambda s: run(s, active=1)),
    ("the run counts (3, 2, 1), its nodes say (3, 2, 0)", lambda s: run(s, failed=1)),
    ("c: it is READY before all its parents are", lambda s: node(s, "c", status=NodeStatus.READY)),
    ("c: it is RUNNING before all its parents are", lambda s: node(s, "c", status=NodeStatus.RUNNING)),
    ("b: all its parents are satisfied and it is still PENDING", lambda s: node(s, "b", status=NodeStatus.PENDING)),
    ("c: its counters are (0, 0), its parents say (1, 0)", lambda s: node(s, "c", waiting=0)),
    ("c: its counters are (1, 1), its parents say (1, 0)", lambda s: node(s, "c", skipped=1)),
    ("the run is COMPLETED and its gate is open", lambda s: run(s, status=RunStatus.COMPLETED)),
    ("the run is RUNNING and ended at 7", lambda s: run(s, ended_at=7)),
    ("a node failed for good and the gate is open", lambda s: run(s, failed=1)),
    ("the journal has", lambda s: run(s, seq=s.run.seq + 1)),
    ("the journal has", lambda s: told(s, without=1)),
    ("b: the journal says RUNNING, its row READY", lambda s: node(s, "b", status=NodeStatus.READY)),
    (
        "attempt 1 of node 0: the journal says COMPLETED, its row SUPERSEDED",
        lambda s: attempt(s, "a", status=AttemptStatus.SUPERSEDED),
    ),
    (
        "the journal tells of attempts without rows: [(0, 1)]",
        lambda s: s._replace(attempts=[row for row in s.attempts if row.index != 0]),
    ),
    ("was claimed at", lambda s: told(s, entry(s, "claimed", "c", 1))),
    ("before all its parents were satisfied", lambda s: told(s, entry(s, "claimed", "c", 1))),
    ("when it was RUNNING", lambda s: told(s, entry(s, "claimed", "b", 2))),
    ("ended at", lambda s: told(s, entry(s, "completed", "b", 2, "COMPLETED"))),
    ("and was not running", lambda s: told(s, entry(s, "completed", "a", 1, "COMPLETED"))),
    ("the run is neither loaded nor being loaded", lambda s: s._replace(nodes=s.nodes[1:])),
]


@pytest.mark.parametrize(("problem", "change"), IN_A_RUNNING_RUN)
def test_what_contradicts_itself_in_a_run_that_goes_on(running: Stored, problem: str, change: Change) -> None:
    assert [found for found in audit(change(running)) if problem in found]


def test_two_attempts_that_run_or_completed(running: Stored) -> None:
    (attempt_of_b,) = [row for row in running.attempts if row.index == OF.index["b"]]
    twice = running._replace(
        attempts=sorted([*running.attempts, attempt_of_b._replace(number=2)], key=lambda row: row[1:3])
    )
    assert "b: 0 completed and 2 running attempts" in audit(twice)
    (attempt_of_a,) = [row for row in running.attempts if row.index == OF.index["a"]]
    twice = running._replace(
        attempts=sorted([*running.attempts, attempt_of_a._replace(number=2)], key=lambda row: row[1:3])
    )
    assert "a: 2 completed and 0 running attempts" in audit(twice)


def test_an_open_gate_with_nothing_that_can_move(running: Stored) -> None:
    stuck = node(node(running, "b", status=NodeStatus.FAILED), "w", status=NodeStatus.FAILED)
    assert "the gate is open and nothing can move" in audit(stuck)
    assert "the gate is open and nothing can move" not in audit(run(stuck, gate=GateState.HELD))


def test_what_began_before_its_parents_is_no_problem_in_a_run_that_was_healed(running: Stored) -> None:
    began = node(running, "c", status=NodeStatus.RUNNING)
    problem = "c: it is RUNNING before all its parents are"
    assert problem in audit(began)
    assert problem not in audit(run(began, heals=1))
    ready = node(running, "c", status=NodeStatus.READY)
    problem = "c: it is READY before all its parents are"
    assert problem in audit(run(ready, heals=1))
    assert problem not in audit(run(ready, heals=1, gate=GateState.HELD))


def test_behind_a_closed_gate_counters_may_be_old(running: Stored) -> None:
    for changed in (node(running, "c", waiting=0), node(running, "b", status=NodeStatus.PENDING)):
        closed = audit(run(changed, gate=GateState.HELD))
        assert not [found for found in closed if "counters" in found or "still PENDING" in found]


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        ("the run is COMPLETED with nodes ['READY']", lambda s: node(s, "c", status=NodeStatus.READY)),
        ("the run is COMPLETED and its gate is open", lambda s: run(s, gate=GateState.OPEN)),
        ("the run is COMPLETED and ended at None", lambda s: run(s, ended_at=None)),
    ],
)
def test_what_contradicts_itself_in_a_run_that_completed(done: Stored, problem: str, change: Change) -> None:
    assert problem in audit(change(done))


def test_a_completed_run_that_is_being_reattempted_has_not_ended(done: Stored) -> None:
    asked = node(run(done, purpose="reattempt"), "c", status=NodeStatus.PENDING)
    assert not [found for found in audit(asked) if "the run is COMPLETED with" in found]


def test_a_failed_run_has_nothing_left_to_start(broken: Stored) -> None:
    left = node(broken, "c", status=NodeStatus.PENDING)
    assert "the run is FAILED with nodes ['PENDING']" in audit(left)
    held = run(left, gate=GateState.HELD)
    assert not [found for found in audit(held) if "the run is FAILED with" in found]
    still = node(broken, "c", status=NodeStatus.RUNNING)
    assert not [found for found in audit(still) if "the run is FAILED with" in found]


def test_a_run_that_is_being_loaded_is_not_looked_at(running: Stored) -> None:
    for purpose in ("load", "delete", "heal", "import", "freeze"):
        assert audit(run(running._replace(nodes=[]), purpose=purpose)) == []
    assert audit(run(running._replace(nodes=[]), purpose="cancel")) != []


def test_what_completed_on_an_attempt_that_was_superseded(done: Stored) -> None:
    index = done.graph.index["a"]
    again = [
        entry(done, "rewrote", "a", 1, "PENDING"),
        JournalRow(done.run.seq + 2, 0, "run", None, None, "RUNNING"),
        JournalRow(done.run.seq + 3, 0, "claimed", index, 2, None),
        JournalRow(done.run.seq + 4, 0, "completed", index, 2, "COMPLETED"),
    ]
    found = audit(told(done, *again))
    assert "b: it completed on an attempt of a that was superseded" in found
    assert "w: it completed on an attempt of a that was superseded" in found
    assert not [problem for problem in found if problem.startswith("c: it completed on")]


def test_the_graphs_that_a_run_has_had() -> None:
    def healed(seq: int, words: str) -> JournalRow:
        return JournalRow(seq, 0, "healed", None, None, words)

    assert earlier_graphs([]) == []
    assert earlier_graphs([healed(1, "d1 d2"), entry_of_no_interest(), healed(3, "d2 d3")]) == ["d1", "d2", "d3"]


def entry_of_no_interest() -> JournalRow:
    return JournalRow(2, 0, "run", None, None, "RUNNING")


def test_a_journal_tells_every_status(running: Stored, done: Stored, broken: Stored) -> None:
    for stored in (running, done, broken):
        folded = fold(stored.graph, stored.journal)
        assert folded.nodes == [row.status for row in stored.nodes]
        assert folded.problems == []


def test_what_waits_for_its_next_attempt_goes_on_waiting_when_a_heal_gave_it_a_parent() -> None:
    before = graph(b="")
    after = arrange(before, graph(a="", b="a"))
    b = after.index["b"]
    journal = [
        JournalRow(1, 0, "created", None, None, None),
        JournalRow(2, 0, "claimed", b, 1, None),
        JournalRow(3, 0, "gate", None, None, "heal"),
        JournalRow(4, 0, "healed", None, None, f"{before.digest} {after.digest}"),
        JournalRow(5, 0, "run", None, None, "RUNNING"),
    ]
    ends = [("failed", "WAITING", "WAITING"), ("released", "READY", "PENDING"), ("failed", "FAILED", "FAILED")]
    for kind, status, becomes in ends:
        folded = fold(after, [*journal, JournalRow(6, 0, kind, b, 1, status)], {before.digest: before})
        assert folded.nodes[b] == becomes
        assert folded.nodes[after.index["a"]] == "READY"


def test_a_node_that_is_gone_is_not_claimed_and_what_is_shared_is_a_first_attempt() -> None:
    before = graph(a="", b="")
    after = arrange(before, graph(a=""))
    journal = [
        JournalRow(1, 0, "created", None, None, None),
        JournalRow(2, 0, "shared", before.index["a"], 1, "COMPLETED"),
        JournalRow(3, 0, "gate", None, None, "heal"),
        JournalRow(4, 0, "healed", None, None, f"{before.digest} {after.digest}"),
        JournalRow(5, 0, "run", None, None, "RUNNING"),
    ]
    sound = fold(after, journal, {before.digest: before})
    assert (sound.attempts, sound.problems) == ({(before.index["a"], 1): AttemptStatus.COMPLETED}, [])
    wrong = fold(after, [*journal, JournalRow(6, 0, "claimed", before.index["b"], 1, None)], {before.digest: before})
    assert wrong.problems == [f"node {before.index['b']} was claimed at 6 although it is no longer in the graph"]


def test_a_join_of_which_one_parent_has_completed_is_sound() -> None:
    store, of = MemoryStore(), graph(a="", b="", join="a b")
    start(store, of)
    enlist(store)
    store.commit([completed(by_name(of, claim(store))["a"])])
    assert list(audit(read(store, of))) == []
