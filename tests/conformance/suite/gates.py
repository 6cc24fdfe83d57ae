"""The gate of a run, and what is rewritten behind it."""

from __future__ import annotations

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.base.ids import GateToken, RunId
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def rewrite(*rows: NodeChange, token: str = TOKEN, end: Finish | None = None) -> Rewrite:
    return Rewrite(RUN, GateToken(token), rows, end)


def test_a_held_gate_lets_nothing_move_forward(store: Store) -> None:
    of = serve(store, graph(a="", b="a", c=""))
    (grant,) = claim(store, limit=1)
    expect(hold(store, purpose="pause"), gate=GateState.HELD, purpose="pause", status=RunStatus.RUNNING)
    assert claim(store) == ()
    assert ready_runs(store, RUN) == ()
    assert isinstance(store.commit([completed(grant)])[0], Settled)
    assert node(store, of.index["b"]).status is NodeStatus.PENDING
    assert reader.require_run(store, RUN).stopping is False


def test_a_gate_may_ask_what_runs_to_stop(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    hold(store, stop=True)
    assert reader.require_run(store, RUN).stopping is True
    assert list_stops(store) == (grant.attempt,)


def test_holding_a_gate_twice_is_holding_it_once(store: Store) -> None:
    start(store, graph(a=""))
    assert one(store, gate_op(), GateTaken) == one(store, gate_op(), GateTaken)


def test_a_gate_somebody_else_holds_is_refused_until_its_holder_is_late(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""))
    hold(store, token="mine", purpose="heal", seconds=10)
    assert store.commit([gate_op(token="yours")]) == [Refused(Refusal.GATE_HELD, "heal")]
    clock.advance(10 - MARGIN)
    assert refused(store, gate_op(token="yours")) is Refusal.GATE_HELD
    assert isinstance(store.commit([rewrite(token="mine")])[0], Rewritten)
    clock.advance(MARGIN)
    assert isinstance(store.commit([gate_op(token="mine")])[0], GateTaken), "late, but nobody took it over"
    assert isinstance(store.commit([gate_op(token="yours", purpose="heal", resume=True)])[0], GateTaken)
    assert refused(store, gate_op(token="mine")) is Refusal.GATE_HELD
    assert refused(store, rewrite(token="mine")) is Refusal.GATE_LOST
    assert isinstance(store.commit([rewrite(token="yours")])[0], Rewritten)


def test_a_gate_that_nobody_holds_is_taken_at_once(store: Store) -> None:
    serve(store, graph(a=""))
    work(store, failing=("a",))
    assert reader.require_run(store, RUN).gate is GateState.HELD
    assert hold(store, purpose="failed").purpose == "failed"


def test_what_somebody_left_undone_is_finished_before_anything_else(store: Store, clock: ManualClock) -> None:
    start(store, graph(a=""))
    hold(store, token="mine", purpose="heal", seconds=10)
    clock.advance(10)
    assert store.commit([gate_op(token="yours", purpose="pause")]) == [Refused(Refusal.INCOMPLETE, "heal")]
    assert store.commit([gate_op(token="yours", purpose="heal")]) == [Refused(Refusal.INCOMPLETE, "heal")]
    hold(store, token="yours", purpose="heal")
    finish(store, RunStatus.PENDING, open_gate=True, token="yours")
    assert hold(store, token="theirs", purpose="pause").purpose == "pause"


def test_a_gate_may_name_the_statuses_it_makes_sense_for(store: Store) -> None:
    start(store, graph(a=""))
    wanted = (RunStatus.FAILED, RunStatus.CANCELLED)
    assert store.commit([gate_op(allowed=wanted)]) == [Refused(Refusal.STATUS, RunStatus.PENDING)]
    assert reader.require_run(store, RUN).gate is GateState.OPEN
    end_run(store)
    assert isinstance(store.commit([gate_op(allowed=wanted)])[0], GateTaken), "a shut gate opens for who asks"


def test_an_unknown_run_has_no_gate(store: Store) -> None:
    assert store.commit([gate_op("none")]) == [Refused(Refusal.UNKNOWN, "none")]
    assert store.commit([Rewrite(RunId("none"), TOKEN)]) == [Refused(Refusal.UNKNOWN, "none")]


def test_only_the_holder_of_the_gate_rewrites(store: Store) -> None:
    start(store, graph(a=""))
    row = node(store, 0)
    op = rewrite(changed(row, NodeStatus.CANCELLED))
    assert refused(store, op) is Refusal.GATE_LOST, "the gate is open"
    hold(store, token="other")
    assert refused(store, op) is Refusal.GATE_LOST
    finish(store, RunStatus.PAUSED, token="other")
    assert refused(store, op) is Refusal.GATE_LOST, "the gate is shut"
    assert node(store, 0) == row


def test_rows_that_have_changed_are_refused_and_the_rest_applied(store: Store) -> None:
    of = serve(store, graph(a="", b="a", c="", d=""))
    (running,) = claim(store, limit=1)
    seen = reader.all_nodes(store, RUN)
    hold(store, stop=True)
    stale = [row._replace(status=NodeStatus.READY, attempt=0) for row in seen if row.index == running.index]
    stale += [row._replace(attempt=3) for row in seen if row.id == "b"]
    fresh = [row for row in seen if row.index != running.index and row.id != "b"]
    wanted = [changed(row, NodeStatus.CANCELLED, "run_cancelled") for row in (*stale, *fresh)]
    missing = [NodeChange(index, NodeStatus.PENDING, 0, NodeStatus.CANCELLED) for index in (-1, 4, 10_000)]
    receipt = store.commit([rewrite(*wanted, *missing, end=Finish(RunStatus.CANCELLED, False))])[0]
    names = ",".join(str(change.index) for change in (*wanted[:2], *missing))
    assert receipt == Refused(Refusal.CHANGED, names)
    after = {str(row.id): (row.status, row.reason) for row in reader.all_nodes(store, RUN)}
    assert after["b"] == ("PENDING", None)
    assert [after[row.id] for row in fresh] == [("CANCELLED", "run_cancelled")] * len(fresh)
    run = reader.require_run(store, RUN)
    assert (run.gate, run.status) == (GateState.HELD, RunStatus.RUNNING), "it is not finished: compute it again"
    rest = reader.all_nodes(store, RUN, NodeStatus.PENDING, NodeStatus.READY)
    finish(store, RunStatus.CANCELLING, *(changed(row, NodeStatus.CANCELLED) for row in rest), grace=SECOND)
    assert reader.require_run(store, RUN).open == 1
    assert len(of) == 4


def test_a_node_named_twice_in_a_rewrite_changes_once(store: Store) -> None:
    worked(store, graph(a="", b=""))
    hold(store, purpose="reattempt")
    row = node(store, 0)
    again = NodeChange(0, NodeStatus.PENDING, row.attempt, NodeStatus.CANCELLED)
    receipt = store.commit([rewrite(changed(row, NodeStatus.PENDING), again, changed(row, NodeStatus.PENDING))])[0]
    assert receipt == Refused(Refusal.CHANGED, "0,0")
    assert node(store, 0).status is NodeStatus.PENDING
    assert reader.require_run(store, RUN).open == 1
    finish(store, RunStatus.RUNNING, open_gate=True)


def test_finishing_opens_the_gate_and_derives_the_counters(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(a="", b="a", c="a", d="b c"))
    (grant,) = claim(store)
    hold(store, purpose="heal")
    clock.advance(1)
    store.commit([completed(grant)])
    assert node(store, of.index["b"]).waiting == 1, "behind the gate nothing moves"
    expect(finish(store, RunStatus.RUNNING, open_gate=True), gate=GateState.OPEN, purpose=None, open=3, active=2)
    assert statuses(store) == {"a": "COMPLETED", "b": "READY", "c": "READY", "d": "PENDING"}
    assert node(store, of.index["d"]).waiting == 2
    assert work(store) == 3
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


@pytest.mark.parametrize(("reason", "counted"), [(HEALED_LATE, 0), (CONDITION, 1)])
def test_a_skipped_parent_is_satisfied_and_counted_unless_a_heal_added_it_too_late(
    store: Store, reason: str, counted: int
) -> None:
    of = start(store, graph(a="", b="", c="a b", d="a"))
    enact(store, "heal", RunStatus.RUNNING, changed(node(store, of.index["a"]), NodeStatus.SKIPPED, reason))
    rows = {str(row.id): row for row in reader.all_nodes(store, RUN)}
    assert (rows["c"].status, rows["c"].waiting, rows["c"].skipped) == (NodeStatus.PENDING, 1, counted)
    assert (rows["d"].status, rows["d"].waiting, rows["d"].skipped) == (NodeStatus.READY, 0, counted)
    assert (rows["a"].status, rows["a"].reason) == (NodeStatus.SKIPPED, reason)


def test_a_node_whose_parent_was_taken_back_is_not_ready(store: Store) -> None:
    of = serve(store, graph(a="", b="a", c="b"))
    complete_next(store)
    enact(store, "reattempt", RunStatus.RUNNING, changed(node(store, of.index["a"]), NodeStatus.PENDING, fresh=True))
    assert statuses(store) == {"a": "READY", "b": "PENDING", "c": "PENDING"}


def test_finishing_shuts_the_gate(store: Store, clock: ManualClock) -> None:
    start(store, graph(a="", b="a"))
    hold(store, purpose="pause")
    expect(finish(store, RunStatus.PAUSED, reason="lunch"), status=RunStatus.PAUSED, gate=GateState.SHUT, purpose=None)
    expect_run(store, reason="lunch", ended_at=None)
    hold(store, purpose="cancel")
    clock.advance(1)
    rows = [changed(row, NodeStatus.CANCELLED) for row in reader.all_nodes(store, RUN)]
    news = finish(store, RunStatus.CANCELLING, *rows, grace=SECOND)
    assert (news.status, news.gate) == (RunStatus.CANCELLED, GateState.SHUT), "nothing ran: it is over at once"
    expect_run(store, ended_at=clock.now(), reason=None, open=0)


def test_an_ended_run_begins_again(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(a="", b="a", c=""))
    grants = by_name(of, claim(store))
    store.commit([completed(grants["c"], b'"kept"'), failed(grants["a"])])
    child = changed(node(store, of.index["b"]), NodeStatus.UPSTREAM_FAILED, "upstream: a")
    enact(store, "failed", RunStatus.FAILED, child, stop=True)
    expect_run(store, status=RunStatus.FAILED, ended_at=clock.now(), failed=1, stopping=True)
    hold(store, purpose="retry", allowed=(RunStatus.FAILED,))
    rows = reader.all_nodes(store, RUN, NodeStatus.FAILED, NodeStatus.UPSTREAM_FAILED)
    finish(store, RunStatus.RUNNING, *(changed(row, NodeStatus.PENDING, fresh=True) for row in rows), open_gate=True)
    expect_run(store, status=RunStatus.RUNNING, ended_at=None, failed=0, stopping=False)
    assert (node(store, of.index["a"]).failures, node(store, of.index["b"]).reason) == (0, None)
    assert work(store) == 2
    assert reader.get_outputs(store, RUN)[of.index["c"]] == b'"kept"'


def test_a_completed_node_that_runs_again_supersedes_its_completion(store: Store) -> None:
    serve(store, graph(spec("a"), spec("b", "a", needs="a")))
    first = complete_next(store, b"1")
    enact(store, "reattempt", RunStatus.RUNNING, changed(node(store, 0), NodeStatus.PENDING, fresh=True))
    assert reader.get_outputs(store, RUN) == {}
    assert store.commit([completed(first, b"1")]) == [Refused(Refusal.FENCED)]
    assert complete_next(store, b"2").number == 2
    found = [(attempt.status, attempt.output) for attempt in reader.list_attempts(store, RUN, 0)]
    assert found == [(AttemptStatus.SUPERSEDED, b"1"), (AttemptStatus.COMPLETED, b"2")]
    assert reader.get_outputs(store, RUN) == {0: b"2"}
    (child,) = claim(store)
    assert child.inputs == ((0, b"2"),)


def test_completions_are_superseded_over_several_rewrites(store: Store, clock: ManualClock) -> None:
    """From the last node to the first; who begins in the middle, with another token, goes on where the first one left it."""
    worked(store, graph(spec("a"), spec("b", "a", needs="a"), spec("c", "b")))
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED
    rows = [changed(row, NodeStatus.PENDING, fresh=True) for row in reversed(reader.all_nodes(store, RUN))]
    hold(store, purpose="reattempt", seconds=10)
    expect(one(store, rewrite(*rows[:2]), Rewritten).run, status=RunStatus.COMPLETED, gate=GateState.HELD, open=2)
    assert list(reader.get_outputs(store, RUN)) == [0]
    assert one(store, rewrite(*rows[:2]), Refused).reason is Refusal.CHANGED, "nothing is superseded twice"
    clock.advance(10)
    enlist(store)
    hold(store, token="another", purpose="reattempt")
    news = finish(store, RunStatus.RUNNING, *rows[2:], open_gate=True, token="another")
    assert (news.status, news.open, news.active) == (RunStatus.RUNNING, 3, 1)
    assert statuses(store) == {"a": "READY", "b": "PENDING", "c": "PENDING"}
    assert [row.generation for row in reader.all_nodes(store, RUN)] == [1, 1, 1]
    expect(complete_next(store, b'"anew"'), number=2, generation=1)
    expect(complete_next(store), number=2, generation=1, inputs=((0, b'"anew"'),))
    assert work(store) == 1
    found = [attempt.status for attempt in reader.list_attempts(store, RUN)]
    assert found == [AttemptStatus.SUPERSEDED, AttemptStatus.COMPLETED] * 3
    assert reader.require_run(store, RUN).status is RunStatus.COMPLETED


def test_a_run_with_nothing_left_to_do_completes_when_its_gate_opens(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    hold(store, purpose="heal")
    store.commit([completed(grant)])
    assert finish(store, RunStatus.RUNNING, open_gate=True).status is RunStatus.COMPLETED


def test_a_rewrite_in_chunks_ends_with_the_last(store: Store) -> None:
    start(store, graph(**{f"n{i}": "" for i in range(10)}))
    hold(store)
    rows = [changed(row, NodeStatus.CANCELLED) for row in reader.all_nodes(store, RUN)]
    for begin in range(0, 10, 3):
        receipt = one(store, rewrite(*rows[begin : begin + 3]), Rewritten)
        assert (receipt.run.gate, receipt.run.status) == (GateState.HELD, RunStatus.PENDING)
        assert receipt.run.open == max(0, 7 - begin)
    assert finish(store, RunStatus.CANCELLING).status is RunStatus.CANCELLED


def test_a_rewrite_may_rest_on_nodes_it_does_not_change(store: Store) -> None:
    of = serve(store, graph(a="", b="a"))
    (grant,) = claim(store)
    hold(store)
    running, child = reader.all_nodes(store, RUN)
    before = reader.require_run(store, RUN).seq
    one(store, rewrite(changed(running, NodeStatus.RUNNING, "ignored", fresh=True)), Rewritten)
    assert node(store, of.index["a"]) == running
    assert reader.require_run(store, RUN).seq == before
    store.commit([completed(grant)])
    op = rewrite(changed(running, NodeStatus.RUNNING), changed(child, NodeStatus.CANCELLED))
    assert store.commit([op._replace(finish=Finish(RunStatus.CANCELLED, False))]) == [Refused(Refusal.CHANGED, "0")]
    done = node(store, of.index["a"])
    one(store, rewrite(changed(done, NodeStatus.COMPLETED)), Rewritten)
    assert reader.list_attempts(store, RUN)[0].status is AttemptStatus.COMPLETED
    finish(store, RunStatus.CANCELLED)


@pytest.mark.parametrize("was", list(NodeStatus))
def test_only_legal_moves_of_a_node_are_rewritten(store: Store, was: NodeStatus) -> None:
    """What runs moves by its own attempt alone, only a claim makes a node run, and READY follows from the parents."""
    start(store, graph(a="", b=""))
    hold(store)
    written = NODE_MOVES[was] - {NodeStatus.READY, NodeStatus.RUNNING}
    legal = frozenset() if was is NodeStatus.RUNNING else written
    for status in set(NodeStatus) - legal - {was}:
        op = rewrite(changed(node(store, 0), NodeStatus.CANCELLED), NodeChange(1, was, 0, status))
        assert refused(store, op) is Refusal.STATUS, status
    assert statuses(store) == {"a": "READY", "b": "READY"}
    assert reader.require_run(store, RUN).gate is GateState.HELD


@pytest.mark.parametrize("was", [status for status in RunStatus if status is not RunStatus.COMPLETED])
def test_only_legal_moves_of_a_run_are_rewritten(store: Store, was: RunStatus) -> None:
    serve(store, graph(a="", b="a"))
    if was is not RunStatus.PENDING:
        claim(store)
    if was in RUN_MOVES[RunStatus.RUNNING]:
        hold(store, token="earlier")
        finish(store, was, grace=SECOND, token="earlier")
    hold(store)
    child = changed(node(store, 1), NodeStatus.CANCELLED)
    for status in RunStatus:
        going_on = status in (RunStatus.PENDING, RunStatus.RUNNING)
        if status is RunStatus.COMPLETED or (status is not was and status not in RUN_MOVES[was]):
            assert refused(store, rewrite(child, end=Finish(status, going_on))) is Refusal.STATUS, status
        # A run goes on behind an open gate, and behind no other.
        assert refused(store, rewrite(child, end=Finish(status, not going_on))) is Refusal.STATUS, status
    expect_run(store, status=was, gate=GateState.HELD)
    assert node(store, 1).status is NodeStatus.PENDING, "what is refused for this changes nothing"


def test_a_rewritten_node_forgets_when_it_was_due(store: Store) -> None:
    grant = claim_first(store, graph(a=""))
    store.commit([retried(grant, 60)])
    enact(store, "cancel", RunStatus.CANCELLING, changed(node(store, 0), NodeStatus.CANCELLED, "run_cancelled"))
    expect(node(store, 0), status=NodeStatus.CANCELLED, due_at=None, failures=1, lane=LANE, reason="run_cancelled")


def test_the_gate_of_a_large_run_opens_in_steps_and_what_ends_meanwhile_counts(store: Store) -> None:
    size = 6_000
    of = serve(store, fan(size))
    complete_next(store)
    grants = claim(store, limit=3)
    hold(store)
    opening, steps, late = rewrite(end=Finish(RunStatus.RUNNING, True)), 0, list(grants)
    store.commit([completed(late.pop())])
    while not one(store, opening, Rewritten).finished:
        steps += 1
        assert claim(store, limit=1) == (), "something was claimed before the gate was open"
        if late and steps % 2:
            store.commit([completed(late.pop())])
    store.commit([completed(grant) for grant in late])
    expect_run(store, gate=GateState.OPEN, open=size - 3 + 1, active=size - 3)
    assert reader.all_nodes(store, RUN)[-1].waiting == size - 3
    assert {row.status for row in reader.all_nodes(store, RUN)[1:-1]} == {NodeStatus.READY, NodeStatus.COMPLETED}
    assert of.order[claim(store, limit=1)[0].index].startswith("child_")


@pytest.mark.parametrize("size", [1, 40_000], ids=["small", "large"])
def test_a_rewrite_may_give_the_run_another_input(store: Store, size: int) -> None:
    """With the end of it, and not before; a run that shares its payload keeps its own."""
    of = start(store, graph(a=""), input=b'"%s"' % (b"x" * size))
    store.commit([create(of, "other", input=b'"%s"' % (b"x" * size))])
    hold(store, purpose="resume")
    assert isinstance(store.commit([rewrite()])[0], Rewritten)
    for given in (b'"%s"' % (b"x" * size), b'"%s"' % (b"y" * size), b"{}"):
        before = reader.require_run(store, RUN)
        finish(store, RunStatus.PAUSED, input=given)
        expect_run(store, input=given, seed=before.seed, created_at=before.created_at)
        hold(store, purpose="resume")
    finish(store, RunStatus.RUNNING, open_gate=True)
    assert reader.require_run(store, RUN).input == b"{}"
    assert reader.require_run(store, RunId("other")).input == b'"%s"' % (b"x" * size)
    assert one(store, create(of, input=b"{}"), Created).existed
    end_run(store)
    assert one(store, Delete(RUN), Deleted).finished
    assert reader.require_run(store, RunId("other")).input == b'"%s"' % (b"x" * size)


def test_a_late_copy_of_a_finished_request_does_not_hold_the_gate_again(store: Store) -> None:
    serve(store, graph(a="", b="a"))
    asked = gate_op(purpose="pause")
    one(store, asked, GateTaken)
    finish(store, RunStatus.PAUSED)
    assert refused(store, asked) is Refusal.GATE_LOST
    assert refused(store, asked._replace(resume=True)) is Refusal.GATE_LOST
    assert reader.require_run(store, RUN).gate is GateState.SHUT
    hold(store, token="next", purpose="resume")
    finish(store, RunStatus.RUNNING, open_gate=True, token="next")
    assert one(store, asked, GateTaken).run.gate is GateState.HELD, "only the last one is remembered"
