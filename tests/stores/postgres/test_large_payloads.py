"""What large payloads cost on their way into the server, and that they arrive."""

import random

from stepwell.core.model import GetOutputs, Refusal, Refused
from stepwell.core.store import reader
from stepwell.stores.postgres.request import BatchCall
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.ops import RUN, add_graph, child_run, claim_first, completed, graph, parked
from tests.postgres_server import PostgresServer

PAYLOAD = " ".join(random.Random(1).choices(["orders", "customer", "7", "delivered", "EUR", "late"], k=15_000)).encode()


def test_a_payload_is_sent_as_the_bytes_it_is(postgres: PostgresServer) -> None:
    store = PostgresStore(postgres.new_url())
    settle = completed(claim_first(store, graph(a="")), PAYLOAD)
    sent = sum(len(each) for each in BatchCall([settle]).parameters() if isinstance(each, str | bytes))
    assert sent < len(PAYLOAD) + 1_000
    store.commit([settle])
    (outputs,) = store.read([GetOutputs(RUN, (0,))])
    assert PAYLOAD in str(outputs).encode()
    store.close()


def test_payloads_are_compressed_by_the_fastest_way_that_the_server_has(postgres: PostgresServer) -> None:
    store = PostgresStore(postgres.new_url())
    store.commit([completed(claim_first(store, graph(a="")), PAYLOAD)])
    schema = store._address.schema
    ways = postgres.execute("SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'")[0][0]
    assert isinstance(ways, list)
    used = postgres.execute(f'SELECT DISTINCT pg_column_compression(data) FROM "{schema}".blob')
    assert used == [("lz4" if "lz4" in ways else "pglz",)]
    store.close()


def test_large_payloads_of_an_attempt_that_hands_its_node_over_are_kept_with_it_or_not_at_all(
    postgres: PostgresServer,
) -> None:
    store = PostgresStore(postgres.new_url())
    grant = claim_first(store, graph(a=""))
    below = graph(k="")
    output, line, content = (PAYLOAD + end for end in (b"output", b"line", b"input"))
    child = child_run(below, grant, input=content)
    settlement = parked(grant, child)._replace(output=output, lines=(("effect", line),))
    (refused,) = store.commit([settlement])
    assert isinstance(refused, Refused)
    assert refused.reason is Refusal.UNKNOWN
    blobs = f'SELECT count(*) FROM "{store._address.schema}".blob'
    assert postgres.execute(blobs) == [(0,)]
    store.commit([*add_graph(below), settlement])
    assert postgres.execute(blobs) == [(3,)]
    assert reader.list_attempts(store, RUN, 0)[0].output == output
    assert [each.data for each in reader.list_lines(store, RUN)] == [line]
    assert reader.require_run(store, child.run_id).input == content
    store.close()
