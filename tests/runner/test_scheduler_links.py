"""A link of a chain is composed and concluded sooner than other batches, and with the same result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepwell.ids import Digest, RunId
from stepwell.model import AttemptStatus, Claimed, Create, GateState, NodeStatus, Op, Receipt, Settle, Settled
from stepwell.runner.bodies.attempt import Attempt
from stepwell.runner.bodies.held import Held
from stepwell.runner.bodies.host import Services
from stepwell.runner.scheduling.batches import CommitBatch
from stepwell.runner.scheduling.scheduler import Scheduler
from tests.runner.schedulers import Submission, claims, commit_batch, facts, granted, hold, news, scheduler

CREATE = Create(RunId("new"), "w", None, Digest("d"), b"{}", 1)


def holding_one(**options: Any) -> tuple[Scheduler, Held]:
    """A scheduler that holds the first of three nodes, and has nothing else to do."""
    d = scheduler()
    d.know(facts(width=3, **options))
    (held,) = hold(d, ("r", 0))
    assert d.quiet
    return d, held


def returned(d: Scheduler, held: Held) -> Settle:
    return Attempt(held, Services(lambda *_: {}, d.lines)).returned(None)


def answers(batch: CommitBatch) -> list[Receipt]:
    return [Settled(False, news()), granted(claims(batch)[0], ("r", 1))]


def state(d: Scheduler) -> tuple[object, ...]:
    d.counters.add_links()
    counted = {name: getattr(d.counters, name) for name in d.counters.__slots__}
    held = [(each.attempt, each.index, each.number, each.claimed_at) for each in d.held.values()]
    runs = [(run, known.held, known.active) for run, known in d.facts.items()]
    return counted, held, runs, d.count("thread"), d.quiet, d.idle, d.holding()


def test_a_link_leads_to_what_any_other_batch_would_lead_to() -> None:
    """The only difference: it does not claim ahead, because whatever follows the only node is claimed next."""
    (d, held), (other, others_held) = holding_one(), holding_one()
    link = d.next_link(held, returned(d, held), 10)
    other.finished(others_held, returned(other, others_held), 10)
    batch = other.next_batch(10)
    assert link is not None
    assert batch is not None
    assert d.holding() is other.holding() is None, "a claim is under way"
    assert [type(op) for op in link.ops] == [type(op) for op in batch.ops]
    assert link.ops[0] == batch.ops[0]
    assert link.ops[1]._replace(lanes=()) == batch.ops[1]._replace(lanes=())  # type: ignore[union-attr]
    granted_here = d.linked(link, answers(link), 30)
    (granted_there,) = other.committed(batch, answers(batch), 30).begin
    assert granted_here is not None
    assert vars(granted_here).keys() == vars(granted_there).keys()
    assert granted_here.spec is d.facts[RunId("r")].specs[1]
    assert state(d) == state(other)


def waits(d: Scheduler, held: Held) -> None:
    d.submit(Submission([CREATE], (facts("new"),)))


def is_closing(d: Scheduler, held: Held) -> None:
    d.close(0)


def another_run_is_ready(d: Scheduler, held: Held) -> None:
    d.know(facts("other"))


def was_timed_out(d: Scheduler, held: Held) -> None:
    held.over = True


def said_something(d: Scheduler, held: Held) -> None:
    output = d.lines.of(held)
    assert output is not None
    output.log(0, "INFO", 20, "body", "text")


def is_forgotten(d: Scheduler, held: Held) -> None:
    d.forget(RunId("r"))


def a_suspect_waits(d: Scheduler, held: Held) -> None:
    d.drain(0)


def lease_is_lost(d: Scheduler, held: Held) -> None:
    d.leased = False


EVENTS = [waits, is_closing, another_run_is_ready, is_forgotten, a_suspect_waits]
BEFORE = [*EVENTS, was_timed_out, said_something, lease_is_lost]


@pytest.mark.parametrize("event", BEFORE, ids=lambda event: event.__name__)
def test_it_is_no_link_if_there_is_more_to_do(event: Callable[[Scheduler, Held], None]) -> None:
    d, held = holding_one()
    settlement = returned(d, held)
    event(d, held)
    before = state(d)
    assert d.next_link(held, settlement, 10) is None
    assert state(d) == before


def test_only_a_completion_is_part_of_a_link() -> None:
    d, held = holding_one()
    assert d.next_link(held, Settle(held.attempt, AttemptStatus.FAILED, NodeStatus.FAILED), 10) is None


@pytest.mark.parametrize("options", [{"body": "loop"}, {"on_lost": "interrupt"}, {"timeout": 5.0}], ids=str)
def test_only_plain_bodies_in_threads_have_links(options: dict[str, Any]) -> None:
    d, held = holding_one(**options)
    assert d.next_link(held, returned(d, held), 10) is None


def test_a_worker_with_one_slot_has_no_links() -> None:
    """While its slot is taken, it says what waits for it."""
    d = scheduler(threads=1)
    d.know(facts(width=2))
    (held,) = hold(d, ("r", 0))
    assert d.next_link(held, returned(d, held), 10) is None


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_what_happens_while_a_link_is_committed_is_not_overlooked(event: Callable[[Scheduler, Held], None]) -> None:
    d, held = holding_one()
    link = d.next_link(held, returned(d, held), 10)
    assert link is not None
    event(d, held)
    assert d.linked(link, answers(link), 30) is None
    commit_batch(d, link, answers(link)[1])
    assert d.settling == (), "it was answered in the usual way"


@pytest.mark.parametrize("count", [0, 2])
def test_a_link_that_was_granted_no_node_or_several_is_concluded_as_any_batch(count: int) -> None:
    d, held = holding_one()
    link = d.next_link(held, returned(d, held), 10)
    assert link is not None
    claimed = granted(claims(link)[0], *(("r", index) for index in range(1, 1 + count)))
    assert d.linked(link, [Settled(False, news()), claimed], 30) is None
    assert len(commit_batch(d, link, claimed).begin) == count


def test_a_link_whose_run_stopped_or_was_healed_or_contended_is_concluded_as_any_batch() -> None:
    d, held = holding_one()
    link = d.next_link(held, returned(d, held), 10)
    assert link is not None
    settled, claimed = answers(link)
    assert isinstance(claimed, Claimed)
    (grant,) = claimed.grants
    for answer in (
        [Settled(False, news(gate=GateState.HELD)), claimed],
        [settled, claimed._replace(grants=(grant._replace(heals=1),))],
        [settled, claimed._replace(contended=True)],
    ):
        assert d.linked(link, answer, 30) is None


def test_a_link_that_failed_is_sent_again_as_it_was() -> None:
    d, held = holding_one()
    link = d.next_link(held, returned(d, held), 10)
    assert link is not None
    ops: list[Op] = link.ops
    d.failed(link, OSError("disk"))
    again = d.next_batch(20)
    assert again is not None
    assert again.ops == ops
    assert [each.index for each in commit_batch(d, again, answers(again)[1]).begin] == [1]
