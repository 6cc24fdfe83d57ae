"""Every pair of ops on two connections: the first is done and not committed while the second waits or skips.

The memory store says what both orders come to. What PostgreSQL answers, and what it then holds, must be one of them; only a
claim and a sweep may leave out what others hold, and then nothing is lost: who asks again gets it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg

from stepwell.base.clock import ManualClock
from stepwell.base.ids import GateToken, RunId, WorkerId
from stepwell.core.kernel.healing import arrange
from stepwell.core.model import (
    AddNodes,
    Append,
    Claim,
    Claimed,
    Delete,
    DeleteGraph,
    Dismiss,
    Enlist,
    Finish,
    NodeStatus,
    Op,
    PutRecord,
    Receipt,
    Renew,
    Restore,
    Rewrite,
    RunStatus,
    Share,
    Sweep,
    SwitchGraph,
)
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.stores.postgres.request import BatchCall
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.audit import audit
from tests.conformance.ops import (
    TOKEN,
    WORKER,
    add_graph,
    changed,
    claim_op,
    completed,
    create,
    failed,
    gate_op,
    graph,
    retried,
)
from tests.conformance.suite.forking import PLACE
from tests.postgres_server import empty

SMALL = graph(a="", b="a", c="a", d="b c")
LATER = arrange(SMALL, graph(a="", b="a", c="a", d="b c", e="d"))
UNUSED = graph(x="")
NEW = graph(y="", z="y")
SECOND_WORKER = WorkerId("worker-2")
SERVES = (("orders", SMALL.digest),)


class World(NamedTuple):
    store: Store
    ops: dict[str, Op]


def build(store: Store, clock: ManualClock) -> World:
    """Runs in every state that an op could meet, and the ops."""
    for of in (SMALL, LATER, UNUSED):
        store.commit([*add_graph(of)])
    store.commit([Enlist(WORKER, 60_000_000, b"{}"), Enlist(SECOND_WORKER, 5_000_000, b"{}")])
    runs = ("done", "going", "waiting", "lost", "fresh", "held", "healing", "fork")
    store.commit([create(SMALL, run, **({"fork": PLACE} if run == "fork" else {})) for run in runs])
    for step in range(3):
        (claimed,) = store.commit([claim_op(claim=f"done-{step}", runs=("done",))])
        store.commit([completed(grant) for grant in claimed.grants])
    (first,) = store.commit([claim_op(claim="going-1", runs=("going", "waiting"))])
    by_run = {grant.run_id: grant for grant in first.grants}
    store.commit([completed(by_run[RunId("going")]), retried(by_run[RunId("waiting")], 5)])
    (second,) = store.commit([claim_op(claim="going-2", runs=("going",), limit=1)])
    (running,) = second.grants
    (lost,) = store.commit([claim_op(SECOND_WORKER, claim="lost", runs=("lost",))])
    store.commit([gate_op("held"), gate_op("healing", purpose="heal"), gate_op("fork", purpose="fork")])
    store.commit([PutRecord("token", "k", b"1", 0)])
    clock.advance(10)
    store.commit([Renew(WORKER, 60_000_000, (running.attempt,), 0)])
    rows = [changed(row, NodeStatus.CANCELLED) for row in reader.all_nodes(store, "held")]
    return World(store, _ops(running, lost.grants[0], tuple(rows)))


def _ops(running: Any, lost: Any, rows: tuple[Any, ...]) -> dict[str, Op]:
    other = MemoryStore(ManualClock())
    other.commit([*add_graph(SMALL), create(SMALL, "elsewhere"), gate_op("elsewhere", purpose="pause")])
    other.commit([Rewrite(RunId("elsewhere"), GateToken(TOKEN), (), Finish(RunStatus.PAUSED, False))])
    token = GateToken(TOKEN)
    return {
        "create": create(SMALL, "new"),
        "create the same otherwise": create(SMALL, "new", input=b'{"other":1}'),
        "create by key": create(SMALL, "keyed", idempotency_key="k"),
        "create by the same key": create(SMALL, "keyed-2", idempotency_key="k"),
        "add graph": add_graph(NEW)[0],
        "add nodes": AddNodes(RunId("fresh"), 0),
        "claim of runs": claim_op(claim="new-1", runs=("going", "fresh", "waiting")),
        "claim the same again": claim_op(claim="new-1", runs=("going", "fresh", "waiting")),
        "claim of what is served": claim_op(claim="new-2", serves=SERVES, limit=2),
        "claim for another": claim_op(SECOND_WORKER, claim="new-3", runs=("going", "fresh")),
        "complete": completed(running),
        "fail": failed(running),
        "try later": retried(running, 5),
        "complete what is lost": completed(lost),
        "append": Append(running.attempt, 0, "log", b"{}"),
        "enlist": Enlist(WorkerId("worker-3"), 5_000_000, b"{}"),
        "enlist again": Enlist(SECOND_WORKER, 5_000_000, b"{}"),
        "renew": Renew(WORKER, 60_000_000, (running.attempt,), 0),
        "renew what has run out": Renew(SECOND_WORKER, 60_000_000, None, 0),
        "dismiss": Dismiss(WORKER),
        "sweep": Sweep(),
        "sweep one": Sweep(run=RunId("waiting")),
        "hold": gate_op("going", token="token-2", purpose="pause"),
        "hold with another token": gate_op("going", token="token-3", stop=True),
        "rewrite": Rewrite(RunId("held"), token, rows, Finish(RunStatus.CANCELLED, False)),
        "open": Rewrite(RunId("held"), token, (), Finish(RunStatus.RUNNING, True)),
        "switch": SwitchGraph(RunId("healing"), token, LATER.digest, 0),
        "share": Share(RunId("fork"), token, RunId("done"), claim_op(claim="shared").claim_id, ((0, 1), (1, 1))),
        "restore": Restore(
            reader.require_run(other, "elsewhere"),
            tuple(reader.all_nodes(other, "elsewhere")),
            journal=tuple(reader.list_journal(other, "elsewhere")),
            finish=True,
        ),
        "delete": Delete(RunId("done")),
        "delete graph": DeleteGraph(UNUSED.digest),
        "create of that graph": create(UNUSED, "unused"),
        "put": PutRecord("token", "k", b"2"),
        "remove": PutRecord("token", "k", None),
        "put a new one": PutRecord("token", "new", b"1", 0),
        "put another in its place": PutRecord("token", "new", b"2", 0),
    }


class Ending(NamedTuple):
    """What two ops were answered, and what is then stored."""

    first: Receipt | None
    second: Receipt
    stored: dict[str, Any]


def stored(store: Store) -> dict[str, Any]:
    found: dict[str, Any] = {"records": [*reader.all_records(store, "token")]}
    found["workers"] = [(row.id, row.lease_until) for row in reader.list_workers(store)]
    for row in reader.all_runs(store):
        found[row.id] = (
            row,
            reader.all_nodes(store, row.id),
            reader.list_attempts(store, row.id),
            reader.list_journal(store, row.id),
            reader.list_lines(store, row.id),
        )
    return found


def in_memory(*names: str) -> tuple[dict[str, Receipt], dict[str, Any]]:
    clock = ManualClock()
    world = build(MemoryStore(clock), clock)
    receipts = {f"{place} {name}": world.store.commit([world.ops[name]])[0] for place, name in enumerate(names)}
    return receipts, stored(world.store)


def endings(first: str, second: str, *, commit: bool) -> list[Ending]:
    """What may come of it: the first before the second, or the other way round; of one that was rolled back the other alone."""
    if not commit:
        receipts, found = in_memory(second)
        return [Ending(None, receipts[f"0 {second}"], found)]
    one, found_one = in_memory(first, second)
    two, found_two = in_memory(second, first)
    return [
        Ending(one[f"0 {first}"], one[f"1 {second}"], found_one),
        Ending(two[f"1 {first}"], two[f"0 {second}"], found_two),
    ]


class Interleaving:
    """Two connections to one store."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock()
        self.one, self.two = PostgresStore(url, clock=self.clock), PostgresStore(url, clock=self.clock)
        self._watching = psycopg.connect(url.partition("?")[0], autocommit=True)

    def run(self, first: str, second: str, *, commit: bool) -> Ending:
        empty(self.one)
        self.clock = self.one._clock = self.two._clock = ManualClock()  # type: ignore[assignment]
        world = build(self.one, self.clock)
        answers: list[Any] = []
        with self.two._connections.one(commits=True) as waiting:
            pid = waiting.info.backend_pid
        thread = threading.Thread(target=lambda: answers.append(self.two.commit([world.ops[second]])[0]))
        with self.one._connections.one(commits=True) as connection:
            connection.execute("BEGIN")
            receipt = self.one._send(connection, BatchCall([world.ops[first]]))[0]
            thread.start()
            while thread.is_alive() and not self._waits(pid):
                time.sleep(0.0005)
            connection.execute("COMMIT" if commit else "ROLLBACK")
        thread.join(30)
        assert answers, f"{second} did not end"
        return Ending(receipt if commit else None, answers[0], stored(self.one))

    def _waits(self, pid: int) -> bool:
        statement = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock' AND state = 'active'"
        return self._watching.execute(statement, (pid,)).fetchone() is not None

    def check(self, first: str, second: str, *, commit: bool) -> None:
        found, allowed = self.run(first, second, commit=commit), endings(first, second, commit=commit)
        audit(self.one)
        if found in allowed:
            return
        words = f"{first}, then {second}, {'committed' if commit else 'rolled back'}"
        skips = isinstance(self._op(second), Claim | Sweep)
        assert skips, f"{words}\n found {_differing(found, allowed[0])}\n or {_differing(found, allowed[-1])}"
        if isinstance(found.second, Claimed):
            assert found.second.contended, f"{words}: it left something out and did not say so: {found.second}"
        # What was left out is there for who asks again.
        empty_handed = self._settled(found.stored)
        for _ in range(2):
            self.two.commit([Sweep()])
        assert self._settled(stored(self.one)) != () or empty_handed == ()

    def _op(self, name: str) -> Op:
        clock = ManualClock()
        return build(MemoryStore(clock), clock).ops[name]

    def _settled(self, found: dict[str, Any]) -> tuple[Any, ...]:
        return tuple((run, [node.status for node in rows[1]]) for run, rows in found.items() if isinstance(rows, tuple))

    def close(self) -> None:
        self._watching.close()
        self.one.close()
        self.two.close()


def _differing(found: Ending, expected: Ending) -> str:
    told = [
        f"{name}: {a} instead of {b}" for name, a, b in zip(Ending._fields, found, expected, strict=True) if a != b
    ][:2]
    parts = [key for key in expected.stored if found.stored.get(key) != expected.stored[key]]
    return f"{'; '.join(each[:600] for each in told)}; {parts}"


def pairs(step: int = 1) -> Iterator[tuple[str, str]]:
    clock = ManualClock()
    names = list(build(MemoryStore(clock), clock).ops)
    every = [(first, second) for first in names for second in names]
    return iter(every[::step])
