"""What a URL says, what a server promises, and what is refused before anything is stored."""

from contextlib import closing, nullcontext
from typing import Any

import pytest

from stepwell.base.clock import ManualClock
from stepwell.cli.connect import Connection
from stepwell.errors import InputError, SchemaTooNew, StoreError
from stepwell.stores import open_store
from stepwell.stores.redis.connecting import read_url
from stepwell.stores.redis.store import RedisStore
from tests.conformance.ops import enlist, graph, serve, work
from tests.servers.redis_server import TLS, NoServer, RedisServer, TlsServer, free_port


def test_a_url_names_a_server_and_a_namespace(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, RedisStore)
    assert store.url == url
    assert (store.embedded, store.needs_hints, store.limits.nodes) == (False, True, 500)
    assert store.durability.kind == "everysec"
    store.close()


def test_the_password_is_never_shown() -> None:
    address = read_url("rediss://app:s3cr%40t@db.example:6380/2?namespace=shop")
    assert address.password == "s3cr@t"
    assert address.shown == "rediss://app@db.example:6380/2?namespace=shop"
    assert (address.hosts, address.database, address.tls) == ((("db.example", 6380),), 2, True)


@pytest.mark.parametrize("name", ["a", "x" * 100, "shop-1.é"])
def test_a_namespace_of_up_to_a_hundred_characters_is_taken(name: str) -> None:
    assert read_url(f"redis://localhost?namespace={name}").namespace == name


def test_the_password_of_somebody_unknown_is_not_shown_either(server: RedisServer) -> None:
    with pytest.raises(StoreError, match="refuses this user") as caught:
        open_store(f"redis://nobody:s3cret@127.0.0.1:{server.port}/0")
    assert "s3cret" not in str(caught.value)


def test_sentinels_and_addresses_of_six_bytes_are_read() -> None:
    address = read_url("redis+sentinel://a:1,b/mymaster/3")
    assert (address.hosts, address.service, address.database) == ((("a", 1), ("b", 26379)), "mymaster", 3)
    assert read_url("redis://[::1]:7000").hosts == (("::1", 7000),)
    assert read_url("redis://[::1]").hosts == (("::1", 6379),)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://localhost/zero", "the number of a database"),
        ("redis://localhost/0/1", "the number of a database"),
        ("redis://a,b", "Redis Cluster is not supported"),
        ("redis+sentinel://a", "expected the name of a service"),
        ("redis://localhost:port", "expected a port, got 'port'"),
        ("redis://localhost?name=x", "unknown option name; known: namespace, durability"),
        ("redis://localhost?namespace=a{b", "namespace: expected 1 to 100 characters"),
        (
            "redis://localhost?durability=some",
            "durability: expected 'none', which accepts",
        ),
        ("redis://localhost?wait=disk", "wait: expected aof or replica, got 'disk'"),
        ("redis://localhost?keep_days=0", "keep_days: expected a positive number or 'forever', got '0'"),
        ("redis://localhost?keep_days=nan", "keep_days: expected a positive number or 'forever', got 'nan'"),
        ("redis://localhost?wait_seconds=x", "wait_seconds: expected a number from 0.001 to 3600, got 'x'"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_with_advice(url: str, told: str) -> None:
    with pytest.raises(InputError, match="store URL") as caught:
        open_store(url)
    assert told in str(caught.value)


def test_no_other_clock_can_be_given(url: str) -> None:
    with pytest.raises(InputError, match="the clock of its server"):
        open_store(url, clock=ManualClock())


def test_with_a_clock_of_its_own_it_goes_by_that(url: str) -> None:
    clock = ManualClock(7)
    with closing(RedisStore(url, clock=clock)) as store:
        assert store.now() == clock.now()


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(StoreError, match=r"redis://127\.0\.0\.1:1/0: the server cannot be reached"):
        open_store("redis://127.0.0.1:1/0")


def test_a_server_that_forgets_is_refused_unless_that_is_accepted() -> None:
    server = RedisServer("--appendonly", "no")
    try:
        with pytest.raises(StoreError, match="appendonly no: a restart of the server loses everything"):
            open_store(server.url)
        with open_and_close(f"{server.url}?durability=none") as store:
            assert store.durability.kind == "none"
        with server.client() as client:
            client.config_set("appendonly", "yes")
            client.config_set("appendfsync", "always")
        with open_and_close(server.url) as store:
            assert store.durability.kind == "always"
        with server.client() as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(StoreError, match="it would throw away parts of runs"):
            open_store(server.url)
        with pytest.raises(StoreError, match=r"wait=aof needs 7\.2") if _is_old(server) else nullcontext():
            open_store(f"{server.url}?durability=none&wait=aof").close()
    finally:
        server.stop()


def test_a_cluster_is_refused_with_the_reason() -> None:
    server = RedisServer("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    try:
        with pytest.raises(StoreError, match="is a Redis Cluster, which is not supported: a batch touches keys"):
            open_store(server.url)
    finally:
        server.stop()


def _is_old(server: RedisServer) -> bool:
    with server.client() as client:
        return tuple(map(int, client.info()["redis_version"].split(".")[:2])) < (7, 2)


def open_and_close(url: str) -> closing[RedisStore]:
    store = open_store(url)
    assert isinstance(store, RedisStore)
    return closing(store)


def test_the_command_line_says_what_a_crash_may_lose(
    server: RedisServer, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Connection(url).worker():
        pass
    told = capsys.readouterr().err
    assert f"store {url}: appendfsync everysec: a crash of the machine loses at most the last two seconds" in told
    assert "no replica, maxmemory-policy noeviction" in told


def test_a_server_with_tls_is_trusted_by_its_certificate() -> None:
    """With the authority that the URL names; without it the server is refused, and the message says why."""
    try:
        server = TlsServer()
    except NoServer:
        pytest.skip("this server was built without TLS")
    try:
        url = f"rediss://127.0.0.1:{server.port}/0"
        with closing(open_store(f"{url}?ca={TLS / 'authority.pem'}")) as store:
            serve(store, graph(a="", b="a"))
            assert work(store) == 2
            assert store.wait_for_hint(None, (), "w", 0) is False  # type: ignore[arg-type]
        with pytest.raises(StoreError, match=r"cannot be reached: .*(certificate|CERTIFICATE)"):
            open_store(url)
    finally:
        server.stop()


def test_a_commit_waits_for_the_disk_if_that_is_asked_for(server: RedisServer, url: str) -> None:
    """`?wait=aof`: with claims and reads of them too. Redis 7.0 has no such command, and is refused."""
    with server.client() as client:
        new_enough = b"waitaof" in set(client.command_list())
        if not new_enough:
            with pytest.raises(StoreError, match=r"wait=aof needs 7\.2; with `appendfsync always`"):
                open_store(f"{url}&wait=aof")
            return
        with closing(open_store(f"{url}&wait=aof")) as store:
            serve(store, graph(a="", b="a"))
            before = client.info("commandstats")["cmdstat_waitaof"]["calls"]
            assert work(store) == 2
            assert client.info("commandstats")["cmdstat_waitaof"]["calls"] >= before + 4


@pytest.mark.parametrize("kept", [1, 0])
def test_a_commit_that_the_disk_does_not_have_in_time_has_failed(url: str, kept: int) -> None:
    """What a server of any version is asked, and how its answer is read."""
    with closing(RedisStore(url)) as store:
        asked: list[Any] = []

        def answer(command: Any, waiting: Any) -> list[Any]:
            asked.append(waiting)
            return [store._client.execute_command(*command), [kept, 0]]

        store._address = store._address._replace(wait="aof", wait_seconds=2)
        store._send_together = answer  # type: ignore[method-assign, assignment]
        with nullcontext() if kept else pytest.raises(StoreError, match="was not on the disk 2 seconds later"):
            enlist(store)
        assert asked == [("WAITAOF", 1, 0, 2_000)]


@pytest.mark.parametrize("layout", ["99", "later"])
def test_a_later_layout_is_refused(url: str, layout: str) -> None:
    store = RedisStore(url)
    store._client.hset(store._marker_key, "marker", f"{layout} abc")
    store.close()
    with pytest.raises(SchemaTooNew, match=rf"has layout {layout}, this Stepwell knows \d+: upgrade Stepwell"):
        open_store(url)


@pytest.mark.parametrize("layout", ["1", "8"])
def test_a_layout_from_before_the_first_release_is_refused(url: str, layout: str) -> None:
    """Layout 8 did not count the skipped parents of nodes."""
    store = RedisStore(url)
    store._client.hset(store._marker_key, "marker", f"{layout} abc")
    store.close()
    with pytest.raises(StoreError, match=rf"has layout {layout}, this Stepwell knows \d+: use another namespace"):
        open_store(url)
