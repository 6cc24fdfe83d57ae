"""Connections that break, and copies of a batch that cross: nothing lost, nothing twice."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from stepwell.base.ids import AttemptId
from stepwell.core.model import Claim, Claimed, Created, Hint, Settled, Sweep
from stepwell.errors import StoreBusy, StoreError
from stepwell.stores.postgres import store as store_module
from stepwell.stores.postgres.store import PostgresStore
from tests.conformance.audit import audit
from tests.conformance.ops import WORKER, add_graph, claim_op, completed, create, enlist, graph
from tests.engine.waiting import in_time
from tests.postgres_server import PostgresServer
from tests.stores.listening import closes_while_it_begins_to_listen
from tests.stores.postgres.proxy import CUT, Proxy

SMALL = graph(a="", b="a", c="a", d="b c")


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(postgres.port)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("cut", ["request", "reply"])
def test_a_batch_whose_line_is_cut_is_sent_again_and_applied_once(
    postgres: PostgresServer,
    url: str,
    proxy: Proxy,
    cut: str,
) -> None:
    store = PostgresStore(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    store.commit([*add_graph(SMALL)])
    enlist(store)

    def cut_one() -> None:
        """The next request, or the next reply, is not passed on: the line is cut instead."""
        left = [CUT]
        proxy.on_request, proxy.on_reply = (
            (lambda _: left.pop() if left else 0.0) if cut == way else (lambda _: 0.0) for way in ("request", "reply")
        )

    cut_one()
    (made,) = store.commit([create(SMALL)])
    assert isinstance(made, Created)
    for number in range(4):
        cut_one()
        (claimed,) = store.commit([claim_op(claim=f"claim-{number}")])
        assert isinstance(claimed, Claimed)
        nobody = claimed.grants[0]._replace(attempt=AttemptId("nobody.0"))
        store.commit(
            [completed(nobody)] * len(claimed.grants)
        )  # so that it is prepared, and the next reply is the answer
        cut_one()
        for receipt in store.commit([completed(grant) for grant in claimed.grants]):
            assert isinstance(receipt, Settled)
            assert receipt.repeated == (cut == "reply")
        if claimed.grants and claimed.grants[0].index == 3:
            break
    assert receipt.run.status == "COMPLETED"
    audit(store)
    store.close()


def test_a_server_that_cannot_be_reached_is_told_in_words(
    postgres: PostgresServer,
    url: str,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_module, "RETRY_SECONDS", 0.3)
    store = PostgresStore(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    proxy.close()
    with pytest.raises(StoreError, match="it is safe to try again"):
        store.commit([Sweep()])
    store.close()


def test_two_copies_of_a_batch_at_once_do_what_one_does(url: str) -> None:
    """The first copy may still be running when the second arrives."""
    first, second = PostgresStore(url), PostgresStore(url)
    first.commit([*add_graph(SMALL), create(SMALL)])
    enlist(first)
    batch = [claim_op(claim="one")]
    for _ in range(20):
        found: list[object] = []

        def send(store: PostgresStore, batch: list[Claim], found: list[object]) -> None:
            found.append(store.commit(batch)[0])

        threads = [threading.Thread(target=send, args=(store, batch, found)) for store in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 2
        assert found[0] == found[1]
        (receipt,) = found[:1]
        assert isinstance(receipt, Claimed)
        settle = [completed(grant) for grant in receipt.grants]
        if not settle:
            break
        first.commit(settle)
        batch = [claim_op(claim=f"next-{len(settle)}-{receipt.grants[0].index}")]
    audit(first)
    first.close()
    second.close()


def test_a_claim_takes_what_is_free_and_says_that_others_hold_the_rest(postgres: PostgresServer, url: str) -> None:
    store = PostgresStore(url)
    store.commit([*add_graph(SMALL), create(SMALL, "held"), create(SMALL, "free")])
    enlist(store)
    schema = store._address.schema
    with psycopg.connect(postgres.url("postgres")) as other:
        other.execute(f"SELECT FROM {schema}.run WHERE id = 'held' FOR UPDATE".encode())
        for number, op in enumerate(
            (
                claim_op(claim="a", runs=("held", "free")),
                claim_op(claim="b", serves=(("orders", SMALL.digest),)),
            )
        ):
            (receipt,) = store.commit([op])
            assert isinstance(receipt, Claimed)
            assert receipt.contended
            assert [grant.run_id for grant in receipt.grants] == ([] if number else ["free"])
    (receipt,) = store.commit([claim_op(claim="c", runs=("held", "free"))])
    assert isinstance(receipt, Claimed)
    assert ([grant.run_id for grant in receipt.grants], receipt.contended) == (["held"], False)
    store.close()


def test_a_store_that_is_closed_listens_no_longer(url: str) -> None:
    before = {*threading.enumerate()}
    store = PostgresStore(url)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    (listening,) = (each for each in {*threading.enumerate()} - before if each.name == "stepwell-hints-in")
    store.close()
    assert not listening.is_alive()


def test_a_store_that_is_closed_while_it_begins_to_listen_closes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closes_while_it_begins_to_listen(PostgresStore(url), "stepwell-hints-in", monkeypatch)


def test_a_listener_whose_line_broke_looks_again(postgres: PostgresServer, url: str) -> None:
    store = PostgresStore(url)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%hints'")
    assert store.wait_for_hint(None, (), WORKER, 10), "what was sent meanwhile was not heard, so it has to look"
    store.send_hint(Hint(queues=("default",)))
    assert store.wait_for_hint(("default",), (), WORKER, 10)
    store.send_hint(Hint(queues=("elsewhere",)))
    assert not store.wait_for_hint(("default",), (), WORKER, 0.5)
    store.close()


def test_sessions_that_the_server_ended_are_replaced(postgres: PostgresServer, url: str) -> None:
    """As it ends those that are idle in a transaction, and those of a server that restarts."""
    store = PostgresStore(url)
    store.commit([*add_graph(SMALL)])
    for _ in range(3):
        ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE 'stepwell %'"
        assert postgres.execute(ended)
        (receipt,) = store.commit([create(SMALL)])
        assert isinstance(receipt, Created)
    store.close()


def test_a_batch_that_the_server_cancelled_is_told_and_can_be_sent_again(postgres: PostgresServer, url: str) -> None:
    store = PostgresStore(url)
    store.commit([*add_graph(SMALL), create(SMALL)])
    enlist(store)
    (receipt,) = store.commit([claim_op(claim="one")])
    assert isinstance(receipt, Claimed)
    batch = [completed(grant) for grant in receipt.grants]
    with store._connections.one(commits=True) as session:
        session.execute("SET statement_timeout = '200ms'")
    with psycopg.connect(postgres.url("postgres")) as other:
        other.execute(f"SELECT FROM {store._address.schema}.run FOR UPDATE".encode())
        with pytest.raises(StoreBusy, match="nothing was written, try again"):
            store.commit(batch)
    (settled,) = store.commit(batch)
    assert isinstance(settled, Settled)
    assert not settled.repeated
    store.close()


FORKS = """
import os, sys
from stepwell.core.model import ListRuns, Sweep
from stepwell.errors import StoreError
from stepwell.stores.postgres.store import PostgresStore

store = PostgresStore(sys.argv[1])
forked = os.fork()
if forked == 0:
    refusals = 0
    hint = lambda: store.wait_for_hint(None, (), "w", 0)
    for use in (lambda: store.commit([Sweep()]), lambda: store.read([ListRuns()]), hint):
        try:
            use()
        except StoreError as error:
            refusals += "forked" in str(error)
    store.close()
    os._exit(refusals)
_, status = os.waitpid(forked, 0)
store.commit([Sweep()])
print(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_cannot_use_the_store_and_leaves_it_to_its_parent(url: str) -> None:
    parent = subprocess.run([sys.executable, "-c", FORKS, url], check=True, capture_output=True, text=True, timeout=120)
    assert parent.stdout.split() == ["3"]


def test_a_store_that_listens_and_has_sent_hints_closes_at_once(url: str) -> None:
    PostgresStore(url).close()  # its tables are there

    def close() -> float:
        store = PostgresStore(url)
        store.send_hint(Hint(queues=("default",)))
        assert not store.wait_for_hint((), (), WORKER, 0)
        began = time.monotonic()
        store.close()
        assert store._listener._thread is not None
        assert not store._listener._thread.is_alive()
        return time.monotonic() - began

    in_time(0.02, close)
