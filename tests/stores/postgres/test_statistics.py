"""A server without statistics, or with wrong ones: commits read what they need, and nothing that grows with what is stored."""

import time
from collections.abc import Callable

import psycopg

from stepwell import Builder, Engine
from stepwell.core.model import ListReady
from stepwell.core.store import reader
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance import ops
from tests.postgres_server import QUICK, PostgresServer
from tests.stores.postgres.sizes import size

ROWS = size(5_000, 1_000_000)
"""Nodes of ended runs that are stored already."""
PER_RUN = 1_000
ENTRIES_A_NODE = 100
"""So many entries of indexes are read for a node at most, of whatever tables; usual are about 25."""
_FILL = """
INSERT INTO {s}.graph (digest, workflow, signature, document, total, loaded, roots, registered_at)
SELECT 'filler-' || g, 'filler', '', '', {per_run}, {per_run}, 1, 0 FROM generate_series(1, {runs}) g;
INSERT INTO {s}.layout (graph, idx, id, parents, lane, rank, removed)
SELECT g.key, i, 'n' || i, 1, 1, i, false FROM {s}.graph g, generate_series(0, {per_run} - 1) i WHERE workflow = 'filler';
INSERT INTO {s}.edge (graph, parent, child)
SELECT g.key, i, i + 1 FROM {s}.graph g, generate_series(0, {per_run} - 2) i WHERE workflow = 'filler';
INSERT INTO {s}.run (id, workflow, graph, status, on_failure, input, seed, urgency, gate, total, loaded, open, active, seq,
                     created_at, ended_at)
SELECT 'filler-' || key, 'filler', key, 4, 'fail_fast', '', 0, 0, 2, {per_run}, {per_run}, 0, 0, 2 * {per_run}, 0, 0
  FROM {s}.graph WHERE workflow = 'filler';
INSERT INTO {s}.node (run, idx, status, waiting, lane, rank, attempt)
SELECT r.key, i, 4, 0, 1, i, 1 FROM {s}.run r, generate_series(0, {per_run} - 1) i WHERE workflow = 'filler';
INSERT INTO {s}.claim (id) SELECT 'filler-' || i FROM generate_series(1, {rows}) i;
INSERT INTO {s}.attempt (key, run, idx, number, status, worker, started_at, ended_at)
SELECT ((SELECT min(key) FROM {s}.claim WHERE id LIKE 'filler-%') + row_number() OVER () - 1) * 65536,
       run, idx, 1, 1, 'filler', 0, 0
  FROM {s}.node WHERE run IN (SELECT key FROM {s}.run WHERE workflow = 'filler');
INSERT INTO {s}.journal (run, seq, at, kind, idx, number)
SELECT run, 2 * idx + k, 0, k, idx, 1 FROM {s}.node, generate_series(1, 2) k
 WHERE run IN (SELECT key FROM {s}.run WHERE workflow = 'filler')
"""
_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'stepwell %'"
_READ = """
SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '{s}')::bigint,
       (SELECT sum(seq_tup_read) FROM pg_stat_user_tables
         WHERE schemaname = '{s}' AND relname IN ('run', 'node', 'attempt', 'journal', 'claim', 'edge', 'layout'))::bigint
"""
_OF_READY = """
SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '{s}' AND relname IN ('ready', 'held')
"""


def nothing() -> None:
    return None


def chain(nodes: int) -> Builder:
    builder = Builder("chain")
    for number in range(nodes):
        builder.node(f"n{number}", job=nothing)
    return builder


def fan(width: int) -> Builder:
    builder = Builder("fan")
    builder.node("first", job=nothing)
    builder.fan_out(range(width), job=nothing, args=lambda _: {})
    builder.node("last", job=nothing)
    return builder


def diamond() -> Builder:
    builder = Builder("diamond")
    builder.node("top", job=nothing)
    builder.node("left", job=nothing, depends_on="top")
    builder.node("right", job=nothing, depends_on="top")
    builder.node("bottom", job=nothing, depends_on=["left", "right"])
    return builder


def read_by(server: PostgresServer, url: str, work: Callable[[Engine], None]) -> tuple[int, int]:
    """(entries of indexes, rows of tables from end to end) that were read for this."""
    counted = _READ.format(s=url.rpartition("=")[2])
    ((entries, rows),) = server.execute(counted)
    with Engine(url, runner=None) if work is look_for_unfinished else Engine(url) as engine:
        work(engine)
    wait_for_counts(server)
    ((entries_after, rows_after),) = server.execute(counted)
    return int(str(entries_after)) - int(str(entries)), int(str(rows_after)) - int(str(rows))


def read_of_ready(server: PostgresServer, url: str) -> int:
    """Entries of indexes that a fan of 1,000 reads to find what is READY or held."""
    counted = _OF_READY.format(s=url.rpartition("=")[2])
    ((before,),) = server.execute(counted)
    with Engine(url, max_concurrent_nodes=2, queue_depth=10) as engine:  # which claims often
        engine.run(fan(1_000))
    wait_for_counts(server)
    ((after,),) = server.execute(counted)
    return int(str(after)) - int(str(before))


def wait_for_counts(server: PostgresServer) -> None:
    """Servers count what a session has read when it ends."""
    ended_by = time.monotonic() + 30
    while server.execute(_SESSIONS) != [(0,)] and time.monotonic() < ended_by:
        time.sleep(0.05)


def work_on_all_shapes(engine: Engine) -> None:
    engine.run(chain(150))
    engine.run(fan(1_000))
    for run in engine.start_many(diamond() for _ in range(100)):
        run.wait()


def look_for_unfinished(engine: Engine) -> None:
    assert [found.workflow for found in reader.list_unfinished(engine.store)] == ["diamond"]


NODES = 150 + 1_002 + 400


def test_what_a_commit_reads_does_not_grow_with_what_is_stored() -> None:
    server = PostgresServer(*QUICK, "-c", "autovacuum=off")
    try:
        url = server.new_url()
        schema = url.rpartition("=")[2]
        with Engine(url) as engine:
            engine.run(chain(3))
        server.execute(_FILL.format(s=schema, per_run=PER_RUN, runs=ROWS // PER_RUN, rows=ROWS))
        entries, rows = read_by(server, url, work_on_all_shapes)
        assert entries < ENTRIES_A_NODE * NODES
        assert rows < NODES, "tables were read from end to end"

        # What is READY or held was all gone when these tables were analysed: they are not walked through for each row.
        for table in ("ready", "held", "offer", "due", "node", "attempt", "run", "edge"):
            server.execute(f"ANALYZE {schema}.{table}")
        assert server.execute(f"SELECT reltuples FROM pg_class WHERE oid = '{schema}.ready'::regclass") == [(0,)]
        assert read_of_ready(server, url) < 20 * 1_000, "usual are 5 a node"
        # Nor is what was claimed before, which cannot be removed while an old transaction is open.
        with psycopg.connect(server.url("postgres")) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT txid_current()")
            assert read_of_ready(server, url) < 20 * 1_000, "usual are 5 a node here too"

        # What unfinished runs need is told without looking at each of them.
        server.execute(f"UPDATE {schema}.run SET status = 1, gate = 0, ended_at = NULL WHERE workflow = 'diamond'")
        entries, _ = read_by(server, url, look_for_unfinished)
        assert entries < 200, "200 runs of one graph are unfinished"
    finally:
        server.close()


def test_who_looks_for_work_does_not_walk_over_what_was_claimed_before(postgres: PostgresServer) -> None:
    """An old transaction keeps all of it in the index."""
    width, each, turns = 1_000, 5, 100
    url = postgres.new_url()
    with psycopg.connect(postgres.url("postgres")) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT txid_current()")
        store = PostgresStore(url)
        of = ops.graph(*(ops.spec(f"n{number}") for number in range(width)))
        ops.serve(store, of, seconds=600)
        served = (("orders", of.digest),)
        assert len(ops.claim(store, limit=width - each * turns)) == width - each * turns
        for _ in range(turns):
            assert len(ops.claim(store, limit=each, lanes=[(ops.LANE, each)], serves=served)) == each
            store.read([ListReady((ops.LANE,), serves=served), ListReady((ops.LANE,), (ops.RUN,))])
        assert ops.claim(store, serves=served) == ()
        store.close()
    wait_for_counts(postgres)
    ((entries,),) = postgres.execute(_OF_READY.format(s=url.rpartition("=")[2]))
    assert int(str(entries)) < 20 * width, "usual are 6 a node; walking over it takes 450"
