"""PostgreSQL does exactly what the memory store does, whatever it is asked: random batches, the same to both."""

from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings

from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.test_same_as_memory import SameAsMemory
from tests.postgres_server import PostgresServer, empty

_TABLES = """
SELECT 'ready', count(*) FROM
  ((SELECT run, lane, rank, idx FROM ready EXCEPT SELECT run, lane, rank, idx FROM node WHERE status = 1)
   UNION ALL (SELECT run, lane, rank, idx FROM node WHERE status = 1 EXCEPT SELECT run, lane, rank, idx FROM ready)) d
UNION ALL SELECT 'due', count(*) FROM
  ((SELECT run, at, idx FROM due EXCEPT SELECT run, due_at, idx FROM node WHERE status = 3 AND due_at IS NOT NULL)
   UNION ALL (SELECT run, due_at, idx FROM node WHERE status = 3 AND due_at IS NOT NULL EXCEPT SELECT run, at, idx FROM due)) d
UNION ALL SELECT 'held', count(*) FROM
  ((TABLE held EXCEPT SELECT worker, key / 65536, run, count(*) FROM attempt WHERE status = 0 GROUP BY 1, 2, 3)
   UNION ALL (SELECT worker, key / 65536, run, count(*) FROM attempt WHERE status = 0 GROUP BY 1, 2, 3 EXCEPT TABLE held)) d
UNION ALL SELECT 'offer', count(*) FROM
  (SELECT y.lane, r.graph, r.workflow, r.urgency, r.key FROM run r JOIN ready y ON y.run = r.key WHERE r.gate = 0
   EXCEPT SELECT lane, graph, workflow, urgency, run FROM offer) d
UNION ALL SELECT 'low_rank', count(*) FROM run r JOIN ready y ON y.run = r.key AND y.lane = r.low_lane AND y.rank < r.low_rank
UNION ALL SELECT 'claim', count(*) FROM claim c
  WHERE NOT EXISTS (SELECT FROM attempt a WHERE a.key / 65536 = c.key)
UNION ALL SELECT 'journal', count(*) FROM run r WHERE purpose IS DISTINCT FROM 'delete' AND purpose IS DISTINCT FROM 'restore'
  AND (r.seq <> (SELECT count(*) FROM journal j WHERE j.run = r.key)
       OR r.seq <> (SELECT max(seq) FROM journal j WHERE j.run = r.key))
"""


class PostgresSameAsMemory(SameAsMemory):
    url: ClassVar[str]
    store: ClassVar[PostgresStore | None] = None

    def open(self) -> None:
        if PostgresSameAsMemory.store is None:
            PostgresSameAsMemory.store = PostgresStore(self.url)
        self.other = PostgresSameAsMemory.store
        self.other._clock = self.clock

    def check_other(self) -> None:
        """The narrow tables say what the rows say."""
        with self.other._connections.one() as connection, connection.transaction():
            connection.execute(f"SET LOCAL search_path = {self.other._address.schema}")
            wrong = [row for row in connection.execute(_TABLES.encode()) if row[1]]
        assert not wrong

    def close(self) -> None:
        empty(self.other)


PostgresSameAsMemory.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.timeout(900)
def test_same_as_memory(postgres: PostgresServer) -> None:
    PostgresSameAsMemory.url = postgres.new_url()
    try:
        PostgresSameAsMemory.TestCase("runTest").runTest()
    finally:
        if PostgresSameAsMemory.store is not None:
            PostgresSameAsMemory.store.close()
