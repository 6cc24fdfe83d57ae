"""Links of a chain, which are a call of their own: copies of them that cross, and what is no link after all."""

import threading
import time

import psycopg
import pytest

from stepwell.ids import RunId
from stepwell.model import Batch, Claimed, Grant, Hint, Settled
from stepwell.store.postgres.links import USUAL
from stepwell.store.postgres.store import PostgresStore
from stepwell.testing.audit import audit
from stepwell.testing.ops import RUN, WORKER, add_graph, claim_op, completed, create, enlist, graph
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


def link(grant: Grant) -> Batch:
    return [completed(grant), claim_op(claim=f"after-{grant.index}", runs=(RUN,))]


def test_two_copies_of_a_link_at_once_do_what_one_does(url: str) -> None:
    first, second = PostgresStore(url), PostgresStore(url)
    grant = first_grant(first)
    for number in range(NODES):
        found: list[list[object]] = []

        def send(store: PostgresStore, batch: Batch, found: list[list[object]]) -> None:
            found.append(list(store.commit(batch)))

        threads = [threading.Thread(target=send, args=(store, link(grant), found)) for store in (first, second)]
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
    assert first.commit(link(grant))[0] == Settled(True, settled[0].run)
    first.close()
    second.close()


def test_what_is_no_link_is_sent_the_usual_way_and_then_not_tried_for_a_while(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(url)
    tried: list[object] = []
    send = store._send_link
    monkeypatch.setattr(
        store, "_send_link", lambda connection, found: (tried.append(found), send(connection, found))[1]
    )
    grant = first_grant(store, WIDE)
    _, claimed = store.commit(link(grant))
    assert isinstance(claimed, Claimed)
    assert [grant.index for grant in claimed.grants] == [1, 2], "a node with two children is none"
    assert len(tried) == 1
    for _ in range(USUAL):
        store.commit(link(grant))
    assert len(tried) == 1
    store.commit(link(grant))
    assert len(tried) == 2
    audit(store)
    store.close()


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
