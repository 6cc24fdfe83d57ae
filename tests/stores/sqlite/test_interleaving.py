"""Two connections on one file, as two processes have: any two ops at once do what they do one after the other.

The memory store says what that is. Every op has a partner that wants the same node, run, gate, key or worker.
"""

import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

from stepwell.base.clock import ManualClock
from stepwell.base.ids import AttemptId, RunId, WorkerId
from stepwell.core.model import (
    AddNodes,
    Append,
    AttemptStatus,
    CountNodes,
    Delete,
    Dismiss,
    Finish,
    GetAttemptColumns,
    GetNodeColumns,
    GetOutputs,
    ListAttempts,
    ListJournal,
    ListLines,
    ListMarks,
    ListNodes,
    ListReady,
    ListRuns,
    ListStops,
    ListUnfinished,
    ListWorkers,
    NodeChange,
    NodeStatus,
    Op,
    Query,
    Renew,
    Rewrite,
    RunStatus,
    Settle,
    StoreLimits,
    Sweep,
)
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.core.store.memory import shaping as memory_shaping
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.ops import creating
from tests.conformance.audit import audit
from tests.conformance.invariants import check_tables
from tests.conformance.ops import (
    CHUNK,
    LANE,
    add_graph,
    claim,
    claim_op,
    completed,
    create,
    end_run,
    enlist,
    failed,
    gate_op,
    graph,
    hold,
    start,
)

RACES = 2
"""How often two ops, in each order, are let loose on each other, besides the time when one is held up in the middle."""
WAIT = 20.0

SMALL = graph(a="", b="", c="a", d="b c", e="")
LARGE = graph(a="", b="", c="", d="a", e="a", f="b", g="d", h="")
RUNS = tuple(map(RunId, ("live", "held", "loading", "ended", "new", "other")))
QUERIES: list[Query] = [
    ListRuns(),
    ListWorkers(),
    ListUnfinished(),
    ListReady((LANE,), RUNS),
    *(ListStops(WorkerId(worker)) for worker in ("alive", "late")),
    *(
        query(run)
        for run in RUNS
        for query in (
            *(ListNodes, ListAttempts, GetNodeColumns, GetAttemptColumns, GetOutputs),
            *(ListJournal, ListLines, ListMarks, CountNodes),
        )
    ),
]


def prepare(store: Store, clock: ManualClock) -> None:
    """A run with attempts of a live and of a late worker, one behind a gate whose holder is late, one half loaded, one over.

    `live`: a runs under the live worker, b under the late one, e is READY. `held`: a runs under the live worker.
    """
    enlist(store, "alive", seconds=600)
    enlist(store, "late", seconds=10)
    start(store, SMALL, "ended")
    a, b, e = claim(store, "alive", claim="claim-e", runs=("ended",))
    store.commit([completed(a), Append(b.attempt, 0, "log", b'"old"'), failed(b), completed(e)])
    end_run(store, "ended", RunStatus.FAILED)
    start(store, SMALL, "live")
    start(store, SMALL, "held")
    claim(store, "alive", 1, claim="claim-a", runs=("live",))
    claim(store, "late", 1, claim="claim-b", runs=("live",))
    claim(store, "alive", 1, claim="claim-h", runs=("held",))
    hold(store, "held", "first")
    store.commit([*add_graph(LARGE), create(LARGE, "loading")])
    clock.advance(1)
    store.commit([Renew(WorkerId("alive"), 600_000_000, None)])
    clock.advance(40)


def settle(claim: str, status: str, **more: Any) -> Settle:
    return Settle(AttemptId(claim + ".0"), AttemptStatus(status), NodeStatus(status), **more)


def cancelled(index: int) -> NodeChange:
    was = NodeStatus.PENDING if SMALL.parents[index] else NodeStatus.READY
    return NodeChange(index, was, 0, NodeStatus.CANCELLED)


A_RUNS = NodeChange(0, NodeStatus.RUNNING, 1, NodeStatus.RUNNING)
SHUT = Finish(RunStatus.CANCELLING, False, grace=5_000_000)
REOPEN = Finish(RunStatus.RUNNING, True)

EVERY = ("ended", "held", "live", "loading", "new", "other")

OPS: dict[str, Op] = {
    "create": create(SMALL, "new", idempotency_key="key"),
    "create, same key": create(SMALL, "other", idempotency_key="key"),
    "create, other input": create(SMALL, "new", input=b"{}"),
    "claim": claim_op("alive", 1, claim="claim-1", runs=EVERY),
    "claim more": claim_op("alive", 9, claim="claim-2", runs=EVERY),
    "claim, late": claim_op("late", 9, claim="claim-3", runs=EVERY),
    "complete": settle("claim-a", "COMPLETED", output=b"1"),
    "fail": settle("claim-a", "FAILED", error=b'{"type":"ValueError"}'),
    "complete, late": settle("claim-b", "COMPLETED", output=b"2"),
    "complete, held": settle("claim-h", "COMPLETED", output=b"3"),
    "append": Append(AttemptId("claim-a.0"), 0, "log", b'"line"'),
    "renew": Renew(WorkerId("alive"), 600_000_000, (AttemptId("claim-h.0"),)),
    "sweep": Sweep(),
    "dismiss": Dismiss(WorkerId("alive")),
    "dismiss, late": Dismiss(WorkerId("late")),
    "gate": gate_op("live", "second", stop=True),
    "gate, held": gate_op("held", "second", resume=True),
    "gate, ended": gate_op("ended", "second", "retry"),
    "shut": Rewrite(RunId("held"), "first", (A_RUNS, *map(cancelled, (1, 2, 3, 4))), SHUT),  # type: ignore[arg-type]
    "reopen": Rewrite(RunId("held"), "first", (A_RUNS,), REOPEN),  # type: ignore[arg-type]
    "add nodes": AddNodes(RunId("loading"), len(SMALL)),
    "delete": Delete(RunId("ended")),
    "delete a part": Delete(RunId("ended"), 2),
}


class Outcome(NamedTuple):
    first: Any
    second: Any
    rows: list[Any]


class Watched(SqliteStore):
    """A store that says when it begins, and can be held up when everything is done but the commit."""

    begins: threading.Event | None = None
    before_commit: Callable[[], None] | None = None

    def _begin(self) -> None:
        if self.begins is not None:
            self.begins.set()
        super()._begin()

    def _apply(self, *arguments: Any) -> list[Any]:
        receipts = super()._apply(*arguments)
        if self.before_commit is not None:
            self.before_commit()
        return receipts


class Pair(NamedTuple):
    one: Watched
    two: Watched
    again: Callable[[], None]
    """Puts both back to the starting state."""


@pytest.fixture(scope="module", autouse=True)
def small_chunks() -> Iterator[None]:
    """Chunks of five nodes, so that eight are loaded in two steps. The statements of SQLite have the number in them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (memory_shaping, creating):
            for name, value in vars(module).copy().items():
                if isinstance(value, str) and str(CHUNK) in value and not name.startswith("__"):
                    patch.setattr(module, name, value.replace(str(CHUNK), str(len(SMALL))))
            patch.setattr(module, "LIMITS", StoreLimits(nodes=len(SMALL)))
        yield


@pytest.fixture(scope="module")
def pair(small_chunks: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder, clock = tmp_path_factory.mktemp("interleaving"), ManualClock()
    template = SqliteStore(folder / "template.db", clock=clock, synchronous="normal")
    prepare(template, clock)
    stores = [Watched(folder / "runs.db", clock=clock, synchronous="normal") for _ in range(2)]

    def again() -> None:
        with stores[0]._writer.backup("main", template._reader, "main") as backup:
            backup.step()

    again()
    yield Pair(stores[0], stores[1], again)
    for store in (*stores, template):
        store.close()


@cache
def in_turn(first: Op, second: Op) -> tuple[Outcome, list[Any]]:
    """What the specification says to the one op and then the other, and the rows in between."""
    clock = ManualClock()
    store = MemoryStore(clock)
    prepare(store, clock)
    receipt = store.commit([first])
    between = store.read(QUERIES)
    outcome = Outcome(receipt, store.commit([second]), store.read(QUERIES))
    audit(store)
    return outcome, between


def at_once(pair: Pair, first: Op, second: Op) -> tuple[Outcome, list[list[Any]]]:
    """Both at the same moment, and what each connection saw directly after its own commit."""
    pair.again()
    found: dict[int, tuple[Any, list[Any]]] = {}
    ready = threading.Barrier(2)

    def act(number: int, store: Store, op: Op) -> None:
        ready.wait(WAIT)
        found[number] = store.commit([op]), store.read(QUERIES)

    other = threading.Thread(target=act, args=(2, pair.two, second))
    other.start()
    act(1, pair.one, first)
    other.join(WAIT)
    (one, saw_one), (two, saw_two) = found[1], found[2]
    return Outcome(one, two, pair.one.read(QUERIES)), [saw_one, saw_two]


def held_up(pair: Pair, first: Op, second: Op) -> Outcome:
    """The second begins when the first has done everything but the commit, and sees nothing of it."""
    pair.again()
    begins, seen, receipts = threading.Event(), [pair.two.read(QUERIES)], []
    other = threading.Thread(target=lambda: receipts.extend(pair.two.commit([second])))

    def interfere() -> None:
        other.start()
        assert begins.wait(WAIT)
        seen.append(pair.two.read(QUERIES))

    pair.one.before_commit, pair.two.begins = interfere, begins
    try:
        receipt = pair.one.commit([first])
        other.join(WAIT)
    finally:
        pair.one.before_commit = pair.two.begins = None
    assert seen[0] == seen[1], "an unfinished commit was seen"
    return Outcome(receipt, receipts, pair.one.read(QUERIES))


def test_the_starting_state_is_the_same_everywhere_and_every_op_does_something_to_it(pair: Pair) -> None:
    pair.again()
    clock = ManualClock()
    memory = MemoryStore(clock)
    prepare(memory, clock)
    rows = memory.read(QUERIES)
    assert pair.one.read(QUERIES) == pair.two.read(QUERIES) == rows
    assert reader.require_run(memory, "loading").purpose == "load"
    idle = {name for name, op in OPS.items() if in_turn(op, Sweep())[1] == rows}
    assert idle == {"claim, late"}, "whose lease is over"


@pytest.mark.parametrize("first", OPS)
def test_an_op_waits_for_another_that_is_not_committed_yet(pair: Pair, first: str) -> None:
    for second, op in OPS.items():
        expected, _ = in_turn(OPS[first], op)
        assert held_up(pair, OPS[first], op) == expected, f"{first}, then {second}"
        audit(pair.two)
        check_tables(pair.two)


@pytest.mark.parametrize("first", OPS)
def test_two_ops_at_once_do_what_they_do_one_after_the_other(pair: Pair, first: str) -> None:
    for second, op in OPS.items():
        one, after_one = in_turn(OPS[first], op)
        swapped, after_two = in_turn(op, OPS[first])
        two = Outcome(swapped.second, swapped.first, swapped.rows)
        for _ in range(RACES):
            found, (saw_one, saw_two) = at_once(pair, OPS[first], op)
            assert found in (one, two), f"{first} and {second} at once"
            assert saw_one in (after_one, one.rows, two.rows), f"{first} beside {second}"
            assert saw_two in (after_two, one.rows, two.rows), f"{second} beside {first}"
        audit(pair.two)
