"""Which run comes first: the most urgent, then the one that was started first; and no run is forgotten."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from stepwell import Builder, Engine, Workflow, step
from stepwell.base.ids import RunId
from stepwell.core.model import StoreLimits
from stepwell.engine.scheduling.claims import SERVED_EVERY
from stepwell.engine.scheduling.ready import MAX_PAIRS_NAMED, RunQueue, first_of
from tests.conformance.ops import LANE
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.schedulers import claims, commit_batch, end, facts, granted, scheduler
from tests.engine.waiting import eventually

STARTED: list[int] = []
GO = threading.Event()


class Urgent(Workflow):
    number: int

    @step
    def note(self) -> None:
        GO.wait(20)
        STARTED.append(self.number)


def test_an_urgent_run_overtakes_hundreds_that_wait(open_engine: OpenEngine) -> None:
    STARTED.clear()
    GO.clear()
    engine = open_engine(max_concurrent_nodes=2, queue_depth=0)
    engine.start_many([Urgent(number=number) for number in range(StoreLimits().runs + 44)])
    urgent = engine.start(Urgent(number=-1), priority=10)
    GO.set()
    urgent.wait(20)
    assert STARTED.index(-1) <= 4


def test_of_many_known_runs_the_most_urgent_are_named_then_the_oldest() -> None:
    d = scheduler()
    for number in range(StoreLimits().runs + 20):
        known = facts(f"r{number}")
        known.priority = 5 if number in (7, StoreLimits().runs + 7) else -1 if number == 0 else 0
        d.know(known)
    (claim,) = claims(d.next_batch(0))
    expected = ["r7", f"r{StoreLimits().runs + 7}", *(f"r{n}" for n in range(1, StoreLimits().runs) if n != 7)]
    assert list(claim.runs or ()) == expected[: StoreLimits().runs]


def test_runs_that_could_not_be_named_come_when_those_before_them_have_nothing() -> None:
    d = scheduler()
    for number in range(2 * StoreLimits().runs + 1):
        d.know(facts(f"r{number}"))
    named: list[str] = []
    while (batch := d.next_batch(0)) is not None:
        named += [
            run for claim in claims(batch) if str(claim.lanes[0][0]) == "default/thread" for run in claim.runs or ()
        ]
        commit_batch(d, batch)
    assert named == [f"r{number}" for number in range(2 * StoreLimits().runs + 1)]


def test_runs_of_others_have_their_turn_while_own_ones_never_end() -> None:
    d = scheduler(threads=1)
    d.serves = {("w", "digest"): frozenset({LANE})}
    d.know(facts("own", width=1_000))
    d.look_around()
    now = 1
    for index in range(10):
        now += SERVED_EVERY
        batch = d.next_batch(now)
        assert batch is not None
        (claim,) = claims(batch)
        if claim.serves:
            return
        (held,) = commit_batch(d, batch, granted(claim, ("own", index)), now=now).begin
        end(d, held, now)
    raise AssertionError("it never looked for runs of others")


def test_a_served_claim_names_some_pairs_at_a_time_and_all_of_them_in_turn() -> None:
    d = scheduler()
    d.serves = {("w", f"{number:03}"): frozenset({LANE}) for number in range(2 * MAX_PAIRS_NAMED + 5)}
    d.look_around()
    named: list[tuple[str, str]] = []
    while (batch := d.next_batch(0)) is not None:
        for claim in claims(batch):
            if str(claim.lanes[0][0]) == "default/thread":
                assert len(claim.serves or ()) <= MAX_PAIRS_NAMED
                named += claim.serves or ()
        commit_batch(d, batch)
    assert named == sorted(d.serves)


def test_a_window_that_gave_all_it_was_asked_for_comes_again_after_the_others() -> None:
    d = scheduler(threads=1, queue_depth=0)
    d.serves = {("w", f"{number:03}"): frozenset({LANE}) for number in range(MAX_PAIRS_NAMED + 1)}
    d.know(facts("unknown"))
    d.look_around()
    asked = []
    for _ in range(20):
        batch = d.next_batch(0)
        if batch is None:
            break
        served = [claim for claim in claims(batch) if claim.serves and str(claim.lanes[0][0]) == "default/thread"]
        asked += [claim.serves[0][1] for claim in served if claim.serves]
        for held in commit_batch(d, batch, *(granted(claim, ("unknown", 0)) for claim in served)).begin:
            end(d, held)
    assert asked[:4] == ["000", f"{MAX_PAIRS_NAMED:03}"] * 2


def test_a_worker_forgets_graphs_whose_runs_have_ended(open_sqlite: OpenEngine) -> None:
    server = open_sqlite()
    server.work(wait=0)
    starter = open_sqlite(runner=None)
    for number in range(5):
        builder = Builder("once")
        builder.node(f"n{number}", job=jobs.nothing)
        starter.start(builder, run_id=f"r{number}")
        eventually(lambda n=number: starter.get(f"r{n}").status == "COMPLETED", "it was not served")  # type: ignore[misc]
    eventually(lambda: not pairs_served(server), "it still serves what has ended", show=lambda: pairs_served(server))


def pairs_served(engine: Engine) -> list[tuple[str, str]]:
    assert engine.parts.work.runner is not None
    engine.parts.work.discover()
    return sorted(engine.parts.work.runner.scheduler.serves)


RUNS = st.integers(0, 11)
PLACES = {run: (run % 3, run, RunId(f"run{run}")) for run in range(12)}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), RUNS), max_size=60), st.integers(0, 13))
def test_queues_are_in_order_whatever_comes_and_goes(changes: list[tuple[bool, int, int]], count: int) -> None:
    queues, expected = [RunQueue() for _ in range(3)], [set[int]() for _ in range(3)]
    for adds, number, run in changes:
        if adds:
            queues[number].add(PLACES[run])
            expected[number].add(run)
        else:
            queues[number].discard(PLACES[run][2])
            expected[number].discard(run)

    def ordered(runs: set[int]) -> list[RunId]:
        return [run for _, _, run in sorted(PLACES[each] for each in runs)]

    for queue, runs in zip(queues, expected, strict=True):
        assert list(queue) == ordered(runs)
        assert bool(queue) == bool(runs)
        assert [run for run in range(12) if PLACES[run][2] in queue] == sorted(runs)
        assert list(queue.first(count)) == ordered(runs)[:count] or (count == 0 and len(runs) == 1)
    for few in range(1, 4):
        assert list(first_of(queues[:few], count)) == ordered(set[int]().union(*expected[:few]))[:count] or count == 0
