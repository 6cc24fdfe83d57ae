"""Runs that begin with what another one has done: they wait for it behind their gate, and then stand on their own."""

from __future__ import annotations

import pytest

from stepwell.base.clock import ManualClock
from stepwell.base.ids import ClaimId, GateToken, RunId
from stepwell.core.graph import Graph
from stepwell.core.kernel.audit import fold
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *

FORK = RunId("fork-1")
PLACE = b'{"origin":"run-1","seq":9}'
LARGE = b'"' + b"x" * 40_000 + b'"'


def fork(store: Store, of: Graph, *shared: tuple[int, int], run: str = FORK) -> None:
    """Create a fork, hold its gate, and share this much."""
    start(store, of, run, fork=PLACE)
    hold(store, run, purpose="fork")
    if shared:
        one(store, share(*shared), Shared)


def share(*rows: tuple[int, int], token: str = TOKEN, claim: str = "s1", run: str = FORK, origin: str = RUN) -> Share:
    return Share(RunId(run), GateToken(token), RunId(origin), ClaimId(claim), rows)


def begin(store: Store, run: str = FORK, status: RunStatus = RunStatus.PENDING) -> None:
    """The last rewrite behind the gate of a fork."""
    finish(store, status, open_gate=True, run=run)


def done(store: Store, of: Graph, output: bytes = b'"done"') -> Graph:
    """The origin: a run of this graph, worked to its end."""
    serve(store, of)
    while grants := claim(store, runs=[RUN]):
        store.commit([completed(grant, output) for grant in grants])
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED
    return of


def forked(store: Store, of: Graph, *shared: tuple[int, int]) -> Graph:
    """A fork of a run of this graph that was worked to its end, and shares this much of it."""
    fork(store, done(store, of), *shared)
    begin(store)
    return of


def test_a_fork_waits_behind_its_gate_until_it_has_what_it_shares(store: Store) -> None:
    of = done(store, graph(a="", b="a"))
    assert one(store, create(of, FORK, fork=PLACE), Created) == Created(FORK, False, 2, 2)
    expect_run(store, FORK, status=RunStatus.PENDING, gate=GateState.HELD, purpose="fork", fork=PLACE)
    assert claim(store) == ()
    assert sweep(store).gates == (HeldGate(FORK, "fork", PLACE),)
    assert refused(store, gate_op(FORK, purpose="cancel")) is Refusal.INCOMPLETE
    hold(store, FORK, purpose="fork")
    assert one(store, share((0, 1)), Shared) == Shared(1)
    assert claim(store) == ()
    begin(store)
    expect(complete_next(store), run_id=FORK, index=1, number=1)
    assert reader.require_run(store, FORK).status is RunStatus.COMPLETED
    assert reader.require_run(store, RUN).fork is None


def test_a_fork_is_created_once_and_not_held_again(store: Store) -> None:
    of = forked(store, graph(a="", b="a"), (0, 1))
    seq = reader.require_run(store, FORK).seq
    receipts = store.commit([create(of, FORK, fork=PLACE), create(of, "fork-2", fork=b"\x00")])
    assert receipts == [Created(FORK, True, 2, 2), Created(RunId("fork-2"), False, 2, 2)]
    expect_run(store, FORK, gate=GateState.OPEN, seq=seq)
    assert reader.require_run(store, "fork-2").fork == b"\x00"
    assert sweep(store).gates == (HeldGate(RunId("fork-2"), "fork", b"\x00"),)


def test_what_is_shared_is_there_as_it_was_done(store: Store, clock: ManualClock) -> None:
    of = graph(a="", b="a")
    a = claim_first(store, of, "theirs")
    clock.advance(2)
    store.commit([completed(a, b'"from a"', outcome=b'{"rows":3}')])
    clock.advance(60)
    fork(store, of, (0, 1))
    (theirs,), (ours,) = reader.list_attempts(store, RUN), reader.list_attempts(store, FORK)
    assert ours == theirs._replace(id=ours.id)
    assert ours.id != theirs.id
    assert reader.get_outputs(store, FORK) == {0: b'"from a"'}
    begin(store)
    assert statuses(store, FORK) == {"a": "COMPLETED", "b": "READY"}


def test_what_an_attempt_completed_in_spite_of_is_not_shared(store: Store) -> None:
    of = graph(a="")
    a = claim_first(store, of)
    store.commit([completed(a)._replace(error=b'{"type":"Late"}')])
    fork(store, of, (0, 1))
    (theirs,), (ours,) = reader.list_attempts(store, RUN), reader.list_attempts(store, FORK)
    assert (theirs.error, ours.error) == (b'{"type":"Late"}', None)


def test_what_bodies_below_need_of_shared_nodes_they_are_given(store: Store) -> None:
    of = done(store, graph(spec("a"), spec("b", "a", needs="a")), LARGE)
    fork(store, of, (0, 1))
    begin(store)
    assert claim_one(store).inputs == ((0, LARGE),)


def test_a_fork_of_all_completes_at_once(store: Store) -> None:
    forked(store, graph(a="", b="a"), (0, 1), (1, 1))
    row = reader.require_run(store, FORK)
    assert (row.status, row.gate, row.open, row.active) == (RunStatus.COMPLETED, GateState.SHUT, 0, 0)
    assert (row.started_at, row.ended_at is None) == (None, False)


def test_sharing_is_repeated_without_harm(store: Store) -> None:
    of = done(store, graph(a="", b="a", c="a"))
    fork(store, of)
    op = share((0, 1), (1, 1))
    first, second = twice(store, [op])
    assert first == second == [Shared(2)]
    row = reader.require_run(store, FORK)
    assert [entry.kind for entry in reader.list_journal(store, FORK)].count("shared") == 2
    assert (row.open, row.active) == (1, 0)
    begin(store)
    assert work(store) == 1


def test_who_finishes_what_another_left_half_shared_shares_the_rest(store: Store, clock: ManualClock) -> None:
    of = done(store, graph(a="", b="a", c="a"))
    fork(store, of, (0, 1), (1, 1))
    clock.advance(60)
    hold(store, FORK, "other", purpose="fork")
    assert refused(store, share((2, 1), claim="late")) is Refusal.GATE_LOST
    assert one(store, share((0, 1), (1, 1), (2, 1), token="other", claim="s2"), Shared) == Shared(3)
    attempts = reader.list_attempts(store, FORK)
    assert [(attempt.index, attempt.number) for attempt in attempts] == [(0, 1), (1, 1), (2, 1)]
    finish(store, RunStatus.PENDING, open_gate=True, run=FORK, token="other")
    assert reader.require_run(store, FORK).status is RunStatus.COMPLETED


def test_an_attempt_that_was_superseded_since_is_shared_by_its_number(store: Store) -> None:
    of = serve(store, graph(a="", b=""))
    held = by_name(of, claim(store))
    a = of.index["a"]
    store.commit([completed(held["a"], b'"first"')])
    enact(store, "reattempt", RunStatus.RUNNING, changed(node(store, a), NodeStatus.PENDING, fresh=True))
    complete_next(store, b'"second"')
    fork(store, of)
    assert one(store, share((a, 1), (a, 2)), Shared) == Shared(1)
    (ours,) = reader.list_attempts(store, FORK)
    assert (ours.number, ours.status, ours.output) == (1, AttemptStatus.COMPLETED, b'"first"')
    expect(node(store, a, FORK), status=NodeStatus.COMPLETED, attempt=1, generation=0)


def test_only_what_completed_is_shared(store: Store) -> None:
    of = serve(store, graph(a="", b="", c=""))
    held = by_name(of, claim(store))
    store.commit([completed(held["a"])])
    fork(store, of)
    a, b = of.index["a"], of.index["b"]
    rows = ((a, 1), (a, 1), (a, 2), (b, 1), (b, 0), (-1, 1), (99, 1))
    assert one(store, share(*rows), Shared) == Shared(1)
    assert one(store, share(claim="none"), Shared) == Shared(0)
    assert sorted(statuses(store, FORK).values()) == ["COMPLETED", "READY", "READY"]
    begin(store)
    assert {grant.index for grant in claim(store, runs=[FORK])} == {b, of.index["c"]}


def test_what_has_begun_in_a_run_is_not_shared_any_more(store: Store) -> None:
    of = done(store, graph(a="", b="", c="a"))
    start(store, of, FORK)
    held = by_name(of, claim(store, limit=1))
    begun = next(iter(held.values())).index
    hold(store, FORK, purpose="fork")
    roots = [index for index, own in enumerate(of.parents) if not own]
    assert one(store, share(*((index, 1) for index in roots)), Shared) == Shared(2)
    expect_run(store, FORK, open=2, active=1)
    assert node(store, begun, FORK).status is NodeStatus.RUNNING
    begin(store, status=RunStatus.RUNNING)
    store.commit([completed(grant) for grant in held.values()])
    assert work(store) == 1


def test_a_share_is_granted_to_nobody(store: Store) -> None:
    """Its id is one of claims, because attempts are named by it; who claims under it gets nothing."""
    forked(store, graph(a="", b="a"), (0, 1))
    assert claim(store, claim="s1") == ()
    (b,) = claim(store)
    assert refused(store, completed(b._replace(attempt=reader.list_attempts(store, FORK, 0)[0].id), b"1")) is (
        Refusal.FENCED
    )
    assert reader.get_outputs(store, FORK, (0,)) == {0: b'"done"'}


@pytest.mark.parametrize("first", [RUN, FORK])
def test_a_large_output_lives_as_long_as_one_of_both(store: Store, first: RunId) -> None:
    of = serve(store, graph(a="", b="a"))
    for _ in of.order:
        (grant,) = claim(store)
        effect = Append(grant.attempt, 0, "effect", LARGE[:-1] + b'!"')
        store.commit([effect, completed(grant, LARGE, outcome=LARGE)])
    fork(store, of, (0, 1), (1, 1))
    begin(store)
    second = FORK if first == RUN else RUN
    one(store, Delete(first), Deleted)
    assert reader.get_outputs(store, second) == {0: LARGE, 1: LARGE}
    assert [attempt.outcome for attempt in reader.list_attempts(store, second)] == [LARGE, LARGE]
    assert [len(line.data) for line in reader.list_lines(store, second)] == [len(LARGE) + 1] * 2
    one(store, Delete(second), Deleted)
    assert list(reader.all_runs(store)) == []
    done(store, of, LARGE)
    assert reader.get_outputs(store, RUN) == {0: LARGE, 1: LARGE}


def test_recorded_effects_go_with_what_is_shared_and_logs_do_not(store: Store) -> None:
    of = graph(a="", b="a")
    a = claim_first(store, of)
    lines = [Append(a.attempt, 0, "effect", b'"paid"'), Append(a.attempt, 1, "log", b'"hello"')]
    lines += [Append(a.attempt, 2, "effect", b'"sent"'), Append(a.attempt, -1, "progress", b"1")]
    store.commit([*lines, completed(a, lines=(("effect", b'"told"'), ("checkpoint", b'"done"')))])
    theirs = [line for line in reader.list_lines(store, RUN) if line.kind in ("effect", "checkpoint")]
    fork(store, of, (0, 1))
    (ours,) = reader.list_attempts(store, FORK)
    found = reader.list_lines(store, FORK)
    assert [line.data for line in found] == [b'"paid"', b'"sent"', b'"told"', b'"done"']
    assert list(found) == [line._replace(attempt=ours.id) for line in theirs]
    assert reader.list_marks(store, FORK) == ()
    assert len(reader.list_lines(store, RUN)) == 5


def test_only_who_holds_the_gate_may_share(store: Store) -> None:
    of = done(store, graph(a=""))
    start(store, of, FORK, fork=PLACE)
    assert refused(store, share((0, 1))) is Refusal.GATE_LOST
    hold(store, FORK, purpose="fork")
    assert refused(store, share((0, 1), token="other")) is Refusal.GATE_LOST
    assert store.commit([share((0, 1), run="nobody")]) == [Refused(Refusal.UNKNOWN, "nobody")]
    assert store.commit([share((0, 1), origin="nobody")]) == [Refused(Refusal.UNKNOWN, "nobody")]
    begin(store)
    assert refused(store, share((0, 1))) is Refusal.GATE_LOST
    assert statuses(store, FORK) == {"a": "READY"}


def test_a_large_fork_is_loaded_and_shares_in_chunks(store: Store) -> None:
    chunk = store.limits.nodes
    of = done(store, fan(chunk + 10), b"1")
    store.commit(add_graph(of))
    assert one(store, create(of, FORK, fork=PLACE), Created) == Created(FORK, False, chunk, chunk + 12)
    expect_run(store, FORK, gate=GateState.HELD, purpose="load", fork=PLACE)
    assert one(store, AddNodes(FORK, chunk), Created) == Created(FORK, False, chunk + 12, chunk + 12)
    assert reader.require_run(store, FORK).purpose == "fork"
    assert one(store, AddNodes(FORK, chunk), Created).existed is True
    assert claim(store) == ()
    hold(store, FORK, purpose="fork")
    join = of.index["join"]
    rows = [(index, 1) for index in range(len(of)) if index != join]
    assert one(store, share(*rows[:chunk], claim="s1"), Shared) == Shared(chunk)
    assert one(store, share(*rows[chunk:], claim="s2"), Shared) == Shared(11)
    begin(store)
    assert complete_next(store).index == join
    assert reader.require_run(store, FORK).status is RunStatus.COMPLETED


def test_the_history_of_a_fork_tells_what_it_shares(store: Store) -> None:
    of = forked(store, graph(a="", b="a", c="b"), (0, 1), (1, 1))
    entries = reader.list_journal(store, FORK)
    kinds = [(entry.kind, entry.index, entry.attempt, entry.status) for entry in entries]
    assert kinds == [
        ("created", None, None, None),
        ("gate", None, None, "fork"),
        ("gate", None, None, "fork"),
        ("shared", 0, 1, "COMPLETED"),
        ("shared", 1, 1, "COMPLETED"),
        ("run", None, None, "PENDING"),
    ]
    folded = fold(of, entries)
    assert folded.nodes == [NodeStatus.COMPLETED, NodeStatus.COMPLETED, NodeStatus.READY]
    assert folded.attempts == {(0, 1): AttemptStatus.COMPLETED, (1, 1): AttemptStatus.COMPLETED}
    assert folded.problems == []


def test_the_forks_of_a_run_are_found(store: Store) -> None:
    of = done(store, graph(a=""))
    for run, origin in {"fork-1": RUN, "fork-2": FORK, "fork-3": RUN, "odd": None}.items():
        start(store, of, run, fork=b"\x00", origin=origin)
    assert reader.require_run(store, "fork-2").origin == FORK
    assert [row.id for row in reader.all_runs(store, origin=RUN)] == ["fork-3", "fork-1"]
    assert [row.id for row in reader.all_runs(store, origin=FORK)] == ["fork-2"]
    page = reader.list_runs(store, ListRuns(1, origin=RUN))
    assert [row.id for row in page.runs] == ["fork-3"]
    page = reader.list_runs(store, ListRuns(1, page.cursor, origin=RUN))
    assert ([row.id for row in page.runs], page.cursor) == (["fork-1"], None)
    assert list(reader.all_runs(store, RunStatus.COMPLETED, origin=RUN)) == []


def test_a_fork_is_forked_cancelled_and_deleted_like_any_run(store: Store) -> None:
    of = forked(store, graph(a="", b="a"), (0, 1))
    fork(store, of, run="fork-2")
    assert one(store, share((0, 1), run="fork-2", origin=FORK, claim="s2"), Shared) == Shared(1)
    begin(store, "fork-2")
    end_run(store, FORK)
    one(store, Delete(FORK), Deleted)
    assert reader.get_outputs(store, "fork-2") == {0: b'"done"'}
    assert one(store, create(of, FORK), Created).existed is False
    assert work(store, runs=["fork-2"]) == 1
