"""What broke in the systems that this one comes from, each by its name; and chains, as the memory store does them."""

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from stepwell import Builder, Context, Engine, Retry
from stepwell.base.clock import ManualClock
from stepwell.base.ids import AttemptId, ClaimId, RunId
from stepwell.core.graph import NodeSpec
from stepwell.core.model import AttemptStatus, Claim, Claimed, NodeStatus, Refused, RunStatus, Settle, Settled
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from stepwell.stores.redis.store import RedisStore
from tests.conformance.audit import audit
from tests.conformance.ops import (
    RUN,
    WORKER,
    add_graph,
    by_name,
    changed,
    claim,
    claim_op,
    completed,
    create,
    enact,
    enlist,
    failed,
    graph,
    node,
    serve,
    spec,
    statuses,
    sweep,
    work,
)
from tests.engine.ledger import note, noted
from tests.servers.redis_server import RedisServer

GOOD = (AttemptStatus.COMPLETED, NodeStatus.COMPLETED)
DIAMOND = {"top": "", "left": "top", "right": "top", "bottom": "left right"}


def at_once(*actions: Callable[[], object]) -> None:
    """Each in a thread of its own, all at the same moment."""
    barrier, errors = threading.Barrier(len(actions)), []

    def run(action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_two_parents_complete_at_the_same_millisecond(url: str) -> None:
    """Their child is released once, and not lost, in each of forty tries."""
    stores = [RedisStore(url), RedisStore(url)]
    first, second = stores
    of = graph(**DIAMOND)
    enlist(first)
    first.commit(add_graph(of))
    for number in range(40):
        first.commit([create(of, f"run-{number}")])
        (top,) = claim(first)
        first.commit([completed(top)])
        sides = claim(first)
        assert len(sides) == 2
        at_once(
            lambda: first.commit([completed(sides[0])]),  # noqa: B023
            lambda: second.commit([completed(sides[1])]),  # noqa: B023
        )
        (bottom,) = claim(second)
        assert of.order[bottom.index] == "bottom"
        first.commit([completed(bottom)])
        assert reader.require_run(first, f"run-{number}").status == "COMPLETED"
    audit(first)
    for store in stores:
        store.close()


def test_the_same_message_comes_ten_times(url: str) -> None:
    """A claim that is delivered ten times at once grants its nodes once, and a completion counts once."""
    stores = [RedisStore(url) for _ in range(10)]
    of = serve(stores[0], graph(**DIAMOND))
    for round_ in range(3):
        op, granted, settled = claim_op(claim=f"claim-{round_}"), [], []
        at_once(*(lambda s=s: granted.append(s.commit([op])[0]) for s in stores))  # type: ignore[misc]  # noqa: B023
        assert all(receipt == granted[0] for receipt in granted)
        done = [completed(grant) for grant in granted[0].grants]
        at_once(*(lambda s=s: settled.extend(s.commit(done)) for s in stores))  # type: ignore[misc]  # noqa: B023
        assert all(isinstance(receipt, Settled) for receipt in settled)
        assert sum(not receipt.repeated for receipt in settled) == len(done)
    assert reader.require_run(stores[0], RUN).status == "COMPLETED"
    assert [row.attempt for row in reader.all_nodes(stores[0], RUN)] == [1] * len(of)
    audit(stores[0])
    for store in stores:
        store.close()


def test_a_worker_dies_after_the_body_and_before_the_report(server: RedisServer, url: str) -> None:
    """The node runs again under another attempt, and what the dead one reports after all is refused."""
    clock = ManualClock()
    store = RedisStore(url, clock=clock)
    serve(store, graph(a="", b="a"))
    (grant,) = claim(store)
    clock.advance(3600)
    enlist(store, "another")
    assert sweep(store).lost == 1
    (again,) = claim(store, "another")
    assert (again.index, again.number, again.losses) == (grant.index, 2, 1)
    assert isinstance(store.commit([completed(grant, b'"late"')])[0], Refused)
    store.commit([completed(again, b'"in time"')])
    assert [row.status for row in reader.list_attempts(store, RUN)] == ["LOST", "COMPLETED"]
    assert work(store, "another") == 1
    audit(store)
    store.close()


def test_a_late_success_after_the_failure_moves_nothing_forward(url: str) -> None:
    """Of two nodes that run side by side one fails the run; the other completes behind the closed gate, and is recorded."""
    store = RedisStore(url)
    of = serve(store, graph(good="", bad="", after="good"), on_failure="fail_fast")
    running = by_name(of, claim(store))
    store.commit([failed(running["bad"])])
    (late,) = store.commit([completed(running["good"], b'"late"')])
    assert isinstance(late, Settled)
    assert statuses(store) == {"good": "COMPLETED", "bad": "FAILED", "after": "PENDING"}
    assert claim(store) == ()
    dropped = changed(node(store, of.index["after"]), NodeStatus.UPSTREAM_FAILED)
    enact(store, "failed", RunStatus.FAILED, dropped)
    assert reader.require_run(store, RUN).status == "FAILED"
    assert claim(store) == ()
    audit(store)
    store.close()


def test_a_partial_retry_runs_only_what_has_not_completed(url: str, tmp_path: Path) -> None:
    ledger, mended = f"{tmp_path}/ledger", tmp_path / "mended"
    w = Builder("partly")
    parts = w.fan_out(
        range(6), job=part, args=lambda number: {"number": number, "ledger": ledger, "mended": str(mended)}
    )
    w.node("join", job=join, args={"ledger": ledger}, depends_on=parts)
    with Engine(url, jobs=[__name__]) as engine:
        run = engine.run(w, check=False)
        assert run.status == "FAILED"
        done = [line for line in noted(ledger) if line.startswith("done")]
        mended.touch()
        run.retry().wait(60)
        assert run.status == "COMPLETED"
        again = noted(ledger)
        assert [again.count(line) for line in done] == [1] * len(done), "what had completed ran again"
        assert again.count("joined") == 1
        audit(engine.store)


def part(number: int, ledger: str, mended: str, ctx: Context) -> int:
    if number == 3 and not Path(mended).exists():
        while len(noted(ledger)) < 3:  # some have completed by then
            time.sleep(0.005)
        raise ValueError("not yet")
    note(ledger, "done", number)
    return number


def join(ledger: str, ctx: Context) -> None:
    note(ledger, "joined")


def shape(chance: random.Random) -> list[NodeSpec]:
    """Mostly a chain, with a branch now and then; some nodes ask for the output of another."""
    specs: list[NodeSpec] = []
    for number in range(chance.randint(3, 12)):
        parents = {specs[-1].id} if specs and chance.random() < 0.9 else set()
        if specs and chance.random() < 0.2:
            parents.add(chance.choice(specs).id)
        needs = [parent for parent in sorted(parents) if chance.random() < 0.5]
        specs.append(spec(f"n{number}", " ".join(sorted(parents)), needs=" ".join(needs), retry=Retry(9)))
    return specs


def test_chains_are_worked_off_as_the_memory_store_does_it(url: str) -> None:
    """One completion and one claim in each batch: same receipts, same rows."""
    chance, clock = random.Random(7), ManualClock()
    memory, store = MemoryStore(clock), RedisStore(url, clock=clock)
    for number in range(60):
        of, run = graph(*shape(chance)), RunId(f"run-{number}")
        for each in (memory, store):
            enlist(each)
            each.commit(add_graph(of))
            each.commit([create(of, run)])
        running: list[AttemptId] = []
        for turn in range(100):
            clock.advance(chance.choice((0, 0.001)))
            op = Claim(ClaimId(f"{run}-{turn}"), WORKER, ((spec("x").lane, chance.randint(1, 2)),), (run,))
            done = chance.sample(running, 1) if running and chance.random() < 0.9 else []
            batch = [*(Settle(each, *GOOD, b'"%d"' % turn) for each in done), op]
            expected, found = memory.commit(batch), store.commit(batch)
            assert list(found) == list(expected)
            if chance.random() < 0.2:  # its answer was lost
                assert list(store.commit(batch)) == list(memory.commit(batch))
            claimed = expected[-1]
            assert isinstance(claimed, Claimed)
            running = [each for each in running if each not in done] + [grant.attempt for grant in claimed.grants]
            if not running:
                break
        for look in (reader.all_nodes, reader.list_attempts, reader.list_journal, reader.get_run):
            assert look(store, run) == look(memory, run)  # type: ignore[operator]
    audit(store)
    store.close()
