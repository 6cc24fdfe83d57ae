"""Lines between a worker and the server that are cut, or slow."""

from collections.abc import Iterator

import pytest

from stepwell import Builder, Engine
from stepwell.core.model import Claimed, Created, Settled
from stepwell.core.store import reader
from stepwell.errors import StoreError, StoreReplaced
from stepwell.stores.redis.store import RedisStore
from tests.conformance.audit import audit
from tests.conformance.ops import RUN, add_graph, claim_op, completed, create, enlist, graph
from tests.engine import jobs
from tests.servers.redis_server import RedisServer, free_port
from tests.stores.postgres.proxy import CUT, Proxy

CHAIN = graph(a="", b="a", c="b", d="b c", e="d")


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


def test_a_store_that_was_exchanged_is_told(server: RedisServer, url: str) -> None:
    store = RedisStore(url)
    with server.client() as client:
        client.delete(store._marker_key)
    with pytest.raises(StoreReplaced, match="gone or was exchanged"):
        enlist(store)
    assert store.now() > 0, "the line can be used on"
    store.close()


@pytest.mark.parametrize("cut", ["request", "reply"])
def test_a_batch_whose_line_is_cut_is_sent_again_and_applied_once(
    server: RedisServer, url: str, proxy: Proxy, cut: str
) -> None:
    store = RedisStore(url.replace(f":{server.port}/", f":{proxy.port}/"))
    store.commit(add_graph(CHAIN))
    enlist(store)
    cuts: list[float] = []

    def cut_one() -> None:
        """The next request, or the next reply, is not passed on: the line is cut instead."""
        cuts.append(CUT)
        proxy.on_request, proxy.on_reply = (
            (lambda _: cuts.pop() if cuts else 0.0) if cut == way else (lambda _: 0.0) for way in ("request", "reply")
        )

    cut_one()
    (made,) = store.commit([create(CHAIN)])
    assert isinstance(made, Created)
    assert made.existed == (cut == "reply")
    (claimed,) = store.commit([claim_op(claim="claim-0", runs=(RUN,))])
    for number in range(1, 6):
        assert isinstance(claimed, Claimed)
        (grant,) = claimed.grants
        cut_one()
        settled, claimed = store.commit([completed(grant), claim_op(claim=f"claim-{number}", runs=(RUN,))])
        assert isinstance(settled, Settled)
        assert settled.repeated == (cut == "reply")
        assert not cuts
    assert reader.require_run(store, RUN).status == "COMPLETED"
    assert {row.attempt for row in reader.all_nodes(store, RUN)} == {1}
    audit(store)
    store.close()


def test_runs_complete_over_a_slow_line(server: RedisServer, url: str, proxy: Proxy) -> None:
    """What comes in pieces and late is put together; nothing is sent twice that was only slow."""
    proxy.trickle = 700
    proxy.on_request = proxy.on_reply = lambda data: 0.002
    w = Builder("slow")
    parts = w.fan_out(range(60), job=jobs.same)
    w.node("join", job=jobs.same, args={"item": 7}, depends_on=parts)
    with Engine(url.replace(f":{server.port}/", f":{proxy.port}/"), jobs=[jobs.__name__]) as engine:
        run = engine.run(w)
        assert run.output("join") == 7
        assert {row.attempt for row in reader.all_nodes(engine.store, run.id)} == {1}
        audit(engine.store)


def test_a_server_that_cannot_be_reached_is_told_in_words() -> None:
    port = free_port()
    with pytest.raises(StoreError, match=rf"redis://127\.0\.0\.1:{port}/0: the server cannot be reached"):
        RedisStore(f"redis://:s3cret@127.0.0.1:{port}/0")
