"""Networks as people write them: what each form means, and what is none."""

from __future__ import annotations

import ipaddress

import pytest

from stepwell.base.networks import Allowed, allowed_networks
from stepwell.errors import InputError

FORMS: dict[str, tuple[str, int | None]] = {
    "10.0.0.0/8": ("10.0.0.0/8", None),
    "10.1.2.3/8": ("10.0.0.0/8", None),
    "127.0.0.1": ("127.0.0.1/32", None),
    "127.0.0.1:8080": ("127.0.0.1/32", 8080),
    "127.0.0.1:1": ("127.0.0.1/32", 1),
    "127.0.0.0/8:65535": ("127.0.0.0/8", 65535),
    "::1": ("::1/128", None),
    "fd00::/8": ("fd00::/8", None),
    "[::1]": ("::1/128", None),
    "[::1]:8080": ("::1/128", 8080),
    "[fd00::]/8": ("fd00::/8", None),
    "[fd00::1]/8:443": ("fd00::/8", 443),
}


@pytest.mark.parametrize("text", FORMS)
def test_a_network_is_what_is_written(text: str) -> None:
    network, port = FORMS[text]
    assert allowed_networks(["192.168.0.1", text]) == (
        Allowed(ipaddress.ip_network("192.168.0.1/32"), None),
        Allowed(ipaddress.ip_network(network), port),
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "10.0.0.0/33", "10.0.0.256", "10.0.0", "::1/129", "10.0.0.0/8/8", "example.com:80"),
        *("127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http", "[::1]:0", "[::1]:65536", "[::1]x:80"),
    ],
)
def test_what_is_no_network_is_told(text: str) -> None:
    with pytest.raises(InputError, match="is no network: write"):
        allowed_networks([text])
