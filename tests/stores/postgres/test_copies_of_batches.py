"""Copies of a batch that cross, claims that find runs held, and hints."""

import threading
import time

import psycopg
import pytest

from stepwell.base.ids import RunId
from stepwell.core.model import Batch, Claimed, Grant, Hint, Settled
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.audit import audit
from tests.conformance.ops import RUN, WORKER, add_graph, claim_op, completed, create, enlist, graph
from tests.postgres_server import PostgresServer

NODES = 12
CHAIN = graph(n0="", **{f"n{number}": f"n{number - 1}" for number in range(1, NODES)})
WIDE = graph(a="", b="a", c="a", d="b c")


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


def first_grant(store: PostgresStore, of: object = CHAIN) -> Grant:
    enlist(store)
    store.commit([*add_graph(of), create(of)])  # type: ignore[arg-type]
    (claimed,) = store.commit([claim_op(claim="first", runs=(RUN,))])
    assert isinstance(claimed, Claimed)
    return claimed.grants[0]


def settle_and_claim(grant: Grant) -> Batch:
    return [completed(grant), claim_op(claim=f"after-{grant.index}", runs=(RUN,))]


def test_two_copies_of_a_batch_at_once_do_what_one_does(url: str) -> None:
    first, second = PostgresStore(url), PostgresStore(url)
    grant = first_grant(first)
    for number in range(NODES):
        found: list[list[object]] = []

        def send(store: PostgresStore, batch: Batch, found: list[list[object]]) -> None:
            found.append(list(store.commit(batch)))

        threads = [
            threading.Thread(target=send, args=(store, settle_and_claim(grant), found)) for store in (first, second)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        settled, claimed = zip(*found, strict=True)
        assert all(isinstance(receipt, Settled) for receipt in settled)
        assert sum(receipt.repeated for receipt in settled if isinstance(receipt, Settled)) == 1
        assert claimed[0] == claimed[1]
        assert isinstance(claimed[0], Claimed)
        if number < NODES - 1:
            (grant,) = claimed[0].grants
            assert grant.index == number + 1
    audit(first)
    assert first.commit(settle_and_claim(grant))[0] == Settled(True, settled[0].run)
    first.close()
    second.close()


def test_a_claim_that_would_go_away_with_nothing_waits_a_moment_for_who_holds_the_run(
    postgres: PostgresServer, url: str
) -> None:
    """Or those who work on a wide run would keep it among themselves."""
    store = PostgresStore(url)
    enlist(store)
    store.commit([*add_graph(WIDE), create(WIDE)])
    schema, receipts = store._address.schema, list[object]()
    for number in range(20):  # a slow machine may let it wait for too long, but not always
        with psycopg.connect(postgres.url("postgres")) as other:
            other.execute(f"SELECT FROM {schema}.run FOR UPDATE".encode())
            op = claim_op(claim=f"c-{number}", serves=(("orders", WIDE.digest),))
            claiming = threading.Thread(target=lambda op=op: receipts.extend(store.commit([op])))
            claiming.start()
            claiming.join(0.02)
            other.rollback()
        claiming.join()
        receipt = receipts[-1]
        assert isinstance(receipt, Claimed)
        if receipt.grants:
            break
        assert receipt.contended
    assert len(receipt.grants) == 1
    store.close()


def test_who_waits_does_not_look_for_a_run_that_another_has_taken(url: str) -> None:
    store, other = PostgresStore(url), PostgresStore(url)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    store._listener.heard.spread = 3_600.0
    other.send_hint(Hint(("default",), started=(RunId("r-1"),)))
    looking = store._listener.heard.looking[WORKER]
    heard_by = time.monotonic() + 30
    while looking.at is None and time.monotonic() < heard_by:
        assert not store.wait_for_hint(None, (), WORKER, 0.05), "others look first"
    assert looking.at is not None
    other.send_hint(Hint(taken=(RunId("r-1"),)))
    while looking.at is not None and time.monotonic() < heard_by:
        assert not store.wait_for_hint(None, (), WORKER, 0.05)
    assert looking.at is None
    store.close()
    other.close()
