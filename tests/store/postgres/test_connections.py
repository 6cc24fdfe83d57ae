"""Connections that break, and copies of a batch that cross: nothing lost, nothing twice."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import psycopg
import pytest

from stepwell.errors import StoreError
from stepwell.ids import AttemptId
from stepwell.model import Claim, Claimed, Created, Hint, Settled, Sweep
from stepwell.store.postgres import PostgresStore
from stepwell.store.postgres import store as store_module
from stepwell.testing.audit import audit
from stepwell.testing.ops import (
    WORKER,
    add_graph,
    claim_op,
    completed,
    create,
    enlist,
    graph,
)
from tests.postgres_server import PostgresServer, postgres  # noqa: F401

SMALL = graph(a="", b="a", c="a", d="b c")


class Proxy:
    """Stands between a client and the server, and cuts a line when it is told to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.cut_before_reply = 0
        """So many replies are not passed on: the line is cut instead."""
        self.cut_before_request = 0
        self._lines: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            self._lines += (client, server)
            for take, give, replies in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(take, give, replies), daemon=True).start()

    def _pass(self, take: socket.socket, give: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := take.recv(65536):
                if replies and self.cut_before_reply > 0:
                    self.cut_before_reply -= 1
                    break
                if not replies and self.cut_before_request > 0:
                    self.cut_before_request -= 1
                    break
                give.sendall(data)
        for line in (take, give):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()


@pytest.fixture
def url(postgres: PostgresServer) -> str:  # noqa: F811
    return postgres.new_url()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:  # noqa: F811
    proxy = Proxy(postgres.port)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("cut", ["cut_before_request", "cut_before_reply"])
def test_a_batch_whose_line_is_cut_is_sent_again_and_applied_once(
    postgres: PostgresServer,  # noqa: F811
    url: str,
    proxy: Proxy,
    cut: str,
) -> None:
    store = PostgresStore(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    store.commit([*add_graph(SMALL)])
    enlist(store)
    setattr(proxy, cut, 1)
    (made,) = store.commit([create(SMALL)])
    assert isinstance(made, Created)
    for number in range(4):
        setattr(proxy, cut, 1)
        (claimed,) = store.commit([claim_op(claim=f"claim-{number}")])
        assert isinstance(claimed, Claimed)
        nobody = claimed.grants[0]._replace(attempt=AttemptId("nobody.0"))
        store.commit(
            [completed(nobody)] * len(claimed.grants)
        )  # so that it is prepared, and the next reply is the answer
        setattr(proxy, cut, 1)
        for receipt in store.commit([completed(grant) for grant in claimed.grants]):
            assert isinstance(receipt, Settled)
            assert receipt.repeated == (cut == "cut_before_reply")
        if claimed.grants and claimed.grants[0].index == 3:
            break
    assert receipt.run.status == "COMPLETED"
    audit(store)
    store.close()


def test_a_server_that_cannot_be_reached_is_told_in_words(
    postgres: PostgresServer,  # noqa: F811
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


def test_a_claim_takes_what_is_free_and_says_that_others_hold_the_rest(postgres: PostgresServer, url: str) -> None:  # noqa: F811
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


def test_a_listener_whose_line_broke_looks_again(postgres: PostgresServer, url: str) -> None:  # noqa: F811
    store = PostgresStore(url)
    assert not store.wait_for_hint(None, (), WORKER, 0)
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%hints'")
    assert store.wait_for_hint(None, (), WORKER, 10), "what was sent meanwhile was not heard, so it has to look"
    store.send_hint(Hint(queues=("default",)))
    assert store.wait_for_hint(("default",), (), WORKER, 10)
    store.send_hint(Hint(queues=("elsewhere",)))
    assert not store.wait_for_hint(("default",), (), WORKER, 0.5)
    store.close()
