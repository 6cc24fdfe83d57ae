"""What must hold of the rows of a store whatever it was asked, also what no kernel would ask."""

from collections import Counter

from stepwell.core.graph import Graph
from stepwell.core.kernel.audit import counts, parent_counters
from stepwell.core.model import AttemptStatus, GateState, NodeRow, NodeStatus, RunRow
from stepwell.core.store import Store, reader
from stepwell.stores.sqlite import SqliteStore


def check_rows(store: Store) -> None:
    for run in reader.all_runs(store):
        nodes = reader.all_nodes(store, run.id)
        if run.purpose not in ("load", "delete") and not (run.purpose == "heal" and len(nodes) < run.nodes):
            assert len(nodes) == run.nodes, f"{run.id} has {len(nodes)} of {run.nodes} nodes"
            assert counts(nodes) == (run.open, run.active, run.failed), f"{run}: the counts are not those of its rows"
            _check_parents(store, run, nodes)
            _check_attempts(store, run, nodes)
            journal = reader.list_journal(store, run.id)
            assert [entry.seq for entry in journal] == list(range(1, run.seq + 1)), f"{run.id}: the journal has a gap"
            assert (run.ended_at is not None) == run.status.terminal, f"{run.id} is {run.status}"


def _check_parents(store: Store, run: RunRow, nodes: list[NodeRow]) -> None:
    """Counters may lag only while the gate is closed: opening it derives them anew."""
    if run.gate is not GateState.OPEN:
        return
    graph = Graph.load(reader.get_graph(store, run.digest) or b"")
    for node, own in zip(nodes, graph.parents, strict=True):
        expected = parent_counters(nodes, own)
        assert (node.waiting, node.skipped) == expected, f"{run.id} {node}: its parents say {expected}"
        assert node.status is not NodeStatus.READY or node.waiting == 0, f"{run.id} {node}: ready before its parents"
        assert node.status is not NodeStatus.PENDING or node.waiting > 0, f"{run.id} {node}: forgotten"


def _check_attempts(store: Store, run: RunRow, nodes: list[NodeRow]) -> None:
    attempts = reader.list_attempts(store, run.id)
    workers = {worker.id for worker in reader.list_workers(store)}
    counted = Counter((attempt.index, attempt.status) for attempt in attempts)
    for attempt in attempts:
        assert (attempt.ended_at is None) == (attempt.status is AttemptStatus.RUNNING), f"{run.id} {attempt}"
        assert attempt.ended_at is not None or attempt.worker in workers, f"{run.id} {attempt} stands under no lease"
    for node in nodes:
        numbers = [attempt.number for attempt in attempts if attempt.index == node.index]
        assert numbers == list(range(1, node.attempt + 1)), f"{run.id} {node}: {numbers}"
        running, completed = (counted[node.index, s] for s in (AttemptStatus.RUNNING, AttemptStatus.COMPLETED))
        assert running == (node.status is NodeStatus.RUNNING), f"{run.id} {node}: {running} attempts run"
        assert completed <= (node.status is NodeStatus.COMPLETED), f"{run.id} {node}: {completed} completions"
        waits = node.status is NodeStatus.WAITING and not node.parked
        assert (node.due_at is not None) == waits or node.wakes, f"{run.id} {node}"


def check_tables(store: SqliteStore) -> None:
    """Every large payload is there for each run whose rows refer to it; every claim as long as it has attempts."""
    db = store._reader
    rows = [
        "SELECT key, input FROM run",
        *(f"SELECT run, {column} FROM attempt" for column in ("output", "error", "outcome")),
        "SELECT a.run, l.data FROM line l JOIN attempt a ON a.key = l.attempt",
    ]
    used = {(run, value[1:]) for row in rows for run, value in db.execute(row) if value and value[:1] == b"\x00"}
    kept = set(db.execute("SELECT run, hash FROM blob").fetchall())
    assert used <= kept, "a row refers to what is not kept"
    assert {run for run, _ in kept} <= {run for (run,) in db.execute("SELECT key FROM run")}, (
        "it stayed when its run went"
    )
    idle = "SELECT id FROM claim WHERE key NOT IN (SELECT key / 65536 FROM attempt)"
    assert db.execute(idle).fetchall() == []
    _check_latest(store)
    _check_ready(store)


def _check_latest(store: SqliteStore) -> None:
    """Every attempt can be found: through its node, by the index of those that ended otherwise, and by who holds it."""
    db = store._reader
    latest = "SELECT n.run, n.idx, n.attempt, n.last FROM node n WHERE n.attempt > 0"
    named = "SELECT run, idx, number, key FROM attempt"
    assert set(db.execute(latest)) <= set(db.execute(named)), "a node names another attempt than its latest"
    assert db.execute("SELECT 1 FROM node WHERE attempt = 0 AND last IS NOT NULL").fetchall() == []
    assert set(db.execute(f"{named} WHERE status < 2")) <= set(db.execute(latest)), "an attempt that nobody would find"
    held = set(db.execute("SELECT run, worker FROM held"))
    assert set(db.execute("SELECT run, worker FROM attempt WHERE status = 0")) <= held, "nobody would know it is lost"
    going_on = {run for (run,) in db.execute("SELECT key FROM run WHERE status <> 4")}
    assert {run for run, _ in held} <= going_on, "a run that has completed is still held"


def _check_ready(store: SqliteStore) -> None:
    """What can be claimed or is due can be found; what has ended has left nothing behind."""
    db = store._reader
    marked = set(db.execute("SELECT lane, graph, workflow, urgency, run FROM ready").fetchall())
    claimable = "SELECT n.lane, r.graph, r.workflow, r.urgency, r.key FROM node n JOIN run r ON r.key = n.run"
    missing = set(db.execute(f"{claimable} WHERE n.status = 1 AND r.gate = 0").fetchall()) - marked
    assert not missing, f"READY, and nobody would find it: {missing}"
    known = db.execute("SELECT marked, graph, workflow, urgency, key FROM run WHERE marked IS NOT NULL").fetchall()
    assert set(known) <= marked, "a run counts on a mark that is gone"
    unfinished = {run for (run,) in db.execute("SELECT key FROM run WHERE status < 4")}
    assert {run for *_, run in marked} <= unfinished, "a run that has ended can still be found"
    due = (
        "SELECT r.id, r.due_at, min(n.due_at) FROM run r JOIN node n ON n.run = r.key AND n.status = 3 "
        "WHERE r.gate = 0 AND n.due_at IS NOT NULL"
    )
    for run, known, first in db.execute(f"{due} GROUP BY r.key"):
        assert (known or 2**63) <= first, f"{run} is due at {first}, and is looked for at {known}"
