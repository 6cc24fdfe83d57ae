"""Which addresses a document may reach: public ones, and private ones that the settings allow.

The list is our own, because `ipaddress.is_private` differs between versions of Python.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from ...base.networks import Address, Allowed, Network

_BLOCKED_V4 = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "a private network",
    "100.64.0.0/10": "a provider's private network",
    "127.0.0.0/8": "this host",
    "169.254.0.0/16": "this link, where clouds keep their metadata",
    "172.16.0.0/12": "a private network",
    "192.0.0.0/24": "a reserved network",
    "192.0.2.0/24": "a network for documentation",
    "192.88.99.0/24": "a reserved network",
    "192.168.0.0/16": "a private network",
    "198.18.0.0/15": "a network for benchmarks",
    "198.51.100.0/24": "a network for documentation",
    "203.0.113.0/24": "a network for documentation",
    "224.0.0.0/4": "a multicast address",
    "240.0.0.0/4": "a reserved network",
}
_BLOCKED_V6 = {
    "::/96": "this host, or an old form of an IPv4 address",
    "64:ff9b:1::/48": "a private network behind a translator",
    "100::/64": "a network that discards everything",
    "2001::/23": "a reserved network",
    "2001:db8::/32": "a network for documentation",
    "3fff::/20": "a network for documentation",
    "5f00::/16": "a reserved network",
    "fc00::/7": "a private network",
    "fe80::/10": "this link",
    "fec0::/10": "a private network",
    "ff00::/8": "a multicast address",
}
BLOCKED: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(text), what) for text, what in (_BLOCKED_V4 | _BLOCKED_V6).items()
)
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")


def refusal(address: Address, port: int, allowed: tuple[Allowed, ...]) -> str | None:
    """Why an address may not be reached; None if it may. An IPv4 address inside an IPv6 one is looked at too."""
    for each in (address, *_inside(address)):
        reason = _blocked(each)
        if reason is not None and not _is_allowed(each, port, allowed) and not _is_allowed(address, port, allowed):
            return reason
    return None


def _blocked(address: Address) -> str | None:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return None  # judged by the address inside
    for network, what in BLOCKED:
        if _within(address, network):
            return what
    if address.version == 6 and address not in _PUBLIC_V6 and address not in _NAT64:
        return "no public address"
    return None


def _is_allowed(address: Address, port: int, allowed: tuple[Allowed, ...]) -> bool:
    return any(_within(address, each.network) and each.port in (None, port) for each in allowed)


def _within(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _inside(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 address that a router would make of an IPv6 one."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def literal(host: str) -> Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_odd_number(host: str) -> bool:
    """`2130706433`, `0177.0.0.1`, `127.1`, `0x7f.1`: numbers that some systems take for an address, each in its own way."""
    last = host.rstrip(".").rpartition(".")[2]
    return _NUMBER.fullmatch(last) is not None and literal(host) is None
