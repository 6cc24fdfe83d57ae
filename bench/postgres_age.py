"""`python -m bench.postgres_age [old] [many]`: a PostgreSQL store after a million nodes, and claims beside an old transaction.

Autovacuum is on, as it is by default. Prints Markdown: docs/postgres.md has what was measured last.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from stepwell import Engine
from tests.postgres_server import PostgresServer

from .shapes import Diamond, chain, fan

NODES, WIDTH, SMALL = 1_000_000, 10_000, 1_000
OLD = 100_000


def main(parts: list[str]) -> None:
    server = PostgresServer("-c", "track_functions=pl", "-c", "max_wal_size=4GB")
    try:
        if "old" in parts:
            print(f"## Claims beside a transaction that has been open for {OLD:,} nodes\n", flush=True)
            beside_old_transaction(server)
        if "many" in parts:
            print(f"\n## After {NODES:,} nodes\n", flush=True)
            after_many(server, NODES)
    finally:
        server.close()


def beside_old_transaction(server: PostgresServer) -> None:
    """Fans of 10,000 up to the number of nodes, and one of as many; each without such a transaction and with one."""
    for width in (WIDTH, OLD):
        found = {}
        for old in (False, True):
            url = server.new_url()
            with Engine(url) as engine, _open_transaction(server, old):
                engine.run(fan(100))
                for _ in range(OLD // width - 1):
                    engine.run(fan(width))
                server.execute("SELECT pg_stat_reset()")
                began = time.perf_counter()
                engine.run(fan(width))
                seconds = time.perf_counter() - began
            time.sleep(2)  # what functions took is told when sessions end or rest
            ((claims,),) = server.execute(
                "SELECT sum(total_time) FROM pg_stat_user_functions WHERE funcname = 'claim_nodes'"
            )
            found[old] = float(str(claims)) * 1e3 / width, 1e6 * seconds / width
        claims = found[True][0] / found[False][0]
        print(
            f"- the last of {OLD // width} x {width:,} nodes: a claim {found[False][0]:.0f} us a node, beside it",
            end=" ",
        )
        print(
            f"{found[True][0]:.0f} ({claims:.2f} x); all of it {found[False][1]:.0f} and {found[True][1]:.0f} us",
            flush=True,
        )


@contextmanager
def _open_transaction(server: PostgresServer, wanted: bool) -> Iterator[None]:
    with psycopg.connect(server.url("postgres")) as connection:
        if wanted:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT txid_current()")
        yield


def after_many(server: PostgresServer, nodes: int) -> None:
    """A tenth in small runs, a hundredth in chains, the rest in fans."""
    url = server.new_url()
    began, done = time.perf_counter(), 0
    with Engine(url, workflows=[Diamond]) as engine:
        while done < nodes // 100:
            engine.run(chain(SMALL))
            done += SMALL
        while done < nodes // 10:
            for run in engine.start_many(Diamond() for _ in range(SMALL)):
                run.wait()
            done += 4 * SMALL
        while done < nodes:
            engine.run(fan(WIDTH))
            done += WIDTH + 2
    print(f"{done:,} nodes in {time.perf_counter() - began:.0f} s.\n")
    schema = url.rpartition("=")[2]
    _sizes(server, schema, done)
    for (table,) in server.execute(f"SELECT relname FROM pg_stat_user_tables WHERE schemaname = '{schema}'"):
        server.execute(f"VACUUM {schema}.{table}")
    print("\nAfter VACUUM:\n")
    _sizes(server, schema, done)


def _sizes(server: PostgresServer, schema: str, nodes: int) -> None:
    time.sleep(2)
    print("| table | rows | dead | table MB | indexes MB | updates, HOT |\n|---|---|---|---|---|---|")
    rows = server.execute(
        f"""SELECT relname, n_live_tup, n_dead_tup, pg_table_size(relid), pg_indexes_size(relid), n_tup_upd, n_tup_hot_upd
              FROM pg_stat_user_tables WHERE schemaname = '{schema}' AND pg_total_relation_size(relid) > 1000000
             ORDER BY pg_total_relation_size(relid) DESC"""
    )
    total = 0
    for table, live, dead, size, indexes, updates, hot in rows:
        total += int(str(size)) + int(str(indexes))
        told = f"{updates:,}, {100 * int(str(hot)) / int(str(updates)):.0f} %" if updates else ""
        print(
            f"| {table} | {live:,} | {dead:,} | {int(str(size)) / 1e6:.0f} | {int(str(indexes)) / 1e6:.0f} | {told} |"
        )
    print(f"\n{total / 1e6:,.0f} MB, {total / nodes:,.0f} bytes a node.", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["old", "many"])
