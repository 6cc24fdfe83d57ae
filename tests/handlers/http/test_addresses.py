"""Where documents may make us go: ways around the rules that people have published, each of them closed."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.base.networks import allowed_networks
from stepwell.errors import PermanentError, TransientError
from stepwell.handlers.http import connecting
from stepwell.handlers.http.addresses import BLOCKED, is_odd_number, refusal
from tests.handlers.conftest import Bench
from tests.handlers.servers import Server, answer

CERTIFICATES = Path(__file__).parents[1] / "certificates"


def words(text: str) -> list[str]:
    return text.split()


def gives(*answers: list[str]) -> tuple[Any, list[str]]:
    """A resolver that gives another answer each time, the last for ever, and the names it was asked for."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.170",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "4000::1",
        "e000::1",
        "1::1",
        "::ffff:7f00:1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:0:53aa:64c::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2002:c0a8:101::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(text):
    assert refusal(ipaddress.ip_address(text), 80, ()) is not None


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "2001:4860::8888",
    ],
)
def test_a_public_address_may_be_reached(text):
    assert refusal(ipaddress.ip_address(text), 443, ()) is None


def test_what_is_allowed_is_allowed_in_each_of_its_forms_and_nothing_else():
    allowed = allowed_networks(["10.1.0.0/16", "127.0.0.1:8080", "[fd00::]/8", "[::1]:9000"])

    def may(text: str, port: int = 80) -> bool:
        return refusal(ipaddress.ip_address(text), port, allowed) is None

    assert may("10.1.2.3")
    assert may("::ffff:10.1.2.3")
    assert not may("10.2.0.1")
    assert may("127.0.0.1", 8080)
    assert not may("127.0.0.1", 8081)
    assert not may("127.0.0.2", 8080)
    assert may("fd12::1")
    assert may("::1", 9000)
    assert not may("::1", 9001)
    for wrong in ("10.0.0.0/40", "example.com", "127.0.0.1:0", "127.0.0.1:x", "[::1]:99999", ""):
        with pytest.raises(Exception, match="private_networks"):
            allowed_networks([wrong])


@settings(max_examples=300, deadline=None)
@given(network=st.sampled_from([network for network, _ in BLOCKED if network.version == 4]), data=st.data())
def test_no_ipv6_form_of_a_blocked_address_is_let_through(network: ipaddress.IPv4Network, data: st.DataObject) -> None:
    number = int(network[0]) + data.draw(st.integers(0, network.num_addresses - 1))
    low, rest = number, data.draw(st.integers(0, 2**80 - 1))
    forms = (low, 0xFFFF << 32 | low, 0xFFFF << 48 | low, 0x64FF9B << 96 | low, 0x2002 << 112 | low << 80 | rest)
    assert refusal(ipaddress.IPv4Address(number), 80, ()) is not None
    for form in forms:
        assert refusal(ipaddress.IPv6Address(form), 80, ()) is not None


ODD = [
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "127.1",
    "127.0.1",
    "017700000001",
    "0x7f.1",
    "127.0.0.01",
    "1.2.3.4.5",
    "256.1.1.1",
    "0300.0250.1.1",
    "169.254.43518",
    "0xA9FEA9FE",
    "127.0.0.1.",
    "0",
]


@pytest.mark.parametrize("host", ODD)
def test_numbers_that_some_systems_take_for_addresses_are_refused_before_anybody_resolves_them(host):
    resolve, asked = gives(["127.0.0.1"])
    with pytest.raises(PermanentError, match=r"may not be reached|no URL|cannot be sent"):
        Bench(resolve=resolve).call("http_request", url=f"http://{host}/")
    assert asked == []


def test_names_with_digits_are_names():
    for host in ("1password.com", "7.example", "4chan.org", "123.example.com"):
        assert not is_odd_number(host)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1%25lo]",
        "localhost",
        "LOCALHOST.",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "169.254.169.254",
        "0",
        "0.0.0.0",
        "[::]",
    ],
)
def test_no_way_of_writing_this_host_reaches_it(host):
    with Server(lambda asked: answer()) as server:
        with pytest.raises((PermanentError, TransientError)) as caught:
            Bench().call("http_request", url=f"http://{host}:{server.port}/")
        assert server.connections == 0
    assert "status" not in str(caught.value)


def test_a_name_that_the_system_knows_is_reached_where_it_is_allowed():
    with Server(lambda asked: answer(200, b"here")) as server:
        bench = Bench(private=("127.0.0.1", "[::1]"))
        assert bench.call("http_request", url=f"http://localhost:{server.port}/")["result"] == "here"


def test_the_refusal_says_what_to_do():
    with pytest.raises(PermanentError) as caught:
        Bench(resolve=gives(["10.1.2.3"])[0]).call("http_request", url="http://intranet.test:8080/x")
    assert str(caught.value) == (
        "GET http://intranet.test:8080/x: intranet.test is at 10.1.2.3, which may not be reached: it is a private network. "
        'If documents should reach it, add it to the settings: private_networks = ["10.1.2.3:8080"], or name it as a service'
    )
    with pytest.raises(PermanentError, match=r'private_networks = \["\[fd00::7\]:8080"\]'):
        Bench(resolve=gives(["fd00::7"])[0]).call("http_request", url="http://intranet.test:8080/x")


def test_one_private_address_among_public_ones_is_enough_to_refuse():
    for addresses in (["93.184.216.34", "127.0.0.1"], ["127.0.0.1", "93.184.216.34"], ["2606:4700::1111", "::1"]):
        with pytest.raises(PermanentError, match="may not be reached"):
            Bench(resolve=gives(addresses)[0]).call("http_request", url="http://mixed.test/")


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_connected_to():
    """127.0.0.2 stands for a public server, 127.0.0.3 for what must not be reached: the second answer of the name."""
    served = Server(lambda asked: answer(200, b"public"), "127.0.0.2")
    with served as public, Server(lambda asked: answer(200, b"metadata"), "127.0.0.3", served.port) as metadata:
        resolve, asked = gives(["127.0.0.2"], ["127.0.0.3"])
        bench = Bench(resolve=resolve, private=("127.0.0.2",))
        got = bench.call("http_request", url=f"http://rebound.test:{public.port}/")
        assert got["result"] == "public"
        assert asked == ["rebound.test"]
        assert public.asked[0].headers["host"] == f"rebound.test:{public.port}"
        with pytest.raises(PermanentError, match=r"rebound.test is at 127.0.0.3, which may not be reached"):
            bench.call("http_request", url=f"http://rebound.test:{public.port}/")
        assert metadata.connections == 0


def test_a_redirect_to_a_name_that_changed_its_address_is_checked_again():
    def respond(asked: Any) -> bytes:
        return answer(302, Location="/again") if asked.path == "/" else answer(200, b"again")

    with Server(respond, "127.0.0.2") as public, Server(respond, "127.0.0.3", public.port) as metadata:
        resolve, asked = gives(["127.0.0.2"], ["127.0.0.3"])
        bench = Bench(resolve=resolve, private=("127.0.0.2",))
        with pytest.raises(PermanentError, match=r"is at 127.0.0.3"):
            bench.call("http_request", url=f"http://rebound.test:{public.port}/")
        assert asked == ["rebound.test", "rebound.test"]
        assert metadata.connections == 0


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.3:{port}/",
        "http://[::ffff:127.0.0.3]:{port}/",
        "//127.0.0.3:{port}/",
        "http://user@127.0.0.3:{port}/",
        "http://2130706435:{port}/",
        "http://public.test@127.0.0.3:{port}/",
        "http:\\\\127.0.0.3:{port}/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_a_redirect_to_a_private_address_is_refused(target):
    with Server(lambda asked: answer(200, b"private"), "127.0.0.3") as private:
        told = answer(302, Location=target.format(port=private.port))
        with Server(lambda asked: told, "127.0.0.2") as public, pytest.raises((PermanentError, TransientError)):
            Bench(private=("127.0.0.2",)).call("http_request", url=public.url)
        assert private.connections == 0


def test_the_next_address_is_tried_when_one_does_not_answer():
    with Server(lambda asked: answer(200, b"here"), "127.0.0.2") as server:
        bench = Bench(resolve=gives(["127.0.0.4", "127.0.0.2"])[0], private=("127.0.0.0/8",))
        assert bench.call("http_request", url=f"http://two.test:{server.port}/")["result"] == "here"


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    with Server(lambda asked: answer(200, b"proxy")) as proxy, Server(lambda asked: answer(200, b"direct")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        got = Bench(private=("127.0.0.1",)).call("http_request", url=server.url)
        assert got["result"] == "direct"
        assert proxy.connections == 0


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "service.test.pem"))
    connecting._ssl_context.cache_clear()
    yield
    connecting._ssl_context.cache_clear()


def test_tls_checks_the_name_of_the_url_at_the_address_that_was_checked(trusting):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATES / "service.test.pem", CERTIFICATES / "service.test.key")
    names: list[str | None] = []
    tls.sni_callback = lambda connection, name, context: names.append(name)
    with Server(lambda asked: answer(200, b"safe"), "127.0.0.2", tls=tls) as server:
        bench = Bench(resolve=gives(["127.0.0.2"])[0], private=("127.0.0.2",))
        got = bench.call("http_request", url=f"https://service.test:{server.port}/")
        assert (got["result"], names) == ("safe", ["service.test"])
        with pytest.raises(PermanentError, match=r"the certificate is refused: Hostname mismatch"):
            bench.call("http_request", url=f"https://other.test:{server.port}/")
